// Data sets against the rows that were written, read in every way, and against files that are missing, odd or damaged.
#include "data/data_set.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <csignal>
#include <limits>
#include <optional>
#include <thread>

#include "data/hdf5_file.h"
#include "data/shard.h"
#include "tests/shard_files.h"

namespace tutti::data {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using Access = ReadOptions::Access;

constexpr int64_t kElements = 24;
constexpr int64_t kLow = 0, kHigh = 10, kIgnored = -100;

std::vector<float> pixels(const DataSet& data, const std::vector<int64_t>& rows) {
  std::vector<float> out(rows.size() * kElements);
  data.gather(data.inputs()[0], rows, {}, {}, std::span(out));
  return out;
}

std::vector<int64_t> labels(const DataSet& data, const std::vector<int64_t>& rows) {
  std::vector<int64_t> out(rows.size());
  data.gather_integers(data.targets()[0], rows, kLow, kHigh, kIgnored, out);
  return out;
}

void expect_rows(const DataSet& data, const std::vector<int64_t>& rows) {
  const std::vector<float> x = pixels(data, rows);
  const std::vector<int64_t> y = labels(data, rows);
  for (size_t i = 0; i < rows.size(); ++i) {
    ASSERT_EQ(y[i], label_of(rows[i])) << "row " << rows[i];
    for (int64_t element = 0; element < kElements; ++element) {
      ASSERT_EQ(x[i * kElements + static_cast<size_t>(element)], pixel_of(rows[i], element)) << "row " << rows[i];
    }
  }
}

// Rows of three shards in a scattered order, borders of shards and blocks among them.
const std::vector<int64_t> kRows = {0, 9299, 4095, 4096, 8999, 9000, 9099, 9100, 17, 5000, 9099, 1, 8192, 8191};

class DataSetFiles : public testing::Test {
 protected:
  void write_three_shards(Hdf5Storage storage = Hdf5Storage::kContiguous) {
    write_shard(folder_ / "train-0.h5", {.first_row = 0, .row_count = 9000, .storage = storage});
    write_shard(folder_ / "train-1.h5", {.first_row = 9000, .row_count = 100, .storage = storage});
    write_shard(folder_ / "train-2.h5", {.first_row = 9100, .row_count = 200, .storage = storage});
  }
  std::shared_ptr<const DataSet> open(ReadOptions options = {}) const {
    return DataSet::open({folder_ / "train-*.h5"}, options);
  }
  TemporaryFolder folder_;
};

TEST_F(DataSetFiles, AreOneTableInTheOrderOfTheirPaths) {
  write_three_shards();
  const auto data = open();
  EXPECT_EQ(data->row_count(), 9300);
  ASSERT_EQ(data->inputs().size(), 1u);
  EXPECT_EQ(data->inputs()[0].shape, (std::vector<int64_t>{2, 3, 4}));
  EXPECT_EQ(data->inputs()[0].type, ElementType::kUint8);
  EXPECT_EQ(data->targets()[0].class_count, 10);
  EXPECT_EQ(data->place_of(9105), (folder_ / "train-2.h5").string() + ", row 5");
  expect_rows(*data, kRows);
  const auto by_name = DataSet::open({folder_ / "train-2.h5", folder_ / "train-0.h5", folder_ / "train-1.h5"});
  expect_rows(*by_name, kRows);
  EXPECT_EQ(by_name->fingerprint(), data->fingerprint());
}

TEST_F(DataSetFiles, GiveTheSameRowsInEveryWayOfReading) {
  write_three_shards();
  for (const Access access : {Access::kAuto, Access::kMap, Access::kPread, Access::kStream}) {
    expect_rows(*open({.access = access}), kRows);
    expect_rows(*open({.access = access, .verify_checksums = false}), kRows);
  }
}

TEST_F(DataSetFiles, GiveTheSameRowsCompressed) {
  write_three_shards(Hdf5Storage::kCompressed);
  EXPECT_LT(std::filesystem::file_size(folder_ / "train-0.h5"), 9000 * kElements / 2);
  expect_rows(*open(), kRows);
  // A window that holds one block at a time, and one that holds none.
  expect_rows(*open({.window_bytes = 4096 * kElements}), kRows);
  expect_rows(*open({.window_bytes = 1}), kRows);
  EXPECT_THAT(message_of([&] { open({.access = Access::kMap}); }), HasSubstr("can only be streamed"));
}

TEST_F(DataSetFiles, HaveAFingerprintOfTheirContentAlone) {
  write_three_shards();
  const uint64_t contiguous = open()->fingerprint();
  write_three_shards(Hdf5Storage::kCompressed);
  EXPECT_EQ(open()->fingerprint(), contiguous);
  write_shard(folder_ / "train-2.h5", {.first_row = 9101, .row_count = 200});
  EXPECT_NE(open()->fingerprint(), contiguous);
}

TEST_F(DataSetFiles, CountTheBytesTheyRead) {
  write_three_shards();
  const auto unverified = open({.access = Access::kMap, .verify_checksums = false});
  pixels(*unverified, {0, 9000});
  EXPECT_EQ(unverified->read_bytes(), 2 * kElements);
  const auto verified = open({.access = Access::kMap});
  pixels(*verified, {0, 1, 9000});
  EXPECT_EQ(verified->read_bytes(), (4096 + 100 + 3) * kElements);
  const auto streamed = open({.access = Access::kStream});
  pixels(*streamed, {0, 1, 9000});
  EXPECT_EQ(streamed->read_bytes(), (4096 + 100) * kElements);
}

TEST_F(DataSetFiles, AreReadByManyThreadsAtOnce) {
  for (const Hdf5Storage storage : {Hdf5Storage::kContiguous, Hdf5Storage::kCompressed}) {
    write_three_shards(storage);
    const auto data = open({.window_bytes = 2 * 4096 * kElements});
    std::vector<std::thread> threads;
    for (int64_t thread = 0; thread < 8; ++thread) {
      threads.emplace_back([&, thread] {
        for (int64_t round = 0; round < 20; ++round) {
          std::vector<int64_t> rows;
          for (int64_t i = 0; i < 50; ++i) rows.push_back((i * 7919 + round * 104729 + thread * 31) % 9300);
          expect_rows(*data, rows);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
}

TEST_F(DataSetFiles, ReadAheadOnRequest) {
  write_three_shards(Hdf5Storage::kCompressed);
  const auto data = open();
  data->prefetch(data->inputs()[0], 5000, 9050);  // two blocks of the first shard, the short one of the second
  constexpr int64_t kBytes = (4096 + (9000 - 8192) + 100) * kElements;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (data->read_bytes() < kBytes && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(data->read_bytes(), kBytes);
  pixels(*data, {4096, 8999, 9000, 9099});
  EXPECT_EQ(data->read_bytes(), kBytes);
}

TEST_F(DataSetFiles, TellWhatStreamingTakes) {
  constexpr int64_t kRowBytes = kElements + 4;  // pixels and a label
  write_three_shards();
  EXPECT_EQ(open()->stream_use().most_bytes(8), 0) << "mapped";
  const auto whole = open({.access = Access::kStream});
  EXPECT_EQ(whole->stream_use().all_bytes, 9300 * kRowBytes);
  EXPECT_EQ(whole->stream_use().most_bytes(8), 9300 * kRowBytes) << "a window that holds all";
  EXPECT_EQ(whole->streamed_bytes(0, 1), 4096 * kRowBytes);
  EXPECT_EQ(whole->streamed_bytes(4095, 4097), 2 * 4096 * kRowBytes);
  EXPECT_EQ(whole->streamed_bytes(8999, 9101), (9000 - 8192 + 100 + 200) * kRowBytes);
  expect_rows(*whole, kRows);
  EXPECT_EQ(whole->stream_use().peak_bytes, 9300 * kRowBytes);
}

TEST_F(DataSetFiles, HoldNoMoreThanTheyTellWhileManyThreadsGather) {
  write_three_shards(Hdf5Storage::kCompressed);
  constexpr int64_t kThreads = 4, kBlockBytes = 4096 * kElements;
  const auto data = open({.window_bytes = kBlockBytes});
  std::vector<std::thread> threads;
  for (int64_t thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      for (int64_t round = 0; round < 30; ++round) pixels(*data, {(thread * 4096 + round * 1009) % 9000, 8999, 9250});
    });
  }
  for (std::thread& thread : threads) thread.join();
  const StreamUse use = data->stream_use();
  EXPECT_EQ(use.block_bytes, kBlockBytes);
  EXPECT_EQ(use.most_bytes(kThreads), (2 + kThreads) * kBlockBytes);
  EXPECT_GT(use.peak_bytes, kBlockBytes);
  EXPECT_LE(use.peak_bytes, use.most_bytes(kThreads));
  EXPECT_LE(use.held_bytes, use.window_bytes) << "callers have given their blocks back";
}

TEST_F(DataSetFiles, OpenThoughAnotherProcessHoldsALock) {
  write_three_shards();
  const int descriptor = ::open((folder_ / "train-0.h5").c_str(), O_RDONLY);
  ASSERT_EQ(::flock(descriptor, LOCK_EX), 0);
  expect_rows(*open(), kRows);
  ::close(descriptor);
}

TEST_F(DataSetFiles, NameAPatternThatMatchesNothing) {
  write_three_shards();
  EXPECT_THAT(message_of([&] {
                DataSet::open({folder_ / "train-*.h5", folder_ / "tset-*.h5"});
              }),
              AllOf(HasSubstr("tset-*.h5"), HasSubstr("expected a file, or a pattern")));
  EXPECT_THAT(message_of([&] { DataSet::open({folder_ / "train-9.h5"}); }), HasSubstr("train-9.h5"));
  EXPECT_THAT(message_of([&] { DataSet::open({}); }), HasSubstr("at least one shard"));
}

TEST_F(DataSetFiles, NameTheShardWhoseFieldsDiffer) {
  write_three_shards();
  write_shard(folder_ / "train-1.h5", {.first_row = 9000, .row_count = 100, .shape = {2, 3, 5}});
  EXPECT_THAT(message_of([&] { open(); }),
              AllOf(HasSubstr("train-1.h5: its fields differ"), HasSubstr("expected /inputs/x uint8 [2, 3, 4]"),
                    HasSubstr("found /inputs/x uint8 [2, 3, 5]")));
  write_shard(folder_ / "train-1.h5", {.first_row = 9000, .row_count = 100, .mean = {1}, .deviation = {2}});
  EXPECT_THAT(message_of([&] { open(); }), AllOf(HasSubstr("train-1.h5"), HasSubstr("same mean")));
}

TEST_F(DataSetFiles, OpenNothingButRegularFiles) {
  ASSERT_EQ(::mkfifo((folder_ / "pipe.h5").c_str(), 0600), 0);
  const auto message = [](const std::filesystem::path& path) {
    return message_of([&] { DataSet::open({path.string()}); });
  };
  EXPECT_THAT(message(folder_ / "pipe.h5"), HasSubstr("pipe.h5: expected a regular file, found a pipe"));
  EXPECT_THAT(message(folder_.path()), HasSubstr("found a folder"));
  EXPECT_THAT(message("/dev/zero"), HasSubstr("found a device"));
}

TEST_F(DataSetFiles, NameAFileThatIsNoShard) {
  write_three_shards();
  write_file(folder_ / "train-1.h5", "hello");
  EXPECT_THAT(message_of([&] { open(); }), AllOf(HasSubstr("train-1.h5"), HasSubstr("cannot open")));
}

// A shard that another program wrote, of 2 rows; its fields' attributes are given, or left out where they are empty.
struct ForeignShard {
  int64_t rows = 2;
  std::string input = "/inputs";
  std::vector<double> mean{}, deviation{};
  std::vector<std::string> class_names{};
  std::optional<int64_t> class_count{};
};

void write_foreign(const std::filesystem::path& path, const ForeignShard& shard) {
  std::filesystem::remove(path);
  Hdf5File file = Hdf5File::create(path);
  file.write_attribute("format", std::string(kShardFormat));
  file.write_attribute("version", kShardVersion);
  file.write_attribute("rows", shard.rows);
  file.create_group(shard.input);
  file.create_group("/targets");
  const int64_t extents[] = {2};
  Hdf5Dataset x = file.create_dataset(shard.input + "/x", ElementType::kFloat32, extents, Hdf5Storage::kContiguous);
  if (!shard.mean.empty()) x.write_attribute("mean", shard.mean);
  if (!shard.deviation.empty()) x.write_attribute("deviation", shard.deviation);
  Hdf5Dataset y = file.create_dataset("/targets/y", ElementType::kInt32, extents, Hdf5Storage::kContiguous);
  if (!shard.class_names.empty()) y.write_attribute("class_names", shard.class_names);
  if (shard.class_count) y.write_attribute("class_count", *shard.class_count);
  file.close();
}

TEST_F(DataSetFiles, NameWhatIsWrongWithAShardOfAnotherProgram) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const auto fault = [&](const ForeignShard& shard) {
    write_foreign(folder_ / "a.h5", shard);
    return message_of([&] { DataSet::open({folder_ / "a.h5"}); });
  };
  write_foreign(folder_ / "a.h5", {});
  EXPECT_EQ(DataSet::open({folder_ / "a.h5"})->row_count(), 2);
  EXPECT_THAT(fault({.rows = -1}), AllOf(HasSubstr("a.h5: attribute 'rows'"), HasSubstr("found -1")));
  EXPECT_THAT(fault({.input = "/input"}),
              AllOf(HasSubstr("a.h5"), HasSubstr("group /inputs"), HasSubstr("found none")));
  EXPECT_THAT(fault({.mean = {kNan}, .deviation = {1}}),
              AllOf(HasSubstr("/inputs/x: attribute 'mean'"), HasSubstr("nan")));
  EXPECT_THAT(fault({.mean = {0}, .deviation = {kNan}}), AllOf(HasSubstr("attribute 'deviation'"), HasSubstr("nan")));
  EXPECT_THAT(fault({.mean = {0}, .deviation = {0}}), AllOf(HasSubstr("greater than 0"), HasSubstr("found 0")));
  EXPECT_THAT(fault({.class_count = -3}),
              AllOf(HasSubstr("/targets/y: attribute 'class_count'"), HasSubstr("found -3")));
  EXPECT_THAT(fault({.class_names = {"cat", "dog"}, .class_count = 3}),
              AllOf(HasSubstr("each of 3 classes"), HasSubstr("found 2")));
}

// The library itself stores such data sets: it multiplies the extents without a check as well.
TEST_F(DataSetFiles, RefuseShapesWhoseBytesCannotBeCounted) {
  constexpr int64_t kWrapping = 0x1C71C71C71C71C72;  // times 9 it is 2^64 + 2
  struct Extents {
    std::vector<int64_t> shape;
    std::string row;
  };
  const Extents cases[] = {{{2, kWrapping, 9}, "uint8 [2049638230412172402, 9]"},
                           {{2, int64_t{1} << 32, int64_t{1} << 32}, "uint8 [4294967296, 4294967296]"}};
  for (const Extents& extents : cases) {
    std::filesystem::remove(folder_ / "a.h5");
    Hdf5File file = Hdf5File::create(folder_ / "a.h5");
    file.write_attribute("format", std::string(kShardFormat));
    file.write_attribute("version", kShardVersion);
    file.write_attribute("rows", int64_t{2});
    file.create_group("/inputs");
    file.create_dataset("/inputs/x", ElementType::kUint8, extents.shape, Hdf5Storage::kContiguous);
    file.close();
    EXPECT_THAT(message_of([&] { DataSet::open({folder_ / "a.h5"}); }),
                AllOf(HasSubstr("a.h5:/inputs/x: expected at most 2^56 bytes"), HasSubstr("2 rows of " + extents.row)));
  }
}

TEST_F(DataSetFiles, NameACutFileAtOpenWithBothSizes) {
  write_three_shards();
  const auto size = std::filesystem::file_size(folder_ / "train-1.h5");
  std::filesystem::resize_file(folder_ / "train-1.h5", size - 1000);
  EXPECT_THAT(message_of([&] { open(); }),
              AllOf(HasSubstr("train-1.h5"), HasSubstr("is cut"), HasSubstr("expected " + std::to_string(size)),
                    HasSubstr("found " + std::to_string(size - 1000))));
}

class CutAfterOpen : public DataSetFiles, public testing::WithParamInterface<Access> {};

TEST_P(CutAfterOpen, IsAnErrorOfTheGatherAndOfNothingElse) {
  write_three_shards();
  for (const bool verify : {true, false}) {
    write_three_shards();
    const auto data = open({.access = GetParam(), .verify_checksums = verify});
    expect_rows(*data, {9000, 9100});
    std::filesystem::resize_file(folder_ / "train-0.h5", 8192);
    for (int round = 0; round < 3; ++round) {
      EXPECT_THAT(message_of([&] { pixels(*data, {8999}); }), HasSubstr("train-0.h5"));
      expect_rows(*data, {9001, 9101});
    }
    std::thread([&] { EXPECT_THAT(message_of([&] { pixels(*data, {8000}); }), HasSubstr("train-0.h5")); }).join();
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, CutAfterOpen, testing::Values(Access::kMap, Access::kPread, Access::kStream));

// The handler must not swallow faults of others: they end the process, by the signal or by a sanitizer's own handler.
TEST_F(DataSetFiles, LeaveOtherBusErrorsToTheProcess) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  write_three_shards();
  const auto ended_by_it = [](int status) {
    return WIFSIGNALED(status) ? WTERMSIG(status) == SIGBUS : WEXITSTATUS(status) != 0;
  };
  EXPECT_EXIT(
      {
        const auto data = open();
        ::alarm(20);
        ::raise(SIGBUS);
      },
      ended_by_it, "");
}

class Damage : public DataSetFiles, public testing::WithParamInterface<Access> {};

TEST_P(Damage, IsFoundByTheChecksumOfItsBlock) {
  write_three_shards();
  // Pixels are written first and lie at the first multiple of 4,096 bytes where row 0 is found.
  std::ifstream in(folder_ / "train-0.h5", std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(in)), {});
  std::string first_row;
  for (int64_t element = 0; element < kElements; ++element) first_row += static_cast<char>(pixel_of(0, element));
  size_t begin = 0;
  while (bytes.compare(begin, first_row.size(), first_row) != 0) begin += 4096;
  bytes[begin + 5000 * kElements + 3] ^= 0x10;  // one bit of row 5000, in the second block
  write_file(folder_ / "train-0.h5", bytes);
  const auto data = open({.access = GetParam()});
  expect_rows(*data, {0, 4095, 8192, 9000});
  for (const int64_t row : {4096, 5000, 8191}) {
    EXPECT_THAT(message_of([&] { pixels(*data, {row}); }),
                AllOf(HasSubstr("train-0.h5:/inputs/x: rows [4096, 8192): expected checksum"), HasSubstr("damaged")));
  }
  EXPECT_EQ(pixels(*open({.access = GetParam(), .verify_checksums = false}), {5000})[3], pixel_of(5000, 3) ^ 0x10);
}

INSTANTIATE_TEST_SUITE_P(Ways, Damage, testing::Values(Access::kMap, Access::kPread, Access::kStream));

TEST_F(DataSetFiles, NameFileAndRowOfALabelOutOfRange) {
  write_three_shards();
  const auto data = open();
  std::vector<int64_t> out(3);
  const std::vector<int64_t> rows = {9100, 9101, 9107};
  EXPECT_THAT(message_of([&] { data->gather_integers(data->targets()[0], rows, 0, 7, kIgnored, out); }),
              AllOf(HasSubstr("train-2.h5, row 7"), HasSubstr("expected a value in [0, 7)"), HasSubstr("found 7")));
  data->gather_integers(data->targets()[0], rows, 0, 7, 7, out);
  EXPECT_EQ(out, (std::vector<int64_t>{0, 1, 7}));
}

TEST_F(DataSetFiles, RefuseFloatsAsLabels) {
  const Field x{.name = "x", .type = ElementType::kFloat32, .shape = {}};
  ShardWriter writer(folder_ / "train-0.h5", 2, {x}, {}, {});
  const float values[] = {1.5f, -2.25f};
  const std::span<const std::byte> columns[] = {std::as_bytes(std::span(values))};
  writer.append(2, columns);
  writer.finish();
  const auto data = open();
  const std::vector<int64_t> rows = {1, 0};
  std::vector<int64_t> integers(2);
  EXPECT_THAT(message_of([&] { data->gather_integers(data->inputs()[0], rows, 0, 7, -1, integers); }),
              AllOf(HasSubstr("train-0.h5"), HasSubstr("'x'"), HasSubstr("expected integers"), HasSubstr("float32")));
  std::vector<double> reals(2);
  data->gather(data->inputs()[0], rows, {}, {}, std::span(reals));
  EXPECT_EQ(reals, (std::vector<double>{-2.25, 1.5}));
}

TEST_F(DataSetFiles, RefuseRowsAndFieldsTheyDoNotHave) {
  write_three_shards();
  const auto data = open();
  EXPECT_THAT(message_of([&] { pixels(*data, {9300}); }), HasSubstr("row 9300: expected a row in [0, 9300)"));
  EXPECT_THAT(message_of([&] { pixels(*data, {-1}); }), HasSubstr("row -1"));
  Field other = data->inputs()[0];
  other.name = "z";
  std::vector<float> out(kElements);
  const std::vector<int64_t> rows = {0};
  EXPECT_THAT(message_of([&] { data->gather(other, rows, {}, {}, std::span(out)); }),
              HasSubstr("no field is named 'z'"));
}

}  // namespace
}  // namespace tutti::data
