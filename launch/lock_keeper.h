// Keeps the lock of an output folder fresh, beside whatever the run does.
#ifndef TUTTI_LAUNCH_LOCK_KEEPER_H
#define TUTTI_LAUNCH_LOCK_KEEPER_H

#include <chrono>
#include <condition_variable>
#include <exception>
#include <filesystem>
#include <mutex>
#include <thread>

#include "launch/folder_lock.h"

namespace tutti::launch {

/// Owns a FolderLock, and a thread that touches it: a file system that hangs holds up that thread alone.
class LockKeeper {
 public:
  /// Takes the lock as FolderLock does, and touches it once per `period`.
  LockKeeper(const std::filesystem::path& folder, std::chrono::milliseconds period);
  ~LockKeeper();
  LockKeeper(const LockKeeper&) = delete;
  LockKeeper& operator=(const LockKeeper&) = delete;

  /// Throws what FolderLock::touch() threw, once it has. Never waits for a file.
  void check() const;

 private:
  void keep();

  FolderLock lock_;
  const std::chrono::milliseconds period_;
  mutable std::mutex mutex_;
  std::condition_variable end_news_;
  bool ended_ = false;       // guarded by mutex_
  std::exception_ptr lost_;  // guarded by mutex_
  std::thread thread_;       // last: it uses all the others
};

}  // namespace tutti::launch

#endif
