// The lock of an output folder: only one run at a time works in it.
#ifndef TUTTI_LAUNCH_FOLDER_LOCK_H
#define TUTTI_LAUNCH_FOLDER_LOCK_H

#include <chrono>
#include <filesystem>
#include <string>

namespace tutti::launch {

/// A file FOLDER/lock, made with O_EXCL, which names host, process and a random token, and is touched now and then. A
/// lock whose process is gone, or of another host and not touched for kStaleAfter, is taken over.
class FolderLock {
 public:
  static constexpr std::chrono::seconds kStaleAfter{60};
  static constexpr std::chrono::seconds kPatience{2};  ///< for a run that is just ending

  /// Takes the lock of a folder that exists. Throws UsageError, which names the holder, when another run has it, or the
  /// system's reason when its lock cannot be read, and std::system_error when the folder cannot be written.
  explicit FolderLock(const std::filesystem::path& folder);
  /// Removes the lock, if it still is this one.
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

  /// Touches the lock. Throws std::runtime_error when it is gone or another's: what the holder writes now may be lost.
  void touch();

 private:
  bool try_to_take() const;
  bool take_over(const std::string& judged) const;
  bool is_own() const;

  std::filesystem::path file_;
  std::string token_;
  std::string text_;  // the lock's content
};

}  // namespace tutti::launch

#endif
