#include "launch/report_exchange.h"

#include <span>
#include <utility>

namespace tutti::launch {

using Clock = std::chrono::steady_clock;

ReportExchange::ReportExchange(comm::Communicator& communicator, int tag, std::chrono::duration<double> interval,
                               Make make, Show show)
    : communicator_(communicator),
      tag_(tag),
      interval_(interval),
      make_(std::move(make)),
      show_(std::move(show)),
      last_(Clock::now()) {}

void ReportExchange::poll() {
  if (communicator_.rank() == 0) receive();
  if (outgoing_ && outgoing_->test()) outgoing_.reset();
  if (finishing_ || outgoing_ || Clock::now() - last_ < interval_) return;
  last_ = Clock::now();
  if (communicator_.rank() == 0) return show_(make_());
  outgoing_text_ = make_().dump();
  outgoing_ = communicator_.send(std::as_bytes(std::span(outgoing_text_)), 0, tag_);
}

void ReportExchange::receive() {
  while (true) {
    if (incoming_ && !incoming_->test()) return;
    if (std::exchange(incoming_, nullptr)) show_(nlohmann::json::parse(incoming_text_));
    const auto arrival = communicator_.probe(tag_);
    if (!arrival) return;
    incoming_text_.resize(static_cast<size_t>(arrival->size_bytes));
    incoming_ = communicator_.receive(std::as_writable_bytes(std::span(incoming_text_)), arrival->source, tag_);
  }
}

bool ReportExchange::finish_sending() {
  finishing_ = true;
  return !outgoing_;
}

}  // namespace tutti::launch
