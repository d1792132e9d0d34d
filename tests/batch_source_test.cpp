// Rows of shards as the tensors that a model takes: shapes of targets, and indices out of range.
#include "src/train/batch_source.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace tutti::train
