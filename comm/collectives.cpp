#include "comm/collectives.h"

#include <algorithm>
#include <memory>

#include "comm/byte_strings.h"
#include "comm/tags.h"

namespace tutti::comm {
namespace {

/// Sends a byte string of any size: its size as one message, its bytes, if any, as another.
class StringSend {
 public:
  StringSend(Communicator& communicator, std::string_view bytes, int to) : size_(static_cast<int64_t>(bytes.size())) {
    header_ = communicator.send(std::as_bytes(std::span(&size_, 1)), to, kCollectiveTag);
    if (!bytes.empty()) payload_ = communicator.send(std::as_bytes(std::span(bytes)), to, kCollectiveTag);
  }
  StringSend(const StringSend&) = delete;

  bool test() { return header_->test() && (!payload_ || payload_->test()); }

 private:
  int64_t size_;
  std::unique_ptr<Pending> header_, payload_;
};

/// Receives what a StringSend sends.
class StringReceive {
 public:
  StringReceive(Communicator& communicator, int from) : communicator_(communicator), from_(from) {
    header_ = communicator.receive(std::as_writable_bytes(std::span(&size_, 1)), from, kCollectiveTag);
  }
  StringReceive(const StringReceive&) = delete;

  bool test() {
    if (!header_->test()) return false;
    if (size_ == 0) return true;
    if (!payload_) {
      bytes_.resize(static_cast<size_t>(size_));
      payload_ = communicator_.receive(std::as_writable_bytes(std::span(bytes_)), from_, kCollectiveTag);
    }
    return payload_->test();
  }

  std::string take() { return std::move(bytes_); }

 private:
  Communicator& communicator_;
  int from_;
  int64_t size_ = 0;
  std::string bytes_;
  std::unique_ptr<Pending> header_, payload_;
};

template <typename Transfer>
using ByRank = std::vector<std::unique_ptr<Transfer>>;  // null at this rank's place

/// Waits until all transfers are complete.
template <typename Transfer>
void wait_for_all(ByRank<Transfer>& transfers, const Deadline& deadline) {
  const auto missing = [&] {
    std::vector<int> ranks;
    for (size_t i = 0; i < transfers.size(); ++i) {
      if (transfers[i] && !transfers[i]->test()) ranks.push_back(static_cast<int>(i));
    }
    return ranks;
  };
  wait_until(
      deadline, [&] { return missing().empty(); }, missing);
}

/// The deadline of a rank that waits for the root while the root may wait for others.
Deadline behind_root(Deadline deadline) {
  deadline.grace += std::min(deadline.limit / 2, std::chrono::milliseconds(5000));
  return deadline;
}

}  // namespace

std::string broadcast(Communicator& communicator, std::string_view bytes, const Deadline& deadline, int root) {
  const auto size = static_cast<size_t>(communicator.size());
  if (communicator.rank() != root) {
    ByRank<StringReceive> receives(size);
    auto& receive = receives[static_cast<size_t>(root)] = std::make_unique<StringReceive>(communicator, root);
    wait_for_all(receives, behind_root(deadline));
    return receive->take();
  }
  ByRank<StringSend> sends(size);
  for (int to = 0; to < communicator.size(); ++to) {
    if (to != root) sends[static_cast<size_t>(to)] = std::make_unique<StringSend>(communicator, bytes, to);
  }
  wait_for_all(sends, deadline);
  return std::string(bytes);
}

std::vector<std::string> gather(Communicator& communicator, std::string_view bytes, const Deadline& deadline,
                                int root) {
  const auto size = static_cast<size_t>(communicator.size());
  if (communicator.rank() != root) {
    ByRank<StringSend> sends(size);
    sends[static_cast<size_t>(root)] = std::make_unique<StringSend>(communicator, bytes, root);
    wait_for_all(sends, behind_root(deadline));
    return {};
  }
  ByRank<StringReceive> receives(size);
  for (int from = 0; from < communicator.size(); ++from) {
    if (from != root) receives[static_cast<size_t>(from)] = std::make_unique<StringReceive>(communicator, from);
  }
  wait_for_all(receives, deadline);
  std::vector<std::string> gathered;
  for (auto& receive : receives) gathered.push_back(receive ? receive->take() : std::string(bytes));
  return gathered;
}

std::vector<std::string> all_gather(Communicator& communicator, std::string_view bytes, const Deadline& deadline) {
  return unpack(broadcast(communicator, pack(gather(communicator, bytes, deadline)), deadline));
}

void barrier(Communicator& communicator, const Deadline& deadline) {
  gather(communicator, {}, deadline);
  broadcast(communicator, {}, deadline);
}

}  // namespace tutti::comm
