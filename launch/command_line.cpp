#include "launch/command_line.h"

#include <fmt/format.h>
#include <fmt/ostream.h>
#include <fmt/ranges.h>

#include <boost/program_options.hpp>
#include <utility>

#include "launch/command.h"

namespace tutti::launch {

namespace po = boost::program_options;

namespace {

po::options_description declare(const std::vector<OptionForm>& options) {
  po::options_description declared("Options");
  auto add = declared.add_options();
  add("help,h", "show this text");
  for (const OptionForm& option : options) {
    const char* name = option.name.c_str();
    const char* meaning = option.meaning.c_str();
    switch (option.kind) {
      case OptionKind::kFlag:
        add(name, meaning);
        break;
      case OptionKind::kText:
        add(name, po::value<std::string>(), meaning);
        break;
      case OptionKind::kTexts:
        add(name, po::value<std::vector<std::string>>()->composing(), meaning);
        break;
      case OptionKind::kNumber:
        add(name, po::value<int64_t>(), meaning);
        break;
    }
  }
  return declared;
}

}  // namespace

CommandLine::CommandLine(CommandForm form, const std::vector<std::string>& arguments)
    : form_(std::move(form)), declared_(declare(form_.options)) {
  po::positional_options_description positional;
  if (!form_.operand.empty()) positional.add(form_.operand.c_str(), 1);
  try {
    po::store(po::command_line_parser(arguments)
                  .options(declared_)
                  .positional(positional)
                  .style(po::command_line_style::default_style & ~po::command_line_style::allow_guessing)
                  .run(),
              values_);
  } catch (const po::error& error) {
    refuse(fmt::format("{}; `tutti {} --help` lists the options", error.what(), form_.name));
  }
}

bool CommandLine::helped() const {
  if (!has("help")) return false;
  fmt::print(fmt::runtime(form_.help), fmt::streamed(declared_));
  return true;
}

std::string CommandLine::text(const std::string& option) const {
  if (has(option)) return values_[option].as<std::string>();
  const std::string expected = option == form_.operand ? form_.operand_meaning : "--" + option;
  refuse(fmt::format("expected {}, found none; `tutti {} --help` shows how", expected, form_.name));
}

std::string CommandLine::text(const std::string& option, const std::string& absent) const {
  return has(option) ? text(option) : absent;
}

std::vector<std::string> CommandLine::texts(const std::string& option) const {
  return has(option) ? values_[option].as<std::vector<std::string>>() : std::vector<std::string>{};
}

int64_t CommandLine::integer(const std::string& option, int64_t absent, int64_t least) const {
  if (!has(option)) return absent;
  const auto value = values_[option].as<int64_t>();
  if (value < least) refuse(fmt::format("--{}: expected at least {}, found {}", option, least, value));
  return value;
}

size_t CommandLine::choice(const std::string& option, const std::vector<std::string>& choices) const {
  const std::string value = text(option, choices[0]);
  for (size_t i = 0; i < choices.size(); ++i) {
    if (choices[i] == value) return i;
  }
  refuse(fmt::format("--{}: expected {}, found '{}'", option, fmt::join(choices, " or "), value));
}

void CommandLine::refuse(const std::string& message) const {
  throw UsageError(fmt::format("{}: {}", form_.name, message));
}

}  // namespace tutti::launch
