// Files of predictions, read back as text and bytes.
#include "launch/prediction_file.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "launch/command.h"
#include "launch/text_file.h"

namespace tutti::launch {
namespace {

std::filesystem::path in_folder(const char* name) { return std::filesystem::path(testing::TempDir()) / name; }

TEST(PredictionFile, WritesArraysAsNumPyReadsThem) {
  const auto path = in_folder("prediction_test.npy");
  const auto file = make_prediction_file(path, 3, std::nullopt);
  const at::Tensor all = at::arange(12, at::kFloat).reshape({3, 2, 2});
  file->write(all.narrow(0, 0, 2));
  file->write(all.narrow(0, 2, 1));
  EXPECT_FALSE(std::filesystem::exists(path)) << "a file that is not complete";
  file->close();
  const std::string bytes = read_text(path).value();
  // The format: numpy.lib.format, version 1.0.
  ASSERT_EQ(bytes.size(), 128 + 12 * sizeof(float));
  EXPECT_EQ(bytes.substr(0, 8), std::string("\x93NUMPY\x01\x00", 8));
  EXPECT_EQ(bytes.substr(8, 2), std::string("\x76\x00", 2));
  EXPECT_THAT(bytes.substr(10, 118),
              testing::StartsWith("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2, 2,), }"));
  EXPECT_EQ(bytes[127], '\n');
  EXPECT_EQ(std::memcmp(bytes.data() + 128, all.const_data_ptr(), all.nbytes()), 0);
  std::filesystem::remove(path);
}

TEST(PredictionFile, WritesRowsWithTheirClass) {
  const auto path = in_folder("prediction_test.csv");
  const auto file = make_prediction_file(path, 2, ClassNames{"cat", "dog, big"});
  file->write(at::tensor({0.5, 0.25}, at::kDouble).reshape({1, 2}));
  file->write(at::tensor({-1.0, 2.0}, at::kDouble).reshape({1, 2}));
  file->close();
  EXPECT_EQ(read_text(path).value(), "row,class,name,y0,y1\n0,0,cat,0.5,0.25\n1,1,\"dog, big\",-1,2\n");
  std::filesystem::remove(path);
}

TEST(PredictionFile, WritesValuesAloneWithoutClasses) {
  const auto path = in_folder("prediction_plain_test.csv");
  const auto file = make_prediction_file(path, 1, std::nullopt);
  file->write(at::tensor({1.5, -2.5}, at::kFloat).reshape({1, 2}));
  file->close();
  EXPECT_EQ(read_text(path).value(), "row,y0,y1\n0,1.5,-2.5\n");
  std::filesystem::remove(path);
}

TEST(PredictionFile, RefusesOtherNames) { EXPECT_THROW(make_prediction_file("x.txt", 1, std::nullopt), UsageError); }

}  // namespace
}  // namespace tutti::launch
