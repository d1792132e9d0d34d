#include "comm/local_communicator.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <list>
#include <mutex>
#include <stdexcept>

namespace tutti::comm {

/// The messages to one rank that were not received yet, and its receives that found no message yet. A message and a
/// receive meet in the order in which each was started.
class LocalCommunicator::Mailbox {
 public:
  struct Message {
    int source;
    int tag;
    std::span<const std::byte> bytes;
    std::vector<std::byte> copy;  // what `bytes` points to when the sender has given up its own
    bool done = false;
  };
  struct Slot {
    int source;
    int tag;
    std::span<std::byte> bytes;
    int64_t found_bytes = -1;  // size of the message it met
  };

  void put(const std::shared_ptr<Message>& message) {
    const std::lock_guard lock(mutex_);
    const auto slot = std::find_if(slots_.begin(), slots_.end(), [&](const auto& s) { return meet(*message, *s); });
    if (slot == slots_.end()) return messages_.push_back(message);
    hand_over(*message, **slot);
    slots_.erase(slot);
  }

  void expect(const std::shared_ptr<Slot>& slot) {
    const std::lock_guard lock(mutex_);
    const auto message =
        std::find_if(messages_.begin(), messages_.end(), [&](const auto& m) { return meet(*m, *slot); });
    if (message == messages_.end()) return slots_.push_back(slot);
    hand_over(**message, *slot);
    messages_.erase(message);
  }

  std::optional<Arrival> find(int tag) {
    const std::lock_guard lock(mutex_);
    for (const auto& message : messages_) {
      if (message->tag == tag) return Arrival{message->source, static_cast<int64_t>(message->bytes.size())};
    }
    return std::nullopt;
  }

  bool is_done(const Message& message) {
    const std::lock_guard lock(mutex_);
    return message.done;
  }

  int64_t found_bytes(const Slot& slot) {
    const std::lock_guard lock(mutex_);
    return slot.found_bytes;
  }

  /// The sender gives up its buffer; the message is still delivered.
  void detach(Message& message) {
    const std::lock_guard lock(mutex_);
    if (message.done) return;
    message.copy.assign(message.bytes.begin(), message.bytes.end());
    message.bytes = message.copy;
  }

  void withdraw(const std::shared_ptr<Slot>& slot) {
    const std::lock_guard lock(mutex_);
    slots_.remove(slot);
  }

 private:
  static bool meet(const Message& message, const Slot& slot) {
    return message.source == slot.source && message.tag == slot.tag;
  }

  static void hand_over(Message& message, Slot& slot) {
    if (message.bytes.size() == slot.bytes.size()) std::ranges::copy(message.bytes, slot.bytes.begin());
    slot.found_bytes = static_cast<int64_t>(message.bytes.size());
    message.done = true;
  }

  std::mutex mutex_;
  std::list<std::shared_ptr<Message>> messages_;
  std::list<std::shared_ptr<Slot>> slots_;
};

class LocalCommunicator::Send final : public Pending {
 public:
  Send(std::shared_ptr<Mailbox> mailbox, std::shared_ptr<Mailbox::Message> message)
      : mailbox_(std::move(mailbox)), message_(std::move(message)) {
    mailbox_->put(message_);
  }
  Send(const Send&) = delete;
  ~Send() override { mailbox_->detach(*message_); }

  bool test() override { return mailbox_->is_done(*message_); }

 private:
  std::shared_ptr<Mailbox> mailbox_;
  std::shared_ptr<Mailbox::Message> message_;
};

class LocalCommunicator::Receive final : public Pending {
 public:
  Receive(std::shared_ptr<Mailbox> mailbox, std::shared_ptr<Mailbox::Slot> slot)
      : mailbox_(std::move(mailbox)), slot_(std::move(slot)) {
    mailbox_->expect(slot_);
  }
  Receive(const Receive&) = delete;
  ~Receive() override { mailbox_->withdraw(slot_); }

  bool test() override {
    const int64_t found = mailbox_->found_bytes(*slot_);
    if (found < 0) return false;
    if (found == static_cast<int64_t>(slot_->bytes.size())) return true;
    throw std::runtime_error(fmt::format("Message from rank {} with tag {}: expected {} bytes, found one of {} bytes",
                                         slot_->source, slot_->tag, slot_->bytes.size(), found));
  }

 private:
  std::shared_ptr<Mailbox> mailbox_;
  std::shared_ptr<Mailbox::Slot> slot_;
};

std::vector<std::unique_ptr<LocalCommunicator>> LocalCommunicator::create(int size) {
  auto mailboxes = std::make_shared<Mailboxes>();
  for (int rank = 0; rank < size; ++rank) mailboxes->push_back(std::make_shared<Mailbox>());
  std::vector<std::unique_ptr<LocalCommunicator>> communicators;
  communicators.reserve(mailboxes->size());
  for (int rank = 0; rank < size; ++rank) {
    communicators.push_back(std::unique_ptr<LocalCommunicator>(new LocalCommunicator(mailboxes, rank)));
  }
  return communicators;
}

LocalCommunicator::LocalCommunicator(std::shared_ptr<const Mailboxes> mailboxes, int rank)
    : mailboxes_(std::move(mailboxes)), rank_(rank) {}

LocalCommunicator::~LocalCommunicator() = default;

int LocalCommunicator::size() const { return static_cast<int>(mailboxes_->size()); }

std::unique_ptr<Pending> LocalCommunicator::send(std::span<const std::byte> bytes, int to, int tag) {
  thread_.check("Communicator::send");
  sent_bytes_ += static_cast<int64_t>(bytes.size());
  ++sent_messages_;
  return std::make_unique<Send>(mailboxes_->at(static_cast<size_t>(to)),
                                std::make_shared<Mailbox::Message>(Mailbox::Message{rank_, tag, bytes, {}}));
}

std::unique_ptr<Pending> LocalCommunicator::receive(std::span<std::byte> bytes, int from, int tag) {
  thread_.check("Communicator::receive");
  return std::make_unique<Receive>(mailboxes_->at(static_cast<size_t>(rank_)),
                                   std::make_shared<Mailbox::Slot>(Mailbox::Slot{from, tag, bytes}));
}

std::optional<Arrival> LocalCommunicator::probe(int tag) {
  thread_.check("Communicator::probe");
  return mailboxes_->at(static_cast<size_t>(rank_))->find(tag);
}

void LocalCommunicator::abort(int exit_code) {
  std::fflush(nullptr);
  std::_Exit(exit_code);
}

}  // namespace tutti::comm
