#include "comm/tree_sum.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <utility>

#include "comm/tree_add.h"

namespace tutti::comm {
namespace {

constexpr size_t kLongestErrorBytes = 1000;

/// Opens a member's message to another. After it come the scalars of all the member's subtrees, then the subtrees'
/// pieces of the receiver's chunk. An error's text is sent later, and only if there is one.
struct Header {
  int64_t stop_requested = 0;
  int64_t error_bytes = 0;
};

/// The first kLongestErrorBytes of a text, cut between two characters of UTF-8.
std::string shortened(std::string text) {
  if (text.size() <= kLongestErrorBytes) return text;
  size_t size = kLongestErrorBytes;
  while (size > 0 && (static_cast<unsigned char>(text[size]) & 0xC0) == 0x80) --size;
  text.resize(size);
  return text;
}

struct Chunk {
  int64_t begin;
  int64_t end;
  int64_t size() const { return end - begin; }
};

/// The elements that the member at `position` adds for all.
Chunk chunk_of(int64_t element_count, size_t member_count, size_t position) {
  const auto bound = [&](size_t p) {
    return element_count * static_cast<int64_t>(p) / static_cast<int64_t>(member_count);
  };
  return {bound(position), bound(position + 1)};
}

int64_t subtree_count(const GrainRun& run) { return static_cast<int64_t>(subtrees_of(run.begin, run.end).size()); }

int64_t message_bytes(int64_t subtrees, int64_t scalar_count, int64_t chunk_elements, size_t element_bytes) {
  return static_cast<int64_t>(sizeof(Header)) + subtrees * (scalar_count * static_cast<int64_t>(sizeof(double)) +
                                                            chunk_elements * static_cast<int64_t>(element_bytes));
}

/// A started message and its memory.
struct Transfer {
  int rank = 0;
  std::unique_ptr<std::byte[]> bytes;
  std::unique_ptr<Pending> pending;  // null: nothing to wait for

  bool complete() {
    if (pending && pending->test()) pending.reset();
    return pending == nullptr;
  }
};

bool all_complete(std::vector<Transfer>& transfers) {
  bool complete = true;
  for (Transfer& transfer : transfers) complete = transfer.complete() && complete;
  return complete;
}

}  // namespace

template <typename Element>
struct TreeSum<Element>::State {
  enum class Phase { kCollecting, kSpreading, kFinished };

  Communicator& communicator;
  Team team;
  int tag;
  std::vector<Part> parts;
  Word word;
  std::span<Element> sum;
  size_t position = 0;
  size_t scalar_count = 0;

  Phase phase = Phase::kCollecting;
  std::vector<double> scalars{};
  Verdict verdict{};
  std::vector<Transfer> incoming{};  // of the present phase; in the first, by member
  std::vector<Transfer> outgoing{};

  int64_t element_count() const { return static_cast<int64_t>(sum.size()); }
  Chunk chunk(size_t member) const { return chunk_of(element_count(), team.runs.size(), member); }
  std::span<Element> sum_of_chunk(size_t member) const {
    return sum.subspan(static_cast<size_t>(chunk(member).begin), static_cast<size_t>(chunk(member).size()));
  }
  Header header() const { return {word.stop_requested, static_cast<int64_t>(word.error.size())}; }

  void check();
  bool advance();

  // Phase 1: every member sends every other its subtrees' pieces of the other's chunk.
  void collect();
  void send_pieces(size_t to);
  void receive_pieces(size_t from);
  Header header_of(size_t member) const;
  std::optional<size_t> decide();
  void add();

