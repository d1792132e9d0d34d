// Shards as they lie on disk, and how they come into being.
#include "data/shard_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/shard_files.h"

namespace tutti::data {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::vector<std::string> names_in(const TemporaryFolder& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    names.push_back(entry.path().filename().string());
  }
  return names;
}

// CRC-32 bit by bit, from its definition (reflected polynomial 0xEDB88320).
uint32_t reference_crc32(const std::string& bytes) {
  uint32_t crc = ~0u;
  for (const char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xEDB88320 : 0);
  }
  return ~crc;
}

TEST(ShardWriter, DescribesFieldsAndBlocks) {
  const TemporaryFolder folder;
  write_shard(folder / "a.h5", {.row_count = 5000, .mean = {1, 2}, .deviation = {3, 4}});
  const ShardInfo info = read_shard_info(folder / "a.h5");
  EXPECT_EQ(info.row_count, 5000);
  ASSERT_EQ(info.columns.size(), 2u);
  const Field& x = info.columns[0].field;
  EXPECT_EQ(describe(x), "uint8 [2, 3, 4]");
  EXPECT_EQ(x.mean, (std::vector<double>{1, 2}));
  EXPECT_EQ(x.deviation, (std::vector<double>{3, 4}));
  EXPECT_EQ(info.columns[1].field.class_count, 10);
  EXPECT_EQ(info.columns[0].offset_bytes.value() % 4096, 0);
  std::string first, second;
  for (int64_t row = 0; row < 5000; ++row) {
    for (int64_t element = 0; element < 24; ++element) {
      (row < 4096 ? first : second) += static_cast<char>(pixel_of(row, element));
    }
  }
  EXPECT_EQ(info.columns[0].checksums, (std::vector<uint32_t>{reference_crc32(first), reference_crc32(second)}));
}

TEST(ShardWriter, GivesTheSameChecksumsHoweverRowsAreAppended) {
  const TemporaryFolder folder;
  const Field x{.name = "x", .type = ElementType::kInt16, .shape = {3}};
  std::vector<int16_t> values(9000 * 3);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int16_t>(i * 7);
  std::vector<std::vector<uint32_t>> checksums;
  for (const int64_t part : {1000, 4096, 9000}) {
    ShardWriter writer(folder / "a.h5", 9000, {x}, {}, {.existing = ShardWriter::Existing::kReplace});
    for (int64_t begin = 0; begin < 9000; begin += part) {
      const int64_t count = std::min(part, 9000 - begin);
      const std::span<const std::byte> columns[] = {
          std::as_bytes(std::span(values).subspan(static_cast<size_t>(begin * 3), static_cast<size_t>(count * 3)))};
      writer.append(count, columns);
    }
    writer.finish();
    checksums.push_back(read_shard_info(folder / "a.h5").columns[0].checksums);
  }
  EXPECT_EQ(checksums[0].size(), 3u);
  EXPECT_EQ(checksums[1], checksums[0]);
  EXPECT_EQ(checksums[2], checksums[0]);
}

TEST(ShardWriter, LeavesNothingBehindWhenUnfinished) {
  const TemporaryFolder folder;
  {
    ShardWriter writer(folder / "a.h5", 10, {{.name = "x"}}, {}, {});
    EXPECT_EQ(names_in(folder).size(), 1u);
    EXPECT_FALSE(std::filesystem::exists(folder / "a.h5"));
    EXPECT_THAT(message_of([&] { writer.finish(); }), HasSubstr("expected 10 rows, got 0"));
  }
  EXPECT_TRUE(names_in(folder).empty());
}

TEST(ShardWriter, ReplacesOnlyWhenTold) {
  const TemporaryFolder folder;
  write_shard(folder / "a.h5", {.row_count = 10});
  EXPECT_THAT(message_of([&] { ShardWriter(folder / "a.h5", 10, {{.name = "x"}}, {}, {}); }),
              AllOf(HasSubstr("a.h5: exists already"), HasSubstr("--force")));
  EXPECT_EQ(read_shard_info(folder / "a.h5").row_count, 10);
  write_shard(folder / "a.h5", {.row_count = 11});
  EXPECT_EQ(read_shard_info(folder / "a.h5").row_count, 11);
  EXPECT_EQ(names_in(folder), std::vector<std::string>{"a.h5"});
}

TEST(ShardWriter, RefusesTwoFieldsOfOneName) {
  const TemporaryFolder folder;
  EXPECT_THAT(message_of([&] { ShardWriter(folder / "a.h5", 1, {{.name = "x"}}, {{.name = "x"}}, {}); }),
              HasSubstr("two fields are named 'x'"));
  EXPECT_TRUE(names_in(folder).empty());
}

TEST(ShardInfo, NamesWhatDoesNotFit) {
  const TemporaryFolder folder;
  const auto write = [&](int64_t version, int64_t rows, const std::vector<double>& mean) {
    std::filesystem::remove(folder / "a.h5");
    Hdf5File file = Hdf5File::create(folder / "a.h5");
    file.write_attribute("format", std::string("tutti shard"));
    file.write_attribute("version", version);
    file.write_attribute("rows", rows);
    file.create_group("/inputs");
    const int64_t shape[] = {4, 3};
    Hdf5Dataset x = file.create_dataset("/inputs/x", ElementType::kFloat32, shape);
    x.write_attribute("mean", mean);
    x.write_attribute("deviation", std::vector<double>(mean.size(), 1));
  };
  write(1, 4, {0, 0, 0});
  EXPECT_EQ(read_shard_info(folder / "a.h5").row_count, 4);
  write(2, 4, {0});
  EXPECT_THAT(message_of([&] { read_shard_info(folder / "a.h5"); }), HasSubstr("expected shard version 1, found 2"));
  write(1, 5, {0});
  EXPECT_THAT(message_of([&] { read_shard_info(folder / "a.h5"); }),
              AllOf(HasSubstr("/inputs/x"), HasSubstr("expected 5 rows"), HasSubstr("found 4")));
  write(1, 4, {0, 0});
  EXPECT_THAT(message_of([&] { read_shard_info(folder / "a.h5"); }), HasSubstr("2 means and 2 deviations"));
  Hdf5File::create(folder / "b.h5");
  EXPECT_THAT(message_of([&] { read_shard_info(folder / "b.h5"); }), HasSubstr("expected a shard"));
}

}  // namespace
}  // namespace tutti::data
