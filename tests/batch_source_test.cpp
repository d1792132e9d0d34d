// Rows of shards as the tensors that a model takes: shapes of targets, and indices out of range.
#include "src/train/batch_source.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "src/graph/layer_list.h"
#include "tests/shard_files.h"

namespace tutti::train {
namespace {

using data::ElementType;
using testing::AllOf;
using testing::HasSubstr;

template <class Value>
std::span<const std::byte> bytes_of(const std::vector<Value>& values) {
  return std::as_bytes(std::span(values));
}

class BatchSource : public testing::Test {
 protected:
  /// A model over a shard of 4 rows with the input [2] and the target's shape.
  template <class Input, class Target>
  ModelSpec spec_of(ElementType input_type, const std::vector<Input>& inputs, const std::vector<int64_t>& target_shape,
                    ElementType target_type, const std::vector<Target>& targets, const nlohmann::json& layers) {
    const data::Field x{.name = "x", .type = input_type, .shape = {2}};
    const data::Field y{.name = "y", .type = target_type, .shape = target_shape};
    data::ShardWriter writer(folder_ / "a.h5", 4, {x}, {y}, {data::ShardWriter::Existing::kReplace, {}});
    const std::span<const std::byte> columns[] = {bytes_of(inputs), bytes_of(targets)};
    writer.append(4, columns);
    writer.finish();
    ModelSpec spec;
    spec.data.train = data::DataSet::open({folder_ / "a.h5"});
    const at::ScalarType type = data::is_integer(input_type) ? at::kLong : at::kFloat;
    spec.graph = std::make_shared<graph::Graph>(graph::build_layer_list(layers, {"x", {2}, type}));
    spec.loss.kind =
        data::is_integer(target_type) ? program::LossSpec::Kind::kCrossEntropy : program::LossSpec::Kind::kMse;
    spec.batch = 4;
    spec.order = data::SampleOrder::Kind::kSequential;
    return spec;
  }

  data::TemporaryFolder folder_;
};

const std::vector<float> kInputs{1, 2, 3, 4, 5, 6, 7, 8};

TEST_F(BatchSource, GivesTargetsTheShapeOfTheOutputs) {
  const nlohmann::json layers = {{{"linear", 1}}};
  const std::vector<float> targets{1, 2, 3, 4};
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{}, {1}, {1, 1}}) {
    const ModelSpec spec = spec_of(ElementType::kFloat32, kInputs, shape, ElementType::kFloat32, targets, layers);
    const at::Tensor found = TrainingSource(spec).gather(0, 0, 0).targets;
    EXPECT_TRUE(at::equal(found, at::tensor(targets).reshape({4, 1}))) << shape.size() << "\n" << found;
  }
}

TEST_F(BatchSource, GivesClassNumbersTheShapeWithoutClasses) {
  const std::vector<int64_t> labels{0, 2, 1, 2};
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{}, {1}}) {
    const ModelSpec spec =
        spec_of(ElementType::kFloat32, kInputs, shape, ElementType::kInt64, labels, {{{"linear", 3}}});
    const at::Tensor found = TrainingSource(spec).gather(0, 0, 0).targets;
    EXPECT_TRUE(at::equal(found, at::tensor(labels))) << shape.size() << "\n" << found;
  }
}

TEST_F(BatchSource, NamesFileRowAndRangeOfAnIndexBeyondItsEmbedding) {
  const nlohmann::json layers = {{{"embedding", {{"count", 5}, {"dim", 3}}}}, "flatten", {{"linear", 3}}};
  const std::vector<int64_t> labels{0, 2, 1, 2};
  for (const int32_t index : {5, -1}) {
    const std::vector<int32_t> indices{0, 1, 2, 3, 4, index, 0, 0};
    const ModelSpec spec = spec_of(ElementType::kInt32, indices, {}, ElementType::kInt64, labels, layers);
    EXPECT_THAT(
        data::message_of([&] { TrainingSource(spec).gather(0, 0, 0); }),
        AllOf(HasSubstr("a.h5, row 2: field 'x'"), HasSubstr("[0, 5)"), HasSubstr("found " + std::to_string(index))));
  }
  const std::vector<int32_t> indices{0, 1, 2, 3, 4, 4, 0, 0};
  const ModelSpec spec = spec_of(ElementType::kInt32, indices, {}, ElementType::kInt64, labels, layers);
  EXPECT_EQ(TrainingSource(spec).gather(0, 0, 0).inputs[0].sizes(), (std::vector<int64_t>{4, 2}));
}

// 67 blocks of rows in two shards, streamed: one window of the order, and three blocks more. The second shard begins
// amid a block of the order.
class StreamedRows : public testing::Test {
 protected:
  static constexpr int64_t kBlock = data::SampleOrder::kBlockRows;
  static constexpr int64_t kFirstRows = 40 * kBlock + 1000, kRows = 67 * kBlock;

