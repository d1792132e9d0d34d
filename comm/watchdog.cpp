#include "comm/watchdog.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "comm/tags.h"

namespace tutti::comm {
namespace {

using std::chrono::nanoseconds;

constexpr nanoseconds kLongestPeriod = std::chrono::seconds(1);
constexpr nanoseconds kLongestTimeBetweenLooks = std::chrono::milliseconds(10);
constexpr size_t kDescriptionBytes = 200;
constexpr size_t kNamedRanks = 4;

}  // namespace

/// One heartbeat. It says how the sender stands, not what has changed: one that is left out takes nothing away.
struct Watchdog::Beat {
  Stage stage = Stage::kWorking;
  int64_t stop_requested = 0;
  int64_t progress_count = 0;
  int64_t has_work = 0;
  int64_t waits = 0;
  int64_t patience_ms = 0;
  std::array<char, kDescriptionBytes> description{};

  std::string last_word() const {
    const std::string text(description.data(), strnlen(description.data(), description.size()));
    return text.empty() ? "none" : text;
  }
};

/// The exchange of heartbeats with another rank.
struct Watchdog::Peer {
  int rank;
  Beat said{};      // its newest heartbeat
  Beat incoming{};  // its next one
  Beat told{};      // ours, the newest
  nanoseconds heard_at{0};
  nanoseconds progressed_at{0};
  nanoseconds next_send{0};
  std::unique_ptr<Pending> receiving{};
  std::unique_ptr<Pending> sending{};

