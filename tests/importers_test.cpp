// Importers against files whose bytes the tests write themselves, through to the rows of the shards.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <zlib.h>

#include <bit>
#include <cmath>
#include <limits>

#include "data/field_statistics.h"
#include "data/import.h"
#include "data/import_cifar.h"
#include "data/import_csv.h"
#include "data/import_idx.h"
#include "data/import_npy.h"
#include "tests/shard_files.h"
#include "tests/zip_writer.h"

namespace tutti::data {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using Bytes = std::string;

enum class Order { kLittle, kBig };

Bytes number(uint64_t value, int width, Order order = Order::kLittle) {
  Bytes bytes;
  for (int i = 0; i < width; ++i) {
    bytes += static_cast<char>(value >> (8 * (order == Order::kLittle ? i : width - 1 - i)));
  }
  return bytes;
}

void write_gzip(const std::filesystem::path& path, const Bytes& bytes) {
  const gzFile file = ::gzopen(path.c_str(), "wb");
  ::gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
  ::gzclose(file);
}

// All rows of a source, read `count` at a time.
RowBytes rows_of(RowSource& source, int64_t count) {
  RowBytes all(source.inputs().size() + source.targets().size()), part;
  source.rewind();
  for (int64_t done = 0; done < source.row_count(); done += count) {
    source.read(std::min(count, source.row_count() - done), part);
    for (size_t i = 0; i < all.size(); ++i) all[i].insert(all[i].end(), part[i].begin(), part[i].end());
  }
  return all;
}

template <class Value>
std::vector<Value> values_of(const std::vector<std::byte>& bytes) {
  std::vector<Value> values(bytes.size() / sizeof(Value));
  std::copy_n(bytes.begin(), values.size() * sizeof(Value), std::as_writable_bytes(std::span(values)).begin());
  return values;
}

Bytes idx_images(int64_t rows) {
  Bytes bytes = number(0x0803, 4, Order::kBig) + number(static_cast<uint64_t>(rows), 4, Order::kBig) +
                number(2, 4, Order::kBig) + number(3, 4, Order::kBig);
  for (int64_t i = 0; i < rows * 6; ++i) bytes += static_cast<char>(i % 253);
  return bytes;
}

Bytes idx_labels(int64_t rows) {
  Bytes bytes = number(0x0801, 4, Order::kBig) + number(static_cast<uint64_t>(rows), 4, Order::kBig);
  for (int64_t i = 0; i < rows; ++i) bytes += static_cast<char>(i % 7);
  return bytes;
}

class Importers : public testing::Test {
 protected:
  TemporaryFolder folder_;
};

TEST_F(Importers, ReadIdxPlainAndGzip) {
  write_file(folder_ / "images", idx_images(100));
  write_gzip(folder_ / "labels.gz", idx_labels(100));
  const auto source = import_idx(folder_ / "images", folder_ / "labels.gz");
  EXPECT_EQ(source->row_count(), 100);
  EXPECT_EQ(describe(source->inputs()[0]), "uint8 [1, 2, 3]");
  EXPECT_EQ(describe(source->targets()[0]), "uint8 []");
  for (const int64_t count : {1, 33, 100}) {
    const RowBytes rows = rows_of(*source, count);
    const std::vector<uint8_t> pixels = values_of<uint8_t>(rows[0]), labels = values_of<uint8_t>(rows[1]);
    ASSERT_EQ(pixels.size(), 600u);
    for (size_t i = 0; i < 600; ++i) ASSERT_EQ(pixels[i], i % 253);
    for (size_t i = 0; i < 100; ++i) ASSERT_EQ(labels[i], i % 7);
  }
}

TEST_F(Importers, SwapTheBytesOfWideIdxElements) {
  Bytes images = number(0x0D02, 4, Order::kBig) + number(2, 4, Order::kBig) + number(2, 4, Order::kBig);
  for (const float value : {1.5f, -2.25f, 1e20f, 0.0f})
    images += number(std::bit_cast<uint32_t>(value), 4, Order::kBig);
  Bytes labels = number(0x0C01, 4, Order::kBig) + number(2, 4, Order::kBig) + number(70000, 4, Order::kBig) +
                 number(static_cast<uint32_t>(-5), 4, Order::kBig);
  write_file(folder_ / "images", images);
  write_file(folder_ / "labels", labels);
  const auto source = import_idx(folder_ / "images", folder_ / "labels");
  const RowBytes rows = rows_of(*source, 1);
  EXPECT_THAT(values_of<float>(rows[0]), ElementsAre(1.5f, -2.25f, 1e20f, 0.0f));
  EXPECT_THAT(values_of<int32_t>(rows[1]), ElementsAre(70000, -5));
}

TEST_F(Importers, NameBadIdxFiles) {
  const auto fault = [&](const Bytes& images, const Bytes& labels) {
    write_file(folder_ / "images", images);
    write_file(folder_ / "labels", labels);
    return message_of([&] {
      const auto source = import_idx(folder_ / "images", folder_ / "labels");
      rows_of(*source, 64);
    });
  };
  EXPECT_THAT(fault("PK34", idx_labels(100)),
              AllOf(HasSubstr("images: expected an IDX file"), HasSubstr("50 4b 33 34")));
  EXPECT_THAT(fault(idx_images(100), idx_labels(99)), AllOf(HasSubstr("100 rows"), HasSubstr("holds 99")));
  EXPECT_THAT(fault(idx_images(100).substr(0, 500), idx_labels(100)),
              AllOf(HasSubstr("images: the file is cut"), HasSubstr("rows [64, 100) of 100"), HasSubstr("found 100")));
  EXPECT_THAT(fault(idx_images(100), Bytes("\0\0", 2)), AllOf(HasSubstr("labels"), HasSubstr("the header")));
  EXPECT_THAT(fault(idx_images(100), idx_images(100)), HasSubstr("expected one integer per row as label"));
  write_gzip(folder_ / "whole.gz", idx_images(5000));
  std::filesystem::resize_file(folder_ / "whole.gz", std::filesystem::file_size(folder_ / "whole.gz") / 2);
  write_file(folder_ / "labels", idx_labels(5000));
  EXPECT_THAT(message_of([&] { rows_of(*import_idx(folder_ / "whole.gz", folder_ / "labels"), 5000); }),
              AllOf(HasSubstr("whole.gz"), HasSubstr("cut")));
  EXPECT_THAT(message_of([&] { import_idx(folder_ / "none", folder_ / "labels"); }),
              HasSubstr("none: cannot be opened"));
}

Bytes cifar_row(int label_bytes, int64_t row) {
  Bytes bytes(label_bytes == 2 ? 1 : 0, '\x09');
  bytes += static_cast<char>(row % 10);
  for (int64_t i = 0; i < 3072; ++i) bytes += static_cast<char>((row * 31 + i) % 249);
  return bytes;
}

TEST_F(Importers, ReadCifar) {
  for (const int64_t first : {0, 3, 6}) {
    Bytes bytes;
    for (int64_t row = first; row < first + 3; ++row) bytes += cifar_row(1, row);
    write_file(folder_ / ("data_batch_" + std::to_string(1 + first / 3) + ".bin"), bytes);
  }
  write_file(folder_ / "batches.meta.txt", "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n\n");
  write_file(folder_ / "test.bin", cifar_row(2, 4) + cifar_row(2, 5));
  const auto train = import_cifar(CifarKind::kCifar10, CifarPart::kTrain, folder_.path());
  EXPECT_EQ(train->row_count(), 9);
  EXPECT_EQ(describe(train->inputs()[0]), "uint8 [3, 32, 32]");
  EXPECT_EQ(train->targets()[0].class_names[9], "j");
  const RowBytes rows = rows_of(*train, 4);
  EXPECT_THAT(values_of<uint8_t>(rows[1]), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8));
  for (int64_t row = 0; row < 9; ++row) {
    for (int64_t i = 0; i < 3072; i += 511) {
      ASSERT_EQ(std::to_integer<int64_t>(rows[0][static_cast<size_t>(row * 3072 + i)]), (row * 31 + i) % 249);
    }
  }
  const auto test = import_cifar(CifarKind::kCifar100, CifarPart::kTest, folder_.path());
  EXPECT_EQ(test->targets()[0].class_count, 100);
  EXPECT_THAT(values_of<uint8_t>(rows_of(*test, 5)[1]), ElementsAre(4, 5));
}

