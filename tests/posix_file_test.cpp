// Syncing folders: what cannot be synced is no error, what is not there is one.
#include "src/train/posix_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
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

}  // namespace
}  // namespace tutti::train
