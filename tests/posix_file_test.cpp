// Syncing folders: what cannot be synced is no error, what is not there is one.
#include "src/train/posix_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "tests/shard_files.h"

namespace tutti::train {
namespace {

using testing::HasSubstr;

TEST(SyncDirectory, AcceptsAFileSystemThatCannotSyncFolders) {
  constexpr const char* kFolder = "/proc";
  const int descriptor = ::open(kFolder, O_RDONLY | O_CLOEXEC);
  const bool refuses = descriptor >= 0 && ::fsync(descriptor) != 0 && errno == EINVAL;
  if (descriptor >= 0) ::close(descriptor);
  if (!refuses) GTEST_SKIP() << "this system can sync " << kFolder;
  EXPECT_NO_THROW(sync_directory(kFolder));
}

TEST(SyncDirectory, NamesAFolderThatIsNotThere) {
  const data::TemporaryFolder folder;
  sync_directory(folder.path());
  EXPECT_THAT(data::message_of<std::system_error>([&] { sync_directory(folder / "absent"); }),
              HasSubstr((folder / "absent").string()));
}

TEST(PosixFile, OpensNothingButRegularFiles) {
  const data::TemporaryFolder folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  const auto message = [](const std::filesystem::path& path) {
    const std::string read = data::message_of<std::system_error>([&] { PosixFile::open(path); });
    EXPECT_EQ(data::message_of<std::system_error>([&] { PosixFile::open_or_create(path); }), read);
    return read;
  };
  EXPECT_THAT(message(folder / "pipe"), HasSubstr("pipe: expected a regular file, found a pipe"));
  EXPECT_THAT(message(folder.path()), HasSubstr("expected a regular file, found a folder"));
  EXPECT_THAT(message("/dev/null"), HasSubstr("expected a regular file, found a device"));
  EXPECT_THAT(data::message_of<std::system_error>([&] { PosixFile::open(folder / "absent"); }),
              HasSubstr("No such file"));
}

}  // namespace
}  // namespace tutti::train
