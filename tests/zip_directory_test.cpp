// ZIP directories that are damaged or made to do harm: a clear error each, for .npz members as for the directory alone.
#include "data/zip_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "data/zip_archive.h"
#include "tests/shard_files.h"
#include "tests/zip_writer.h"

namespace tutti::data {
namespace {

using testing::HasSubstr;

constexpr const char* kEntry = "PK\1\2";
constexpr const char* kLocal = "PK\3\4";
constexpr const char* kEnd = "PK\5\6";
constexpr const char* kEnd64 = "PK\6\6";
constexpr const char* kLocator64 = "PK\6\7";

/// A falsified number: `offset` bytes behind the last record with that signature.
struct Lie {
  const char* signature;
  size_t offset;
  int width;
  uint64_t value;
  const char* refusal;  ///< part of the message
  ZipSizes sizes = ZipSizes::k32Bit;
};

std::vector<ZipEntry> entries() { return {{"x.npy", "some bytes"}, {"y.npy", std::string(1000, 'y'), 8}}; }

class ZipDirectory : public testing::Test {
 protected:
  /// What the directory alone says of the file; the opening of each member must say the same, and what to do.
  std::string refusal_of(const std::string& bytes) const {
    write_file(file_, bytes);
    const std::string refusal = message_of([&] { read_zip_directory(file_); });
    EXPECT_THAT(refusal, HasSubstr(file_.string()));
    EXPECT_EQ(message_of([&] { open_zip_member(file_, "x.npy"); }), refusal + "; fetch it or write it again");
    return refusal;
  }
  std::string content_of(const std::string& member, size_t bytes) const {
    std::string content(bytes, '\0');
    open_zip_member(file_, member)->read_all(std::as_writable_bytes(std::span(content)), member);
    return content;
  }