TEST_F(Importers, NameBadCifarFiles) {
  EXPECT_THAT(message_of([&] { import_cifar(CifarKind::kCifar10, CifarPart::kTrain, folder_.path()); }),
              HasSubstr("found no data_batch_*.bin"));
  write_file(folder_ / "test_batch.bin", cifar_row(1, 0) + "x");
  EXPECT_THAT(message_of([&] { import_cifar(CifarKind::kCifar10, CifarPart::kTest, folder_.path()); }),
              AllOf(HasSubstr("test_batch.bin: the file is cut"), HasSubstr("1 rows and 1 bytes")));
  Bytes row = cifar_row(1, 0);
  row[0] = 10;
  write_file(folder_ / "test_batch.bin", cifar_row(1, 1) + row);
  EXPECT_THAT(message_of([&] { rows_of(*import_cifar(CifarKind::kCifar10, CifarPart::kTest, folder_.path()), 2); }),
              AllOf(HasSubstr("test_batch.bin, row 1"), HasSubstr("found 10")));
}

TEST_F(Importers, ReadCsvWithHeaderAndClassNames) {
  write_file(folder_ / "a.csv",
             "length,width,species\r\n1.5,2,setosa\r\n-3e2, 4 ,\"virginica, blue\"\r\n\r\n5,,setosa\r\n");
  const auto source = import_csv(folder_ / "a.csv", {});
  EXPECT_EQ(source->row_count(), 3);
  EXPECT_EQ(describe(source->inputs()[0]), "float32 [2]");
  EXPECT_THAT(source->targets()[0].class_names, ElementsAre("setosa", "virginica, blue"));
  for (const int64_t count : {1, 3}) {
    const RowBytes rows = rows_of(*source, count);
    const std::vector<float> x = values_of<float>(rows[0]);
    EXPECT_THAT(std::vector<float>(x.begin(), x.begin() + 5), ElementsAre(1.5f, 2, -300, 4, 5));
    EXPECT_TRUE(std::isnan(x[5]));
    EXPECT_THAT(values_of<int64_t>(rows[1]), ElementsAre(0, 1, 0));
  }
}

