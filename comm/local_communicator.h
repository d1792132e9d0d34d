// Messages between threads of one process that stand for ranks.
#ifndef TUTTI_COMM_LOCAL_COMMUNICATOR_H
#define TUTTI_COMM_LOCAL_COMMUNICATOR_H

#include <memory>
#include <vector>

#include "comm/communicator.h"
#include "comm/thread_check.h"

namespace tutti::comm {

/// A rank that is a thread. Keeps to the contract as strictly as MPI may: a send is complete only once it has been
/// received, each communicator belongs to the first thread that uses it, and a message of the wrong size throws
/// std::runtime_error at the receiver's test().
class LocalCommunicator final : public Communicator {
 public:
  /// The communicators of `size` ranks, by rank.
  static std::vector<std::unique_ptr<LocalCommunicator>> create(int size);

  ~LocalCommunicator() override;

  int rank() const override { return rank_; }
  int size() const override;
  int greatest_tag() const override { return 32'767; }
  std::unique_ptr<Pending> send(std::span<const std::byte> bytes, int to, int tag) override;
  std::unique_ptr<Pending> receive(std::span<std::byte> bytes, int from, int tag) override;
  std::optional<Arrival> probe(int tag) override;

  /// Ends the process.
  [[noreturn]] void abort(int exit_code) override;

  int64_t sent_bytes() const override { return sent_bytes_; }
  int64_t sent_messages() const override { return sent_messages_; }

 private:
  class Mailbox;
  class Send;
  class Receive;
  using Mailboxes = std::vector<std::shared_ptr<Mailbox>>;

  LocalCommunicator(std::shared_ptr<const Mailboxes> mailboxes, int rank);

  std::shared_ptr<const Mailboxes> mailboxes_;  // by rank
  int rank_;
  ThreadCheck thread_{ThreadCheck::Binding::kFirstUse};
  int64_t sent_bytes_ = 0;
  int64_t sent_messages_ = 0;
};

}  // namespace tutti::comm

#endif
