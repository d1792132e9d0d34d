#include "src/train/team_exchange.h"

#include <optional>
#include <utility>

#include "comm/fast_sum.h"

namespace tutti::train {

namespace {

template <typename Element, template <typename> typename Sum>
class SumOperation final : public comm::Operation {
 public:
  SumOperation(const TeamLine& line, std::vector<at::Tensor> flats, std::vector<std::vector<double>> scalars,
               comm::Word word, std::string description, std::function<void(SumOutcome)> done)
      : line_(line),
        flats_(std::move(flats)),
        scalars_(std::move(scalars)),
        word_(std::move(word)),
        description_(std::move(description)),
        done_(std::move(done)) {}

  void start() override {
    std::vector<typename Sum<Element>::Part> parts;
    for (size_t i = 0; i < scalars_.size(); ++i) parts.push_back({elements(i), scalars_[i]});
    sum_.emplace(*line_.communicator, line_.team, line_.tag, std::move(parts), word_, elements(0));
  }

  bool progress() override { return sum_->progress(); }
  void finished() override { done_({sum_->scalars(), sum_->verdict()}); }
  std::string description() const override { return description_; }
  std::vector<int> waiting_for() const override { return sum_ ? sum_->waiting_for() : std::vector<int>(); }
  int64_t buffer_bytes() const override {
    return bytes_for(line_, std::ssize(elements(0)), std::ssize(scalars_.front()));
  }

  static int64_t bytes_for(const TeamLine& line, int64_t element_count, int64_t scalar_count) {
    return Sum<Element>::buffer_bytes(line.team, line.team.position_of(line.communicator->rank()), element_count,
                                      scalar_count);
  }

 private:
  std::span<Element> elements(size_t part) const {
    if (flats_.empty()) return {};
    return {flats_[part].template data_ptr<Element>(), static_cast<size_t>(flats_[part].numel())};
  }

  const TeamLine& line_;
  std::vector<at::Tensor> flats_;
  std::vector<std::vector<double>> scalars_;
  comm::Word word_;
  std::string description_;
  std::function<void(SumOutcome)> done_;
  std::optional<Sum<Element>> sum_;
};

class ShareOperation final : public comm::Operation {
 public:
  ShareOperation(const TeamLine& line, at::Tensor blocks, std::string description, std::function<void()> done)
      : line_(line), blocks_(std::move(blocks)), description_(std::move(description)), done_(std::move(done)) {}

  void start() override {
    const int rank = line_.communicator->rank();
    const std::span<std::byte> own = rows(line_.team.runs[static_cast<size_t>(line_.team.position_of(rank))]);
    for (const comm::GrainRun& run : line_.team.runs) {
      if (run.rank == rank) continue;
      receives_.push_back({line_.communicator->receive(rows(run), run.rank, line_.tag), run.rank});
      sends_.push_back(line_.communicator->send(own, run.rank, line_.tag));
    }
  }

  bool progress() override {
    std::erase_if(receives_, [](auto& receive) { return receive.first->test(); });
    std::erase_if(sends_, [](auto& send) { return send->test(); });
    return receives_.empty() && sends_.empty();
  }

  void finished() override { done_(); }
  std::string description() const override { return description_; }

  std::vector<int> waiting_for() const override {
    std::vector<int> ranks;
    for (const auto& receive : receives_) ranks.push_back(receive.second);
    return ranks;
  }

 private:
  std::span<std::byte> rows(const comm::GrainRun& run) const {
    const int64_t bytes = blocks_.size(1);
    auto* begin = static_cast<std::byte*>(blocks_.data_ptr()) + run.begin * bytes;
    return {begin, static_cast<size_t>((run.end - run.begin) * bytes)};
  }

  const TeamLine& line_;
  at::Tensor blocks_;
  std::string description_;
  std::function<void()> done_;
  std::vector<std::pair<std::unique_ptr<comm::Pending>, int>> receives_;
  std::vector<std::unique_ptr<comm::Pending>> sends_;
};

/// Calls `action` with a null pointer of the operation's type.
template <typename Action>
auto with_sum_operation(Reduction reduction, at::ScalarType type, const Action& action) {
  const bool fast = reduction == Reduction::kFast;
  if (type == at::kFloat) {
    return fast ? action(static_cast<SumOperation<float, comm::FastSum>*>(nullptr))
                : action(static_cast<SumOperation<float, comm::TreeSum>*>(nullptr));
  }
  return fast ? action(static_cast<SumOperation<double, comm::FastSum>*>(nullptr))
              : action(static_cast<SumOperation<double, comm::TreeSum>*>(nullptr));
}

}  // namespace

int64_t sum_buffer_bytes(const TeamLine& line, at::ScalarType type, int64_t element_count, int64_t scalar_count) {
  return with_sum_operation(line.reduction, type, [&]<typename Operation>(Operation*) {
    return Operation::bytes_for(line, element_count, scalar_count);
  });
}

void post_sum(const TeamLine& line, std::vector<at::Tensor> flats, std::vector<std::vector<double>> scalars,
              comm::Word word, std::string description, std::function<void(SumOutcome)> done) {
  const at::ScalarType type = flats.empty() ? at::kDouble : flats.front().scalar_type();
  with_sum_operation(line.reduction, type, [&]<typename Operation>(Operation*) {
    line.queue->post(std::make_unique<Operation>(line, std::move(flats), std::move(scalars), std::move(word),
                                                 std::move(description), std::move(done)));
  });
}

void post_share(const TeamLine& line, at::Tensor blocks, std::string description, std::function<void()> done) {
  line.queue->post(std::make_unique<ShareOperation>(line, std::move(blocks), std::move(description), std::move(done)));
}

}  // namespace tutti::train
