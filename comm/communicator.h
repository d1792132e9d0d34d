// Messages between ranks: the one interface over MPI and over threads of one process.
#ifndef TUTTI_COMM_COMMUNICATOR_H
#define TUTTI_COMM_COMMUNICATOR_H

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

namespace tutti::comm {

/// A started send or receive. The buffer it works on must live, and stay untouched, until test() has returned true.
class Pending {
 public:
  virtual ~Pending() = default;

  /// True once the operation has completed; never blocks. May be called again after that.
  virtual bool test() = 0;
};

/// A message that has arrived and was not received yet.
struct Arrival {
  int source = 0;
  int64_t size_bytes = 0;
};

/// A set of ranks that exchange messages. Messages between two ranks with the same tag arrive in the order of sending.
///
/// All members are called from one thread per rank, the communication thread; no call blocks. A message may have any
/// size: implementations cut what their library cannot send at once. Whatever is collective is built on these calls
/// (collectives.h, tree_sum.h), so that it exists once and has a deadline.
class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// At least 32,767.
  virtual int greatest_tag() const = 0;

  /// Starts sending `bytes` to rank `to`. `tag` is in [0, greatest_tag()]; the first ones are taken (tags.h).
  virtual std::unique_ptr<Pending> send(std::span<const std::byte> bytes, int to, int tag) = 0;

  /// Starts receiving exactly `bytes.size()` bytes from rank `from`. A message of another size is an error.
  virtual std::unique_ptr<Pending> receive(std::span<std::byte> bytes, int from, int tag) = 0;

  /// The first message with this tag that has arrived from anywhere, if there is one. Messages to be found this way
  /// must be at most 1 GiB.
  virtual std::optional<Arrival> probe(int tag) = 0;

  /// Ends the job on all ranks with this exit code, at once.
  [[noreturn]] virtual void abort(int exit_code) = 0;

  /// Payload bytes and messages sent so far by this rank.
  virtual int64_t sent_bytes() const = 0;
  virtual int64_t sent_messages() const = 0;
};

}  // namespace tutti::comm

#endif