  StreamedRows() {
    data::write_shard(folder_ / "a.h5", {.first_row = 0, .row_count = kFirstRows, .shape = {1}});
    data::write_shard(folder_ / "b.h5", {.first_row = kFirstRows, .row_count = kRows - kFirstRows, .shape = {1}});
  }

  ModelSpec spec_of(int64_t window_bytes, double held_out = 0) const {
    ModelSpec spec;
    spec.data.train = data::DataSet::open({folder_ / "*.h5"},
                                          {.access = data::ReadOptions::Access::kStream, .window_bytes = window_bytes});
    spec.data.held_out = held_out;
    spec.graph = std::make_shared<graph::Graph>(graph::build_layer_list({{{"linear", 10}}}, {"x", {1}, at::kFloat}));
    spec.batch = 1000;
    return spec;
  }

  static void gather_epoch(const TrainingSource& source, int64_t epoch) {
    for (int64_t batch = 0; batch < source.batches_per_epoch(); ++batch) source.gather(epoch, batch, 0);
  }

  /// What has been read once it no longer grows.
  static int64_t settled_bytes(const data::DataSet& data) {
    int64_t bytes = -1;
    while (data.read_bytes() != bytes) {
      bytes = data.read_bytes();
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    return bytes;
  }

  static constexpr int64_t kRowBytes = 1 + 4;  // a pixel and a label
  data::TemporaryFolder folder_;
};

TEST_F(StreamedRows, AreReadOncePerEpochWithTheWindowTheyNeed) {
  for (const double held_out : {0.0, 0.3}) {
    const int64_t needed_bytes = training_window_bytes(spec_of(1, held_out));
    EXPECT_GE(needed_bytes, 64 * kBlock * kRowBytes) << "64 blocks";
    EXPECT_LE(needed_bytes, kRows * kRowBytes) << "all rows";
    ModelSpec spec = spec_of(needed_bytes, held_out);
    gather_epoch(TrainingSource(spec), 0);
    // Three blocks of the order are a window of their own, and lie in two blocks of a shard each.
    EXPECT_LE(settled_bytes(*spec.data.train), (67 + 6) * kBlock * kRowBytes) << "held out " << held_out;
  }
}

TEST_F(StreamedRows, NeedNoWindowWhereNothingIsShuffledOrStreamed) {
  ModelSpec spec = spec_of(1);
  spec.order = data::SampleOrder::Kind::kSequential;
  EXPECT_EQ(training_window_bytes(spec), 0);
  spec = spec_of(1);
  spec.data.train = data::DataSet::open({folder_ / "*.h5"});
  EXPECT_EQ(training_window_bytes(spec), 0);
}

TEST_F(StreamedRows, AreReadAheadAsFarAsMemoryAllows) {
  const data::SampleOrder order(kRows, data::SampleOrder::Kind::kShuffled, 0, 0);
  const data::Split all(kRows, 0, 0, data::Split::Part::kAll);
  const int64_t needed_bytes = training_window_bytes(spec_of(1));
  const auto rows_after = [&](int64_t window_bytes, int64_t epoch, int64_t slot) {
    const auto data = spec_of(window_bytes).data.train;
    return ReadAhead(*data, all, order, /*epoch_count=*/2).rows_after(epoch, slot * kBlock, slot * kBlock + 1);
  };
  const auto block = [&](int64_t epoch, int64_t slot) {
    return std::vector{order.indices_of(order.block_at(epoch, slot))};
  };
  EXPECT_THAT(rows_after(needed_bytes - 1, 0, 63), testing::IsEmpty()) << "no room";
  EXPECT_EQ(rows_after(1 << 30, 0, 0), block(0, 64)) << "the next window";
  EXPECT_EQ(rows_after(1 << 30, 0, 3), block(1, 0)) << "the next epoch";
  EXPECT_THAT(rows_after(1 << 30, 1, 3), testing::IsEmpty()) << "no further epoch";
  EXPECT_THAT(ReadAhead(*spec_of(1 << 30).data.train, all, order, 2).rows_after(0, 1, kBlock), testing::IsEmpty())
      << "no block has been passed";
}

TEST_F(StreamedRows, ComeFromBlocksReadAheadByTheGatherBefore) {
  ModelSpec spec = spec_of(1 << 30);
  spec.batch = 2 * kBlock;  // draws from all 64 blocks of the first window, and passes slots 0 and 1
  const TrainingSource source(spec);
  source.gather(0, 0, 0);
  const data::SampleOrder order(kRows, data::SampleOrder::Kind::kShuffled, 0, 0);
  const int64_t before = settled_bytes(*spec.data.train);
  for (const int64_t slot : {64, 65}) {
    const auto [begin, end] = order.indices_of(order.block_at(0, slot));
    std::vector<int64_t> rows{begin, end - 1};
    std::vector<float> out(2);
    spec.data.train->gather(spec.data.train->inputs()[0], rows, {}, {}, std::span(out));
  }
  EXPECT_EQ(spec.data.train->read_bytes(), before) << "the next window's first blocks were there";
}

}  // namespace
}  // namespace tutti::train