  // Phase 2: the chunks' sums, or the first error's text, go to all.
  void spread_sums();
  void spread_error(size_t failed_member);
};

template <typename Element>
void TreeSum<Element>::State::check() {
  const int own = team.position_of(communicator.rank());
  if (own < 0) throw std::invalid_argument(fmt::format("Tree sum: rank {} is not in the team", communicator.rank()));
  position = static_cast<size_t>(own);
  const auto expected = static_cast<size_t>(subtree_count(team.runs[position]));
  if (parts.size() != expected) {
    throw std::invalid_argument(fmt::format("Tree sum: expected {} parts for grains [{}, {}), found {}", expected,
                                            team.runs[position].begin, team.runs[position].end, parts.size()));
  }
  scalar_count = parts[0].scalars.size();
  for (const Part& part : parts) {
    if (part.elements.size() == sum.size() && part.scalars.size() == scalar_count) continue;
    throw std::invalid_argument(fmt::format("Tree sum: expected parts of {} elements and {} scalars, found {} and {}",
                                            sum.size(), scalar_count, part.elements.size(), part.scalars.size()));
  }
}

template <typename Element>
void TreeSum<Element>::State::collect() {
  incoming.resize(team.runs.size());
  for (size_t member = 0; member < team.runs.size(); ++member) {
    if (member != position) receive_pieces(member);
  }
  for (size_t member = 0; member < team.runs.size(); ++member) {
    if (member != position) send_pieces(member);
  }
}

template <typename Element>
void TreeSum<Element>::State::receive_pieces(size_t from) {
  const auto size = static_cast<size_t>(message_bytes(
      subtree_count(team.runs[from]), static_cast<int64_t>(scalar_count), chunk(position).size(), sizeof(Element)));
  Transfer& transfer = incoming[from];
  transfer.rank = team.runs[from].rank;
  transfer.bytes = std::make_unique_for_overwrite<std::byte[]>(size);
  transfer.pending = communicator.receive({transfer.bytes.get(), size}, transfer.rank, tag);
}

template <typename Element>
void TreeSum<Element>::State::send_pieces(size_t to) {
  const auto size = static_cast<size_t>(message_bytes(
      static_cast<int64_t>(parts.size()), static_cast<int64_t>(scalar_count), chunk(to).size(), sizeof(Element)));
  Transfer& transfer = outgoing.emplace_back();
  transfer.rank = team.runs[to].rank;
  transfer.bytes = std::make_unique_for_overwrite<std::byte[]>(size);
  std::byte* end = transfer.bytes.get();
  const auto append = [&end](const auto* values, size_t count) {
    if (count > 0) std::memcpy(end, values, count * sizeof(*values));
    end += count * sizeof(*values);
  };
  const Header own = header();
  append(&own, 1);
  for (const Part& part : parts) append(part.scalars.data(), scalar_count);
  for (const Part& part : parts) append(part.elements.data() + chunk(to).begin, static_cast<size_t>(chunk(to).size()));
  transfer.pending = communicator.send({transfer.bytes.get(), size}, transfer.rank, tag);
}

template <typename Element>
Header TreeSum<Element>::State::header_of(size_t member) const {
  Header found = header();
  if (member != position) std::memcpy(&found, incoming[member].bytes.get(), sizeof(found));
  return found;
}

/// Sets the verdict, but for the text of another member's error. Returns the first member that has an error.
template <typename Element>
std::optional<size_t> TreeSum<Element>::State::decide() {
  std::optional<size_t> failed;
  for (size_t member = 0; member < team.runs.size(); ++member) {
    const Header said = header_of(member);
    verdict.stop_requested = verdict.stop_requested || said.stop_requested != 0;
    if (said.error_bytes == 0 || failed) continue;
    failed = member;
    verdict.error = member == position ? word.error : std::string(static_cast<size_t>(said.error_bytes), ' ');
  }
  return failed;
}

template <typename Element>
void TreeSum<Element>::State::add() {
  const Chunk own = chunk(position);
  std::vector<Leaf<double>> scalar_leaves;
  std::vector<Leaf<Element>> element_leaves;
  for (size_t member = 0; member < team.runs.size(); ++member) {
    const std::vector<Subtree> subtrees = subtrees_of(team.runs[member].begin, team.runs[member].end);
    const std::byte* const their_scalars = incoming[member].bytes.get() + sizeof(Header);
    const std::byte* const their_elements = their_scalars + subtrees.size() * scalar_count * sizeof(double);
    for (size_t i = 0; i < subtrees.size(); ++i) {
      if (member == position) {
        scalar_leaves.push_back({subtrees[i], parts[i].scalars.data()});
        element_leaves.push_back({subtrees[i], parts[i].elements.data() + own.begin});
      } else {
        scalar_leaves.push_back({subtrees[i], reinterpret_cast<const double*>(their_scalars) + i * scalar_count});
        element_leaves.push_back(
            {subtrees[i], reinterpret_cast<const Element*>(their_elements) + static_cast<int64_t>(i) * own.size()});
      }
    }
  }
  scalars.resize(scalar_count);
  add_in_tree_order<double>(team.grain_count, scalar_leaves, scalars);
  add_in_tree_order<Element>(team.grain_count, element_leaves, sum_of_chunk(position));
}

template <typename Element>
void TreeSum<Element>::State::spread_sums() {
  incoming.clear();
  for (size_t member = 0; member < team.runs.size(); ++member) {
    const int rank = team.runs[member].rank;
    if (member == position) continue;
    if (chunk(member).size() > 0) {
      const auto theirs = std::as_writable_bytes(sum_of_chunk(member));
      incoming.push_back({rank, nullptr, communicator.receive(theirs, rank, tag + 1)});
    }
    if (chunk(position).size() > 0) {
      const auto own = std::as_bytes(sum_of_chunk(position));
      outgoing.push_back({rank, nullptr, communicator.send(own, rank, tag + 1)});
    }
  }
}

template <typename Element>
void TreeSum<Element>::State::spread_error(size_t failed_member) {
  incoming.clear();
  if (failed_member != position) {
    const int rank = team.runs[failed_member].rank;
    const auto text = std::as_writable_bytes(std::span(verdict.error));
    incoming.push_back({rank, nullptr, communicator.receive(text, rank, tag + 1)});
    return;
  }
  for (const GrainRun& run : team.runs) {
    if (run.rank == communicator.rank()) continue;
    const auto text = std::as_bytes(std::span(std::as_const(verdict.error)));
    outgoing.push_back({run.rank, nullptr, communicator.send(text, run.rank, tag + 1)});
  }
}

template <typename Element>
bool TreeSum<Element>::State::advance() {
  const bool sent = all_complete(outgoing);
  if (!all_complete(incoming)) return false;
  if (phase == Phase::kCollecting) {
    const std::optional<size_t> failed = decide();
    if (failed) {
      spread_error(*failed);
    } else {
      add();
      spread_sums();
    }
    phase = Phase::kSpreading;
    return outgoing.empty() && incoming.empty();
  }
  return sent;
}

template <typename Element>
TreeSum<Element>::TreeSum(Communicator& communicator, const Team& team, int tag, std::vector<Part> parts, Word word,
                          std::span<Element> sum)
    : state_(std::make_unique<State>(
          State{communicator, team, tag, std::move(parts), {word.stop_requested, shortened(word.error)}, sum})) {
  state_->check();
  state_->collect();
}

template <typename Element>
TreeSum<Element>::~TreeSum() = default;
template <typename Element>
TreeSum<Element>::TreeSum(TreeSum&&) noexcept = default;

template <typename Element>
bool TreeSum<Element>::progress() {
  if (state_->phase != State::Phase::kFinished && state_->advance()) state_->phase = State::Phase::kFinished;
  return state_->phase == State::Phase::kFinished;
}

template <typename Element>
const std::vector<double>& TreeSum<Element>::scalars() const {
  return state_->scalars;
}

template <typename Element>
const Verdict& TreeSum<Element>::verdict() const {
  return state_->verdict;
}

template <typename Element>
std::vector<int> TreeSum<Element>::waiting_for() const {
  std::vector<int> ranks;
  for (const auto* transfers : {&state_->incoming, &state_->outgoing}) {
    for (const Transfer& transfer : *transfers) {
      if (transfer.pending) ranks.push_back(transfer.rank);
    }
  }
  std::ranges::sort(ranks);
  const auto repeated = std::ranges::unique(ranks);
  ranks.erase(repeated.begin(), repeated.end());
  return ranks;
}

template <typename Element>
int64_t TreeSum<Element>::buffer_bytes(const Team& team, int position, int64_t element_count, int64_t scalar_count) {
  const auto own = static_cast<size_t>(position);
  const size_t member_count = team.runs.size();
  const int64_t own_elements = chunk_of(element_count, member_count, own).size();
  int64_t bytes = tree_add_scratch_bytes<Element>(team.grain_count, own_elements) +
                  scalar_count * static_cast<int64_t>(sizeof(double));
  for (size_t member = 0; member < member_count; ++member) {
    if (member == own) continue;
    const int64_t their_elements = chunk_of(element_count, member_count, member).size();
    bytes += message_bytes(subtree_count(team.runs[own]), scalar_count, their_elements, sizeof(Element)) +
             message_bytes(subtree_count(team.runs[member]), scalar_count, own_elements, sizeof(Element));
  }
  return bytes;
}

template class TreeSum<float>;
template class TreeSum<double>;

}  // namespace tutti::comm