TEST_F(Importers, FindTheTypeOfCsvTargets) {
  write_file(folder_ / "a.csv", "1,2,3\n4,5.5,6\n");
  const auto read = [&](const CsvOptions& options) {
    const auto source = import_csv(folder_ / "a.csv", options);
    return std::pair{describe(source->targets()[0]), rows_of(*source, 2)};
  };
  EXPECT_EQ(read({}).first, "int64 []");
  EXPECT_THAT(values_of<int64_t>(read({}).second[1]), ElementsAre(3, 6));
  EXPECT_THAT(values_of<float>(read({}).second[0]), ElementsAre(1, 2, 4, 5.5f));
  EXPECT_EQ(read({.targets = {"1"}}).first, "float32 []");
  EXPECT_THAT(values_of<float>(read({.targets = {"1"}}).second[1]), ElementsAre(2, 5.5f));
  EXPECT_EQ(read({.targets = {"2", "0"}}).first, "int64 [2]");
  EXPECT_THAT(values_of<int64_t>(read({.targets = {"2", "0"}}).second[1]), ElementsAre(3, 1, 6, 4));
  EXPECT_EQ(read({.target_type = CsvOptions::TargetType::kFloat}).first, "float32 []");
  EXPECT_EQ(import_csv(folder_ / "a.csv", {.header = CsvOptions::Header::kPresent})->row_count(), 1);
  write_file(folder_ / "a.csv", "a;b\n1;2\n");
  EXPECT_THAT(values_of<int64_t>(read({.targets = {"a"}, .separator = ';'}).second[1]), ElementsAre(1));
}

