// Messages between ranks over MPI.
#ifndef TUTTI_COMM_MPI_COMMUNICATOR_H
#define TUTTI_COMM_MPI_COMMUNICATOR_H

#include <memory>

#include "comm/communicator.h"
#include "comm/mpi_session.h"

namespace tutti::comm {

/// All ranks of the session, with messages of their own: a duplicate of the world. Only the session's thread may call
/// it; another one gets std::logic_error. A failed or mismatched message is an MpiError at test().
///
/// A message of more than `chunk_bytes` travels as a notice of its size and chunks of that size, since MPI counts in
/// 32 bits. Both ends must have the same limit.
class MpiCommunicator final : public Communicator {
 public:
  static constexpr int64_t kChunkBytes = int64_t{1} << 30;

  /// Collective over all ranks, and blocks. The session must outlive it. `chunk_bytes` is in [1, 2^30].
  explicit MpiCommunicator(const MpiSession& session, int64_t chunk_bytes = kChunkBytes);

  /// Collective; every Pending of this communicator must be gone.
  ~MpiCommunicator() override;

  int rank() const override;
  int size() const override;
  int greatest_tag() const override;
  std::unique_ptr<Pending> send(std::span<const std::byte> bytes, int to, int tag) override;
  std::unique_ptr<Pending> receive(std::span<std::byte> bytes, int from, int tag) override;
  std::optional<Arrival> probe(int tag) override;
  [[noreturn]] void abort(int exit_code) override;
  int64_t sent_bytes() const override;
  int64_t sent_messages() const override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tutti::comm

#endif
