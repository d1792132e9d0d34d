// Heartbeats between the ranks: names a rank that is silent or stuck, or an exchange that stands still, and spreads the
// request to stop.
#ifndef TUTTI_COMM_WATCHDOG_H
#define TUTTI_COMM_WATCHDOG_H

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "comm/communicator.h"
#include "comm/deadline.h"
#include "comm/roster.h"

namespace tutti::comm {

/// How far a rank's lanes are.
struct LaneProgress {
  int64_t progress_count = 0;             ///< grows with every piece of work that a lane completes
  bool has_work = false;                  ///< a lane is computing; waiting for an exchange is not work
  bool waits = false;                     ///< no lane is computing, though the training is not done
  std::string description;                ///< what the lanes do, "step 120 of mlp-3"; at most 200 bytes are sent
  std::chrono::milliseconds patience{0};  ///< how long this work may make no progress, where longer than the deadline
};

/// Watches over the ranks of a communicator. Every rank tells rank 0 how it does, and rank 0 tells every rank, eight
/// times per deadline and at least once a second. A rank is silent when nothing came from it for the deadline, and
/// stuck when its lanes have work and do not get on for the deadline (or this work's patience). The job stands still
/// when some rank waits for an exchange, and for the deadline no rank has had work or got on. Rank 0 watches all ranks,
/// every rank watches rank 0 and its own lanes. Time in which this process itself did not run does not count: a pause
/// between two calls of poll() counts as at most the time between two heartbeats.
///
/// All members but stop_requested() are called from the communication thread; nothing blocks.
class Watchdog {
 public:
  struct Settings {
    std::chrono::milliseconds deadline{60'000};
    Roster roster{};
    std::function<LaneProgress()> lanes{};  ///< called on the communication thread, once per heartbeat
  };

  /// Every rank constructs one, at about the same time: the deadline of the first heartbeat starts here.
  Watchdog(Communicator& communicator, Settings settings);
  ~Watchdog();

  /// Another deadline from now on. On all ranks alike, or a rank may find others silent that send heartbeats rarely.
  void set_deadline(std::chrono::milliseconds deadline);

  /// Receives and sends the heartbeats that are due. The main loop calls it in every turn. Throws SilentRank, which
  /// names the rank at fault, or, where the job stands still, the ranks that wait.
  void poll();

  /// Asks all ranks to stop at their next step boundary.
  void request_stop();

  /// True once any rank has called request_stop() and word of it has come here. May be called by any thread.
  bool stop_requested() const { return stop_requested_.load(std::memory_order_relaxed); }

  /// Says that this rank has finished its work. The others may still have some: poll() is needed until all_left().
  void leave();

  /// True once every rank has left; then no heartbeat is under way any more.
  bool all_left() const { return all_left_; }

 private:
  enum class Stage : int64_t { kWorking, kLeaving, kLeft };  // after kLeft nothing more is sent
  struct Beat;
  struct Peer;

  void sample_lanes();
  void receive_beats();
  void take(Peer& peer);
  void advance_stage();
  void send_due_beats();
  void send_beat(Peer& peer);
  void judge(const Peer& peer) const;
  void judge_own_lanes() const;
  std::vector<std::pair<int, std::string>> waiting() const;
  void judge_all();
  std::chrono::milliseconds patience_with(std::chrono::milliseconds patience) const;
  [[noreturn]] void accuse(int rank, const char* fault, std::chrono::milliseconds limit, const std::string& last_word,
                           const char* advice) const;

  Communicator& communicator_;
  Settings settings_;
  std::chrono::nanoseconds period_;
  AwakeClock clock_;
  std::chrono::nanoseconds now_{0};
  std::chrono::nanoseconds next_look_{0};
  std::atomic<bool> stop_requested_ = false;
  Stage stage_ = Stage::kWorking;
  bool all_left_ = false;
  LaneProgress own_;
  std::chrono::nanoseconds next_sample_{0};
  std::chrono::nanoseconds own_progressed_{0};
  std::chrono::nanoseconds all_still_since_{0};  // rank 0's
  std::vector<std::unique_ptr<Peer>> peers_;     // the ranks this one exchanges heartbeats with
};

}  // namespace tutti::comm

#endif