TEST_F(Importers, NameTheLineOfABadCsv) {
  const auto fault = [&](const Bytes& text, const CsvOptions& options = {}) {
    write_file(folder_ / "a.csv", text);
    return message_of([&] { import_csv(folder_ / "a.csv", options); });
  };
  EXPECT_THAT(fault("a,b\n1,2\n3\n"), AllOf(HasSubstr("a.csv:3: expected 2 cells"), HasSubstr("found 1")));
  EXPECT_THAT(fault("a,b\n1,2\nx,4\n"), AllOf(HasSubstr("a.csv:3: column 0 ('a')"), HasSubstr("found 'x'")));
  EXPECT_THAT(fault("a,b\n1,\n"), AllOf(HasSubstr("a.csv:2"), HasSubstr("the target is empty")));
  EXPECT_THAT(fault("a,b\n\"1,2\n"), HasSubstr("a.csv:2: a quote is opened and not closed"));
  EXPECT_THAT(fault("a,b\n"), HasSubstr("expected rows below the header"));
  EXPECT_THAT(fault(""), HasSubstr("found no line"));
  EXPECT_THAT(fault("a,b\n1,2\n", {.targets = {"c"}}), AllOf(HasSubstr("target 'c'"), HasSubstr("from 0 to 1")));
  EXPECT_THAT(fault("a,b\n1,2.5\n", {.target_type = CsvOptions::TargetType::kInteger}), HasSubstr("no integer"));
}

TEST_F(Importers, ReadCsvBehindAByteOrderMark) {
  write_file(folder_ / "a.csv", "\xEF\xBB\xBFprice,width\n1.5,2\n3,4\n");
  const auto source = import_csv(folder_ / "a.csv", {.targets = {"price"}});
  EXPECT_EQ(source->row_count(), 2);
  EXPECT_THAT(values_of<float>(rows_of(*source, 2)[1]), ElementsAre(1.5f, 3));
  write_file(folder_ / "a.csv",
             "\xEF\xBB\xBF"
             "1,2\n3,4\n");
  EXPECT_EQ(import_csv(folder_ / "a.csv", {})->row_count(), 2);
}

TEST_F(Importers, RefuseACsvTargetThatNamesTwoColumns) {
  write_file(folder_ / "a.csv", "a,b,b\n1,2,3\n");
  EXPECT_THAT(message_of([&] { import_csv(folder_ / "a.csv", {.targets = {"b"}}); }),
              AllOf(HasSubstr("target 'b'"), HasSubstr("found 2 of that name"), HasSubstr("from 0 to 2")));
  EXPECT_THAT(values_of<int64_t>(rows_of(*import_csv(folder_ / "a.csv", {.targets = {"1"}}), 1)[1]), ElementsAre(2));
}

TEST_F(Importers, RefuseACsvTargetThatIsGivenTwice) {
  write_file(folder_ / "a.csv", "a,b,c\n1,2,3\n");
  for (const char* second : {"b", "1"}) {
    EXPECT_THAT(message_of([&] {
                  import_csv(folder_ / "a.csv", {.targets = {"b", second}});
                }),
                AllOf(HasSubstr("target '" + std::string(second) + "'"), HasSubstr("column 1 ('b') a second time")));
  }
}

TEST_F(Importers, PointToTheSeparatorOfACsvInOneCell) {
  write_file(folder_ / "a.csv", "a;b\n1;2\n");
  EXPECT_THAT(message_of([&] { import_csv(folder_ / "a.csv", {}); }),
              AllOf(HasSubstr("no column is left as an input"), HasSubstr("--separator ';'")));
  EXPECT_THAT(message_of([&] { import_csv(folder_ / "a.csv", {.targets = {"b"}}); }), HasSubstr("--separator ';'"));
}

