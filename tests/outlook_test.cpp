// What `tutti plan` tells of a job.
#include "launch/outlook.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "tests/job_fixture.h"

namespace tutti::launch {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::shared_ptr<const data::DataSet> open_huge_rows(const std::vector<std::string>&, const data::ReadOptions&) {
  const std::vector<data::Field> inputs{field("x", data::ElementType::kUint8, {int64_t{1} << 42})};
  const std::vector<data::Field> targets{field("y", data::ElementType::kUint8, {}, 10)};
  return std::make_shared<FieldsOnly>(1000, inputs, targets);
}

class OutlookTest : public JobTest {};

TEST_F(OutlookTest, RowsBeyondTheMemoryAreRefusedBeforeATrialTakesThem) {
  data::write_file(folder_ / "job.yaml", with("layers: [{reshape: [1, -1]}, {max_pool1d: 4096}, "
                                              "{adaptive_avg_pool1d: 1}, flatten, {linear: 10}]"));
  const Job job = load_job(folder_ / "job.yaml", {}, open_huge_rows);
  const partition::Cluster cluster{{{1.0, 1, int64_t{8} << 30}}, {}};
  for (const Costs costs : {Costs::kPredicted, Costs::kMeasured}) {
    EXPECT_THAT(data::message_of<UsageError>([&] { look_ahead(job, cluster, {}, costs); }),
                AllOf(HasSubstr("model m needs"), HasSubstr("for each lane"), HasSubstr("8589934592 left")));
  }
}

}  // namespace
}  // namespace tutti::launch