  TemporaryFolder folder_;
  std::filesystem::path file_ = folder_ / "a.npz";
};

TEST_F(ZipDirectory, ListsMembersInOrder) {
  for (const ZipSizes sizes : {ZipSizes::k32Bit, ZipSizes::k64Bit}) {
    write_file(file_, zip_bytes(entries(), sizes, "a comment"));
    const std::vector<ZipMember> members = read_zip_directory(file_);
    ASSERT_EQ(members.size(), 2u);
    EXPECT_EQ(members[0].name, "x.npy");
    EXPECT_EQ(members[0].method, ZipMethod::kStored);
    EXPECT_EQ(members[0].stored_bytes, 10);
    EXPECT_EQ(members[1].method, ZipMethod::kDeflated);
    EXPECT_EQ(members[1].bytes, 1000);
    EXPECT_EQ(content_of("x.npy", 10), "some bytes");
    EXPECT_EQ(content_of("y.npy", 1000), std::string(1000, 'y'));
  }
  write_file(file_, zip_bytes({}));
  EXPECT_TRUE(read_zip_directory(file_).empty());
}

TEST_F(ZipDirectory, RefusesEveryTruncation) {
  for (const ZipSizes sizes : {ZipSizes::k32Bit, ZipSizes::k64Bit}) {
    const std::string whole = zip_bytes(entries(), sizes);
    for (size_t bytes = 0; bytes < whole.size(); ++bytes) {
      EXPECT_NE(refusal_of(whole.substr(0, bytes)), "") << bytes << " of " << whole.size() << " bytes";
    }
  }
}

// A damaged name or time may pass; the bytes that a member gives are the true ones all the same.
TEST_F(ZipDirectory, NeverGivesOtherBytesWhereOneIsFlipped) {
  for (const ZipSizes sizes : {ZipSizes::k32Bit, ZipSizes::k64Bit}) {
    const std::string whole = zip_bytes(entries(), sizes);
    int read_count = 0;
    for (size_t i = 0; i < whole.size(); ++i) {
      std::string damaged = whole;
      damaged[i] = static_cast<char>(damaged[i] ^ 0x55);
      write_file(file_, damaged);
      try {
        EXPECT_EQ(content_of("x.npy", 10), "some bytes") << "byte " << i;
        EXPECT_EQ(content_of("y.npy", 1000), std::string(1000, 'y')) << "byte " << i;
        ++read_count;
      } catch (const DataError& error) {
        EXPECT_THAT(error.what(), HasSubstr(file_.string()));
      }
    }
    EXPECT_GE(read_count, 16) << "two members, each with four bytes of time in both of its headers";
  }
}

TEST_F(ZipDirectory, RefusesNumbersThatCannotBe) {
  constexpr ZipSizes k64 = ZipSizes::k64Bit;
  const Lie lies[] = {
      {kEntry, 8, 2, 1, "encrypted"},
      {kEntry, 8, 2, 1 << 5, "is a patch"},
      {kEntry, 8, 2, 2, "name, method or flags"},
      {kEntry, 10, 2, 12, "method 12"},
      {kEntry, 10, 2, 0, "stored ones, which cannot be"},
      {kEntry, 16, 4, 7, "checksum or size"},
      {kEntry, 20, 4, 0xF0000000, "claims 4026531840 bytes, the whole file has"},
      {kEntry, 24, 4, 0x7FFFFFFF, "compressed ones, which cannot be"},
      {kEntry, 24, 4, 0xFFFFFFFF, "is cut"},
      {kEntry, 24, 4, 999, "checksum or size"},
      {kEntry, 28, 2, 0, "expected names of 1 to 511 bytes"},
      {kEntry, 28, 2, 0xFFFF, "ends too early"},
      {kEntry, 34, 2, 1, "several parts"},
      {kEntry, 42, 4, 0xFFFFFFF0, "the file has"},
      {kEntry, 42, 4, 1, "is damaged"},
      {kEntry, 46, 1, 0, "without a NUL"},
      {kLocal, 6, 2, 1, "name, method or flags"},
      {kLocal, 22, 4, 999, "checksum or size"},
      {kLocal, 30, 1, 'z', "name, method or flags"},
      {kLocal, 26, 2, 0xFFFF, "the file has"},
      {kEnd, 4, 2, 1, "several parts"},
      {kEnd, 8, 2, 1, "several parts"},
      {kEnd, 8, 4, 0x10001, "more than the 1 members"},
      {kEnd, 8, 4, 0x30003, "fewer members"},
      {kEnd, 12, 4, 5, "claims 5 bytes"},
      {kEnd, 16, 4, 0xFFFFFFFF, "has to end at"},
      {kEnd, 20, 2, 1, "differ in length"},
      {kEnd64, 4, 8, 45, "64-bit record", k64},
      {kEnd64, 16, 4, 1, "several parts", k64},
      {kEnd64, 32, 8, UINT64_MAX, "several parts", k64},
      {kEnd64, 40, 8, UINT64_MAX, "has to end at", k64},
      {kEnd64, 48, 8, UINT64_MAX, "has to end at", k64},
      {kLocator64, 8, 8, UINT64_MAX, "the file has", k64},
      {kLocator64, 16, 4, 2, "several parts", k64},
      {kEnd, 10, 2, 1, "several parts", k64},
      {kEnd, 12, 4, 1, "end records of its ZIP directory differ", k64},
  };
  for (const Lie& lie : lies) {
    std::string bytes = zip_bytes(entries(), lie.sizes);
    bytes.replace(bytes.rfind(lie.signature) + lie.offset, static_cast<size_t>(lie.width),
                  little_endian(lie.value, lie.width));
    EXPECT_THAT(refusal_of(bytes), HasSubstr(lie.refusal)) << lie.value << " at " << lie.offset << ": " << lie.refusal;
  }
}

// The file has holes: it takes no room, and is as large as its directory claims.
TEST_F(ZipDirectory, RefusesLargeDirectoriesBeforeTheyAreRead) {
  const auto refusal_of_holes = [this](uint64_t count, uint64_t bytes) {
    write_file(file_, "");
    std::filesystem::resize_file(file_, bytes);
    std::ofstream(file_, std::ios::binary | std::ios::app) << zip_end(count, bytes, 0, ZipSizes::k64Bit, "");
    return message_of<ZipError>([&] { read_zip_directory(file_); });
  };
  constexpr uint64_t kMiB = uint64_t{1} << 20;
  EXPECT_THAT(refusal_of_holes(1, kMiB << 14), HasSubstr("at most 268435456 bytes, found 17179869184"));
  EXPECT_THAT(refusal_of_holes(5, kMiB), HasSubstr("more than the 5 members"));
  EXPECT_THAT(refusal_of_holes(6, kMiB), HasSubstr("is damaged"));  // six can be that large: it is read
  EXPECT_THAT(refusal_of_holes(kMiB, kMiB), HasSubstr("fewer members"));
}

TEST_F(ZipDirectory, RefusesTwoMembersOfOneName) {
  EXPECT_THAT(refusal_of(zip_bytes({{"x.npy", "1"}, {"y.npy", "2"}, {"x.npy", "3"}})),
              HasSubstr("'x.npy' is there twice"));
}

TEST_F(ZipDirectory, RefusesLongNames) {
  EXPECT_THAT(refusal_of(zip_bytes({{std::string(512, 'x'), "1"}})), HasSubstr("found one of 512 bytes"));
}

// The first member claims the second's header and bytes as its own too, in both of its headers.
TEST_F(ZipDirectory, RefusesMembersThatOverlap) {
  EXPECT_THAT(refusal_of(zip_bytes({{"x.npy", "12345", 0, 20}, {"y.npy", "2"}})),
              HasSubstr("'x.npy' overlaps another one"));
  EXPECT_THAT(refusal_of(zip_bytes({{"w.npy", "2"}, {"x.npy", "12345", 0, 20}})),
              HasSubstr("'x.npy' overlaps the ZIP directory"));
}

TEST_F(ZipDirectory, RefusesBytesBehindAndBeforeTheArchive) {
  EXPECT_THAT(refusal_of(zip_bytes(entries()) + "x"), HasSubstr("differ in length"));
  EXPECT_THAT(refusal_of(std::string("x").append(zip_bytes(entries()))), HasSubstr("has to end at"));
}

/// An archive of the local header's `fields` (from its flags to its sizes) and the same of the directory's entry.
std::string archive_of(const std::string& local, const std::string& local_extra, const std::string& entry,
                       const std::string& behind) {
  const auto n = little_endian;
  const std::string name = "x.npy", bytes = "some bytes";
  const std::string member = n(0x04034b50, 4) + n(45, 2) + local + n(name.size(), 2) + n(local_extra.size(), 2) + name +
                             local_extra + bytes + behind;
  const std::string directory =
      n(0x02014b50, 4) + n(45, 2) + n(45, 2) + entry + n(name.size(), 2) + std::string(16, '\0') + name;
  return member + directory + zip_end(1, directory.size(), member.size(), ZipSizes::k32Bit, "");
}

// As numpy.savez writes them: the local header alone leaves its sizes to its 64-bit field. To a pipe, checksum and
// sizes follow the bytes, and stand as 0 before them.
TEST_F(ZipDirectory, ReadsTheHeadersThatNumpyWrites) {
  const auto n = little_endian;
  const uint64_t crc = ::crc32_z(0, reinterpret_cast<const Bytef*>("some bytes"), 10);
  const std::string times = n(0, 2) + n(0x21, 2), wide(8, '\xff');
  const auto extra = [&](uint64_t bytes) { return n(1, 2) + n(16, 2) + n(bytes, 8) + n(bytes, 8); };
  const auto fields = [&](uint64_t flags) { return n(flags, 2) + n(0, 2) + times; };
  const std::string truth = n(crc, 4) + n(10, 4) + n(10, 4);
  write_file(file_, archive_of(fields(0) + n(crc, 4) + wide, extra(10), fields(0) + truth, ""));
  EXPECT_EQ(content_of("x.npy", 10), "some bytes");
  const std::string behind = "PK\7\10" + n(crc, 4) + n(10, 8) + n(10, 8);
  write_file(file_, archive_of(fields(8) + n(0, 4) + wide, extra(0), fields(8) + truth, behind));
  EXPECT_EQ(content_of("x.npy", 10), "some bytes");
  EXPECT_THAT(refusal_of(archive_of(fields(0) + n(0, 4) + wide, extra(0), fields(0) + truth, behind)),
              HasSubstr("checksum or size"));
  EXPECT_THAT(refusal_of(archive_of(fields(0) + n(crc, 4) + wide, extra(11), fields(0) + truth, "")),
              HasSubstr("checksum or size"));
  const std::string empty_extra = n(1, 2) + n(0, 2);
  EXPECT_THAT(refusal_of(archive_of(fields(0) + n(crc, 4) + wide, empty_extra + extra(10), fields(0) + truth, "")),
              HasSubstr("extra fields of a member are damaged"));
  EXPECT_THAT(refusal_of(archive_of(fields(0) + n(crc, 4) + wide, "", fields(0) + truth, "")), HasSubstr("is cut"));
}

}  // namespace
}  // namespace tutti::data