Bytes npy(const Bytes& descr, const Bytes& shape, const Bytes& elements, int version = 1,
          const Bytes& order = "False") {
  Bytes header = "{'descr': '" + descr + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }";
  const size_t prefix = version == 1 ? 10 : 12;
  header += Bytes(63 - (prefix + header.size()) % 64, ' ') + "\n";
  return "\x93NUMPY" + number(static_cast<uint64_t>(version), 1) + Bytes(1, '\0') +
         number(header.size(), version == 1 ? 2 : 4) + header + elements;
}

template <class Value>
Bytes elements_of(const std::vector<Value>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(Value)};
}

TEST_F(Importers, ReadNpyOfEveryVersionAndType) {
  const auto read = [&](const Bytes& bytes) {
    write_file(folder_ / "x.npy", bytes);
    write_file(folder_ / "y.npy", npy("<i8", "(2,)", elements_of<int64_t>({4, -5})));
    const auto source = import_npy(folder_ / "x.npy", folder_ / "y.npy");
    RowBytes rows = rows_of(*source, 1);
    EXPECT_THAT(values_of<int64_t>(rows[1]), ElementsAre(4, -5));
    return std::pair{describe(source->inputs()[0]), rows[0]};
  };
  for (const int version : {1, 2, 3}) {
    const auto [type, bytes] = read(npy("<f4", "(2, 1, 2)", elements_of<float>({1, 2.5f, -3, 4}), version));
    EXPECT_EQ(type, "float32 [1, 2]");
    EXPECT_THAT(values_of<float>(bytes), ElementsAre(1, 2.5f, -3, 4));
  }
  EXPECT_EQ(read(npy("<f8", "(2,)", elements_of<double>({1, 2}))).first, "float64 []");
  EXPECT_EQ(read(npy("|u1", "(2, 2)", "abcd")).first, "uint8 [2]");
  EXPECT_EQ(read(npy("|b1", "(2,)", Bytes("\1\0", 2))).first, "uint8 []");
  EXPECT_EQ(read(npy("<i2", "(2,)", "abcd")).first, "int16 []");
}

TEST_F(Importers, NameBadNpyFiles) {
  const auto fault = [&](const Bytes& bytes) {
    write_file(folder_ / "x.npy", bytes);
    write_file(folder_ / "y.npy", npy("<i8", "(2,)", elements_of<int64_t>({4, -5})));
    return message_of([&] { rows_of(*import_npy(folder_ / "x.npy", folder_ / "y.npy"), 2); });
  };
  EXPECT_THAT(fault("hello, world"), HasSubstr("x.npy: expected a NumPy array"));
  EXPECT_THAT(fault(npy("<f2", "(2,)", "abcd")), AllOf(HasSubstr("found '<f2'"), HasSubstr("astype")));
  EXPECT_THAT(fault(npy(">f4", "(2,)", "abcdefgh")), HasSubstr("found '>f4'"));
  EXPECT_THAT(fault(npy("<f4", "(2,)", "abcd")), AllOf(HasSubstr("is cut"), HasSubstr("rows [0, 2) of 2")));
  EXPECT_THAT(fault(npy("<f4", "(3,)", "abcdefghijkl")), AllOf(HasSubstr("holds 3 rows"), HasSubstr("holds 2")));
  EXPECT_THAT(fault(npy("<f4", "(2,)", "abcdefgh", 1, "True")), HasSubstr("Fortran order"));
  EXPECT_THAT(fault(npy("<f4", "(2,)", "abcdefgh", 4)), HasSubstr("version 1, 2 or 3, found 4"));
  EXPECT_THAT(fault(npy("<f4", "()", "abcd")), HasSubstr("found a scalar"));
}