  bool is_over() const { return said.stage == Stage::kLeft && told.stage == Stage::kLeft && !sending; }
};

Watchdog::Watchdog(Communicator& communicator, Settings settings)
    : communicator_(communicator),
      settings_(std::move(settings)),
      period_(std::min<nanoseconds>(settings_.deadline / 8, kLongestPeriod)),
      clock_(period_) {
  const int first = communicator.rank() == 0 ? 1 : 0;
  const int last = communicator.rank() == 0 ? communicator.size() - 1 : 0;
  for (int rank = first; rank <= last; ++rank) {
    Peer& peer = *peers_.emplace_back(std::make_unique<Peer>(rank));
    peer.receiving = communicator.receive(std::as_writable_bytes(std::span(&peer.incoming, 1)), rank, kWatchdogTag);
  }
}

Watchdog::~Watchdog() = default;

void Watchdog::set_deadline(std::chrono::milliseconds deadline) {
  settings_.deadline = deadline;
  period_ = std::min<nanoseconds>(deadline / 8, kLongestPeriod);
  clock_ = AwakeClock(period_);
  now_ = next_look_ = next_sample_ = own_progressed_ = all_still_since_ = nanoseconds(0);
  for (const auto& peer : peers_) peer->heard_at = peer->progressed_at = peer->next_send = nanoseconds(0);
}

void Watchdog::poll() {
  now_ = clock_.look();
  if (now_ < next_look_ || all_left_) return;
  next_look_ = now_ + std::min(period_ / 4, kLongestTimeBetweenLooks);
  sample_lanes();
  receive_beats();
  advance_stage();
  send_due_beats();
  for (const auto& peer : peers_) judge(*peer);
  judge_own_lanes();
  judge_all();
}

void Watchdog::request_stop() {
  stop_requested_.store(true, std::memory_order_relaxed);
  next_look_ = now_;
}

void Watchdog::leave() {
  if (stage_ == Stage::kWorking) stage_ = Stage::kLeaving;
  next_look_ = now_;
}

void Watchdog::sample_lanes() {
  if (now_ < next_sample_ || !settings_.lanes) return;
  next_sample_ = now_ + period_;
  const int64_t before = own_.progress_count;
  own_ = settings_.lanes();
  if (own_.progress_count != before || !own_.has_work) own_progressed_ = now_;
  if (own_.progress_count != before || own_.has_work) all_still_since_ = now_;
}

void Watchdog::receive_beats() {
  for (const auto& peer : peers_) {
    while (peer->receiving && peer->receiving->test()) take(*peer);
  }
}

void Watchdog::take(Peer& peer) {
  const Beat& beat = peer.incoming;
  peer.heard_at = now_;
  if (beat.progress_count != peer.said.progress_count || beat.has_work == 0) peer.progressed_at = now_;
  if (beat.progress_count != peer.said.progress_count || beat.has_work != 0) all_still_since_ = now_;
  if (beat.stop_requested != 0) stop_requested_.store(true, std::memory_order_relaxed);
  peer.said = beat;
  peer.receiving.reset();
  if (peer.said.stage == Stage::kLeft) return;
  peer.receiving = communicator_.receive(std::as_writable_bytes(std::span(&peer.incoming, 1)), peer.rank, kWatchdogTag);
}

/// Rank 0 leaves once all others are leaving, the others once rank 0 has left.
void Watchdog::advance_stage() {
  const Stage awaited = communicator_.rank() == 0 ? Stage::kLeaving : Stage::kLeft;
  const bool others_ready = std::ranges::all_of(peers_, [&](const auto& peer) { return peer->said.stage >= awaited; });
  if (stage_ == Stage::kLeaving && others_ready) stage_ = Stage::kLeft;
}

void Watchdog::send_due_beats() {
  for (const auto& peer : peers_) {
    if (peer->sending && peer->sending->test()) peer->sending.reset();
    if (peer->sending || peer->told.stage == Stage::kLeft) continue;
    const bool has_news = peer->told.stage != stage_ || (peer->told.stop_requested != 0) != stop_requested();
    if (has_news || now_ >= peer->next_send) send_beat(*peer);
  }
  all_left_ = stage_ == Stage::kLeft && std::ranges::all_of(peers_, [](const auto& peer) { return peer->is_over(); });
}

void Watchdog::send_beat(Peer& peer) {
  peer.told = {stage_, stop_requested(), own_.progress_count, own_.has_work, own_.waits, own_.patience.count(), {}};
  own_.description.copy(peer.told.description.data(), kDescriptionBytes);
  peer.next_send = now_ + period_;
  peer.sending = communicator_.send(std::as_bytes(std::span(&peer.told, 1)), peer.rank, kWatchdogTag);
}

void Watchdog::judge(const Peer& peer) const {
  if (peer.said.stage == Stage::kLeft) return;
  if (now_ - peer.heard_at > settings_.deadline) {
    accuse(peer.rank, "has been silent", settings_.deadline, peer.said.last_word(), "Look for that process");
  }
  const auto patience = patience_with(std::chrono::milliseconds(peer.said.patience_ms));
  if (peer.said.has_work != 0 && now_ - peer.progressed_at > patience) {
    accuse(peer.rank, "has work but has made no progress", patience, peer.said.last_word(),
           "Look at that process and at what it waits for, or raise run.deadline if that may take so long");
  }
}

void Watchdog::judge_own_lanes() const {
  const auto patience = patience_with(own_.patience);
  if (!own_.has_work || now_ - own_progressed_ <= patience) return;
  accuse(communicator_.rank(), "(this one) has work but has made no progress", patience, own_.description,
         "Look at what it waits for, or raise run.deadline if that may take so long");
}

std::vector<std::pair<int, std::string>> Watchdog::waiting() const {
  std::vector<std::pair<int, std::string>> ranks;
  if (own_.waits) ranks.emplace_back(communicator_.rank(), own_.description);
  for (const auto& peer : peers_) {
    if (peer->said.waits != 0) ranks.emplace_back(peer->rank, peer->said.last_word());
  }
  return ranks;
}

void Watchdog::judge_all() {
  if (communicator_.rank() != 0) return;
  const auto waiting_ranks = waiting();
  if (waiting_ranks.empty()) all_still_since_ = now_;
  // What the others said is up to a period old, and so was what they knew.
  if (now_ - all_still_since_ <= settings_.deadline + 2 * period_) return;
  std::vector<int> ranks;
  std::vector<std::string> words;
  for (const auto& [rank, word] : waiting_ranks) {
    ranks.push_back(rank);
    if (words.size() < kNamedRanks) words.push_back(fmt::format("{}: {}", settings_.roster.describe(rank), word));
  }
  if (ranks.size() > kNamedRanks) words.push_back(fmt::format("and {} more", ranks.size() - kNamedRanks));
  throw SilentRank(
      ranks,
      fmt::format("the job has stood still for {} (run.deadline): no rank has work, and these wait for others: {}. "
                  "The job is ended. Look at the network between the ranks, or raise run.deadline if one exchange "
                  "may take so long, then start it again with --resume.",
                  in_seconds(settings_.deadline), fmt::join(words, "; ")));
}

std::chrono::milliseconds Watchdog::patience_with(std::chrono::milliseconds patience) const {
  return std::max(patience, settings_.deadline);
}

void Watchdog::accuse(int rank, const char* fault, std::chrono::milliseconds limit, const std::string& last_word,
                      const char* advice) const {
  throw SilentRank(
      {rank}, fmt::format("{} {} for {}{}. Last word: {}. The job is ended. {}, then start it again with --resume.",
                          settings_.roster.describe(rank), fault, in_seconds(limit),
                          limit == settings_.deadline ? " (run.deadline)" : "", last_word, advice));
}

}  // namespace tutti::comm
