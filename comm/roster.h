// Who the ranks are: host and process of each.
#ifndef TUTTI_COMM_ROSTER_H
#define TUTTI_COMM_ROSTER_H

#include <cstdint>
#include <string>
#include <vector>

#include "comm/communicator.h"

namespace tutti::comm {

struct Deadline;

struct Process {
  std::string host;
  int64_t process_id = 0;
  bool operator==(const Process&) const = default;
};

/// Host and process id of the caller.
Process this_process();

/// The processes of all ranks, for messages a person can act on.
class Roster {
 public:
  Roster() = default;
  explicit Roster(std::vector<Process> processes) : processes_(std::move(processes)) {}

  /// "rank 2 (host n17, process 4711)", or "rank 2" where its process is not known.
  std::string describe(int rank) const;

  /// The same for several, joined by commas.
  std::string describe(const std::vector<int>& ranks) const;

  const std::vector<Process>& processes() const { return processes_; }

 private:
  std::vector<Process> processes_;
};

/// Collects every rank's process. Collective.
Roster collect_roster(Communicator& communicator, const Process& own, const Deadline& deadline);

}  // namespace tutti::comm

#endif