// Sizes whose product does not fit 64 bits: 2 x 2^62 x 4 bytes would be 0, 2 x (2^61 + 1) x 4 bytes 8.
TEST_F(Importers, RefuseShapesWhoseBytesCannotBeCounted) {
  for (const Bytes shape : {"4611686018427387904", "2305843009213693953", "4294967296, 4294967296, 0"}) {
    write_file(folder_ / "x.npy", npy("<f4", "(2, " + shape + ")", "abcdefgh"));
    write_file(folder_ / "y.npy", npy("<i8", "(2,)", elements_of<int64_t>({4, -5})));
    EXPECT_THAT(message_of([&] { import_npy(folder_ / "x.npy", folder_ / "y.npy"); }),
                AllOf(HasSubstr("x.npy: expected at most 2^56 bytes"), HasSubstr("2 rows of float32 [" + shape + "]")));
  }
  const Bytes sizes = number(2, 4, Order::kBig) + number(1u << 31, 4, Order::kBig) + number(1u << 31, 4, Order::kBig) +
                      number(4, 4, Order::kBig);
  write_file(folder_ / "images", Bytes("\0\0\x08\4", 4) + sizes + "abcdefgh");
  write_file(folder_ / "labels", idx_labels(2));
  EXPECT_THAT(message_of([&] { import_idx(folder_ / "images", folder_ / "labels"); }),
              AllOf(HasSubstr("images: expected at most 2^56 bytes"), HasSubstr("uint8 [2147483648, 2147483648, 4]")));
}

TEST_F(Importers, ReadNpzStoredDeflatedAndZip64) {
  std::vector<float> x(30000);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 1000);
  std::vector<uint8_t> y(10000);
  for (size_t i = 0; i < y.size(); ++i) y[i] = static_cast<uint8_t>(i * i);
  for (const ZipSizes sizes : {ZipSizes::k32Bit, ZipSizes::k64Bit}) {
    write_file(folder_ / "a.npz", zip_bytes({{"other.npy", "?"},
                                             {"x.npy", npy("<f4", "(10000, 3)", elements_of(x)), 8},
                                             {"labels.npy", npy("|u1", "(10000,)", elements_of(y)), 0}},
                                            sizes, "note"));
    const auto source = import_npz(folder_ / "a.npz", "x", "labels");
    for (const int64_t count : {777, 10000}) {
      const RowBytes rows = rows_of(*source, count);
      EXPECT_EQ(values_of<float>(rows[0]), x) << "in 64 bits: " << (sizes == ZipSizes::k64Bit);
      EXPECT_EQ(values_of<uint8_t>(rows[1]), y) << "in 64 bits: " << (sizes == ZipSizes::k64Bit);
    }
  }
}

TEST_F(Importers, NameBadNpzFiles) {
  const Bytes x = npy("<f4", "(100,)", elements_of(std::vector<float>(100, 3))),
              y = npy("|u1", "(100,)", Bytes(100, 'y'));
  const auto fault = [&](const Bytes& bytes) {
    write_file(folder_ / "a.npz", bytes);
    return message_of([&] { rows_of(*import_npz(folder_ / "a.npz", "x", "y"), 64); });
  };
  EXPECT_THAT(fault("hello"), HasSubstr("a.npz: expected a ZIP archive"));
  EXPECT_THAT(fault(zip_bytes({{"x.npy", x}})), AllOf(HasSubstr("expected the member 'y.npy'"), HasSubstr("x.npy")));
  EXPECT_THAT(fault(zip_bytes({{"x.npy", x, 12}, {"y.npy", y}})), HasSubstr("method 12"));
  Bytes flipped = zip_bytes({{"x.npy", x}, {"y.npy", y}});
  flipped[flipped.find("yyyy") + 50] = 'z';
  EXPECT_THAT(fault(flipped), AllOf(HasSubstr("a.npz:y.npy"), HasSubstr("expected checksum")));
  Bytes damaged = zip_bytes({{"x.npy", x, 8}, {"y.npy", y}});
  for (size_t i = 45; i < 60; ++i) damaged[i] = '\xee';
  EXPECT_THAT(fault(damaged), HasSubstr("a.npz:x.npy"));
}

