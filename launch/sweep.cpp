// A sweep: the variants of a model block, as a grid or as random draws.
#include "launch/sweep.h"

#include <fmt/format.h>

#include <cmath>

#include "data/philox.h"
#include "launch/key_reader.h"

namespace tutti::launch {
namespace {

const std::vector<std::string> kDistributions{"uniform", "log_uniform", "choice", "int"};

/// Reads [low, high] of a distribution. Faults say what is wrong.
bool read_range(const Node& range, SweepVariable& variable, const std::string& path, Faults& faults) {
  const bool whole = variable.kind == SweepVariable::Kind::kInteger;
  const auto value_at = [&](size_t index) -> std::optional<double> {
    const Node& end = range.children[index];
    return whole && !integer_of(end) ? std::nullopt : number_of(end);
  };
  if (range.kind == Node::Kind::kList && range.children.size() == 2) {
    const auto low = value_at(0), high = value_at(1);
    const bool positive = variable.kind != SweepVariable::Kind::kLogUniform || (low && *low > 0);
    if (low && high && *low <= *high && positive) {
      variable.low = *low;
      variable.high = *high;
      return true;
    }
  }
  const std::string_view ends = whole                                               ? "whole numbers"
                                : variable.kind == SweepVariable::Kind::kLogUniform ? "numbers above 0"
                                                                                    : "numbers";
  faults.add(range.place, path,
             fmt::format("expected two {} [low, high] with low <= high, found {}", ends,
                         range.kind == Node::Kind::kList ? json_of(range).dump() : describe(range)));
  return false;
}

/// Reads a list, or {distribution: ...}.
bool read_variable(const Node& node, bool sampled, SweepVariable& variable, const std::string& path, Faults& faults) {
  const Node* choices = &node;
  if (node.kind == Node::Kind::kMap && node.children.size() == 1) {
    const Node& distribution = node.children.front();
    if (!sampled) {
      faults.add(node.place, path, "expected a list; distributions need `sample: N` beside `sweep`");
      return false;
    }
    if (distribution.key != "choice") {
      using Kind = SweepVariable::Kind;
      if (distribution.key == "uniform")
        variable.kind = Kind::kUniform;
      else if (distribution.key == "log_uniform")
        variable.kind = Kind::kLogUniform;
      else if (distribution.key == "int")
        variable.kind = Kind::kInteger;
      else {
        faults.add(distribution.key_place, path,
                   fmt::format("unknown distribution `{}`; {}", distribution.key,
                               expected_one_of(distribution.key, kDistributions)));
        return false;
      }
      return read_range(distribution, variable, path, faults);
    }
    choices = &distribution;
  }
  if (choices->kind != Node::Kind::kList || choices->children.empty()) {
    faults.add(choices->place, path,
               fmt::format("expected a list of at least one value{}, found {}",
                           sampled ? " or a distribution {uniform: [low, high]}" : "",
                           choices->kind == Node::Kind::kList ? "an empty list" : describe(*choices)));
    return false;
  }
  variable.choices = choices->children;
  return true;
}

}  // namespace

Node SweepVariable::draw(uint64_t seed, int64_t draw) const {
  const auto counter = static_cast<uint64_t>(draw);
  const data::PhiloxWords words =
      data::philox(data::RandomKey::of(seed, "sample " + name),
                   {static_cast<uint32_t>(counter), static_cast<uint32_t>(counter >> 32), 0, 0});
  const double unit = data::uniform_double(words[0], words[1]);
  switch (kind) {
    case Kind::kChoice:
      return choices[static_cast<size_t>(unit * static_cast<double>(choices.size()))];
    case Kind::kInteger:
      return Node::scalar(fmt::format("{:.0f}", low + std::floor(unit * (high - low + 1))), place);
    case Kind::kUniform:
      return Node::scalar(fmt::format("{:.6g}", low + unit * (high - low)), place);
    case Kind::kLogUniform:
      return Node::scalar(fmt::format("{:.6g}", std::exp(std::log(low) + unit * (std::log(high) - std::log(low)))),
                          place);
  }
  return {};
}

Sweep::Sweep(const Node* sweep, const Node* sample, const std::string& path, Faults& faults) {
  const size_t fault_count = faults.added();
  sampled_ = sample != nullptr;
  if (sweep == nullptr && sampled_)
    faults.add(sample->place, path + ".sample", "expected `sweep` beside it, found none");
  if (sweep != nullptr) read_variables(*sweep, path + ".sweep", faults);
  if (sampled_) {
    read_sample(*sample, path + ".sample", faults);
  } else {
    size_ = grid_size(sweep != nullptr ? sweep->place : Place{}, path + ".sweep", faults);
  }
  if (faults.added() != fault_count) size_ = 0;
}

void Sweep::read_variables(const Node& sweep, const std::string& path, Faults& faults) {
  if (sweep.kind != Node::Kind::kMap || sweep.children.empty()) {
    faults.add(sweep.place, path,
               fmt::format("expected a mapping from variables to lists, found {}",
                           sweep.kind == Node::Kind::kMap ? "an empty one" : describe(sweep)));
    return;
  }
  for (const Node& child : sweep.children) {
    SweepVariable variable;
    variable.name = child.key;
    variable.place = child.place;
    if (read_variable(child, sampled_, variable, fmt::format("{}.{}", path, child.key), faults)) {
      variables_.push_back(std::move(variable));
    }
  }
}

void Sweep::read_sample(const Node& sample, const std::string& path, Faults& faults) {
  if (sample.kind == Node::Kind::kMap) {
    const KeyReader reader(sample_block(), sample, path, faults);
    size_ = reader.integer("count");
    seed_ = static_cast<uint64_t>(reader.integer("seed"));
  } else {
    size_ = integer_of(sample).value_or(0);
    if (size_ < 1) {
      faults.add(
          sample.place, path,
          fmt::format("expected a whole number of at least 1, or {{count: N, seed: S}}, found {}", describe(sample)));
    }
  }
  if (size_ > kMaxVariants) {
    faults.add(sample.place, path, fmt::format("expected at most {} models, found {}", kMaxVariants, size_));
  }
}

int64_t Sweep::grid_size(const Place& place, const std::string& path, Faults& faults) const {
  int64_t size = 1;
  for (const SweepVariable& variable : variables_) {
    size *= static_cast<int64_t>(variable.choices.size());
    if (size > kMaxVariants) {
      faults.add(place, path,
                 fmt::format("expected at most {} models, found a larger grid; use `sample: N`", kMaxVariants));
      return 0;
    }
  }
  return size;
}

Variables Sweep::variant(int64_t index) const {
  Variables values;
  values["index"] = Node::scalar(std::to_string(index), {});
  int64_t rest = index;
  for (auto variable = variables_.rbegin(); variable != variables_.rend(); ++variable) {
    if (sampled_) {
      values[variable->name] = variable->draw(seed_, index);
      continue;
    }
    const auto count = static_cast<int64_t>(variable->choices.size());
    values[variable->name] = variable->choices[static_cast<size_t>(rest % count)];
    rest /= count;
  }
  return values;
}

}  // namespace tutti::launch
