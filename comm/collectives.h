// What all ranks do together, built on single messages: each with a deadline that names the rank it waits for.
#ifndef TUTTI_COMM_COLLECTIVES_H
#define TUTTI_COMM_COLLECTIVES_H

#include <string>
#include <string_view>
#include <vector>

#include "comm/communicator.h"
#include "comm/deadline.h"

namespace tutti::comm {

// All ranks of the communicator call the same collectives in the same order, each from its communication thread. The
// call returns when this rank's part is done; it polls, so `deadline.idle` runs meanwhile. After the deadline
// SilentRank names the ranks that are missing. A rank that waits for the root waits a little longer than the root waits
// for others, so that the message comes from the rank that knows who is missing.

/// Returns once every rank has called it.
void barrier(Communicator& communicator, const Deadline& deadline);

/// The root's bytes on every rank; the others' `bytes` are ignored.
std::string broadcast(Communicator& communicator, std::string_view bytes, const Deadline& deadline, int root = 0);

/// Every rank's bytes, by rank, on the root; empty on the others. Sizes may differ.
std::vector<std::string> gather(Communicator& communicator, std::string_view bytes, const Deadline& deadline,
                                int root = 0);

/// Every rank's bytes, by rank, on every rank. Sizes may differ.
std::vector<std::string> all_gather(Communicator& communicator, std::string_view bytes, const Deadline& deadline);

}  // namespace tutti::comm

#endif