TEST_F(Importers, RefuseNpyAndNpzThatAreNoRegularFiles) {
  const std::filesystem::path pipe = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  write_file(folder_ / "x.npy", npy("|u1", "(2,)", "ab"));
  const std::pair<std::filesystem::path, const char*> cases[] = {
      {pipe, "pipe"}, {folder_.path(), "folder"}, {"/dev/null", "device"}};
  for (const auto& [path, kind] : cases) {
    const auto refusal = AllOf(HasSubstr(path.string() + ": expected a regular file"), HasSubstr(kind));
    EXPECT_THAT(message_of([&, path = path] { import_npy(path, folder_ / "x.npy"); }), refusal);
    EXPECT_THAT(message_of([&, path = path] { import_npy(folder_ / "x.npy", path); }), refusal);
    EXPECT_THAT(message_of([&, path = path] { import_npz(path, "x", "y"); }), refusal);
  }
}

TEST(FieldStatistics, AreThoseOfPlainLoopsPerChannel) {
  const Field field{.name = "x", .type = ElementType::kFloat64, .shape = {2, 3, 5}};
  std::vector<double> values(30 * 200);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = 1e6 + std::sin(static_cast<double>(i)) * (i / 15 % 2 == 0 ? 1 : 3);
  FieldStatistics statistics(field);
  statistics.add(150, std::as_bytes(std::span(values).first(150 * 30)));
  statistics.add(50, std::as_bytes(std::span(values).last(50 * 30)));
  for (size_t channel = 0; channel < 2; ++channel) {
    long double sum = 0, squares = 0;
    for (size_t i = 0; i < values.size(); ++i) sum += i / 15 % 2 == channel ? values[i] : 0;
    const long double mean = sum / 3000;
    for (size_t i = 0; i < values.size(); ++i) {
      squares += i / 15 % 2 == channel ? (values[i] - mean) * (values[i] - mean) : 0;
    }
    EXPECT_NEAR(statistics.mean()[channel], static_cast<double>(mean), 1e-8);
    EXPECT_NEAR(statistics.deviation()[channel], static_cast<double>(std::sqrt(squares / 3000)), 1e-9);
  }
}

TEST(FieldStatistics, GiveAConstantTheDeviationOne) {
  const Field field{.name = "x", .type = ElementType::kFloat32, .shape = {2}};
  const std::vector<float> values = {5, 1, 5, 2};
  FieldStatistics statistics(field);
  statistics.add(2, std::as_bytes(std::span(values)));
  EXPECT_THAT(statistics.mean(), ElementsAre(5, 1.5));
  EXPECT_THAT(statistics.deviation(), ElementsAre(1, 0.5));
}

class Imports : public Importers {
 protected:
  void SetUp() override {
    write_file(folder_ / "images", idx_images(100));
    write_file(folder_ / "labels", idx_labels(100));
  }
  ImportSummary import_with(ImportOptions options) {
    options.out = folder_ / "out/digits";
    const auto source = import_idx(folder_ / "images", folder_ / "labels");
    return import_rows(*source, options);
  }
};

TEST_F(Imports, GiveShardsThatHoldTheRows) {
  const ImportSummary summary = import_with({.rows_per_shard = 30});
  ASSERT_EQ(summary.files.size(), 4u);
  EXPECT_EQ(summary.files[3].path, folder_ / "out/digits-003.h5");
  EXPECT_EQ(summary.files[3].row_count, 10);
  const auto data = DataSet::open({folder_ / "out/digits-*.h5"});
  ASSERT_EQ(data->row_count(), 100);
  EXPECT_EQ(data->targets()[0].class_count, 7);
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < 600; ++i) sum += static_cast<double>(i % 253);
  for (int64_t i = 0; i < 600; ++i) squares += std::pow(static_cast<double>(i % 253) - sum / 600, 2);
  const Field& x = data->inputs()[0];
  EXPECT_NEAR(x.mean.at(0), sum / 600, 1e-10);
  EXPECT_NEAR(x.deviation.at(0), std::sqrt(squares / 600), 1e-10);
  const std::vector<int64_t> rows = {0, 29, 30, 99};
  std::vector<double> values(24);
  std::vector<int64_t> labels(4);
  data->gather(x, rows, {}, {}, std::span(values));
  data->gather_integers(data->targets()[0], rows, 0, 7, -1, labels);
  EXPECT_THAT(labels, ElementsAre(0, 1, 2, 1));
  for (size_t i = 0; i < 24; ++i) {
    const auto pixel = static_cast<double>((rows[i / 6] * 6 + static_cast<int64_t>(i % 6)) % 253);
    EXPECT_EQ(values[i], (pixel - x.mean[0]) / x.deviation[0]);
  }
}

TEST_F(Imports, KeepTheNumberOrderInTheNames) {
  const ImportSummary summary = import_with({.rows_per_shard = 1});
  for (size_t i = 1; i < summary.files.size(); ++i) {
    EXPECT_LT(summary.files[i - 1].path.string(), summary.files[i].path.string());
  }
}

TEST_F(Imports, ReplaceShardsOnlyWhenTold) {
  import_with({.rows_per_shard = 10});
  EXPECT_THAT(message_of([&] { import_with({.rows_per_shard = 50}); }), HasSubstr("digits-000.h5: exists already"));
  import_with({.rows_per_shard = 50, .writer = {.existing = ShardWriter::Existing::kReplace}});
  EXPECT_EQ(DataSet::open({folder_ / "out/digits-*.h5"})->row_count(), 100);
}

TEST_F(Imports, TakeTheNormalisationOfAnotherShard) {
  import_with({});
  write_file(folder_ / "images", idx_images(40));
  write_file(folder_ / "labels", idx_labels(40));
  const auto source = import_idx(folder_ / "images", folder_ / "labels");
  import_rows(*source, {.out = folder_ / "out/test",
                        .normalisation = ImportOptions::Normalisation::kLike,
                        .like = folder_ / "out/digits-000.h5"});
  EXPECT_EQ(DataSet::open({folder_ / "out/test-000.h5"})->inputs(),
            DataSet::open({folder_ / "out/digits-000.h5"})->inputs());
  write_shard(folder_ / "other.h5", {.row_count = 3});
  EXPECT_THAT(message_of([&] {
                import_rows(*source, {.out = folder_ / "out/more",
                                      .normalisation = ImportOptions::Normalisation::kLike,
                                      .like = folder_ / "other.h5"});
              }),
              AllOf(HasSubstr("other.h5: expected a field 'x' of uint8 [1, 2, 3]")));
}

TEST_F(Imports, RefuseValuesThatAreNotFinite) {
  write_file(folder_ / "a.csv", "a,b,c\n1,2,0\n3,,1\nnan,inf,0\n");
  const auto source = import_csv(folder_ / "a.csv", {});
  EXPECT_THAT(
      message_of([&] { import_rows(*source, {.out = folder_ / "a"}); }),
      AllOf(HasSubstr("field 'x': 3 of 6 values (50 %)"), HasSubstr("first in row 1"), HasSubstr("--allow-nan")));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "a-000.h5"));
  import_rows(*source, {.out = folder_ / "a", .non_finite = ImportOptions::NonFinite::kAllow});
  EXPECT_THAT(DataSet::open({folder_ / "a-000.h5"})->inputs()[0].mean, ElementsAre(2, 2));
}

TEST_F(Imports, LeaveIndicesAsTheyAre) {
  write_file(folder_ / "x.npy", npy("<i4", "(2, 3)", elements_of<int32_t>({1, 2, 3, 4, 5, 6})));
  write_file(folder_ / "y.npy", npy("<f4", "(2,)", elements_of<float>({1, 2})));
  const auto source = import_npy(folder_ / "x.npy", folder_ / "y.npy");
  import_rows(*source, {.out = folder_ / "a"});
  EXPECT_TRUE(DataSet::open({folder_ / "a-000.h5"})->inputs()[0].mean.empty());
}

}  // namespace
}  // namespace tutti::data
