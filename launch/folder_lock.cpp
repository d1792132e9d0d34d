#include "launch/folder_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <span>
#include <sstream>
#include <system_error>
#include <thread>

#include "comm/roster.h"
#include "launch/command.h"
#include "launch/text_file.h"
#include "src/train/posix_file.h"

namespace tutti::launch {

namespace fs = std::filesystem;

namespace {

std::string random_token() {
  std::random_device device;
  return fmt::format("{:08x}{:08x}", device(), device());
}

/// When a living process of this host began, in clock ticks; none for a process that is gone or only waits to be
/// collected. Together with its id it names a process for good, since ids are used again.
std::optional<int64_t> start_ticks(int64_t process) {
  std::ifstream file(fmt::format("/proc/{}/stat", process));
  std::string line;
  std::getline(file, line);
  const size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(line.substr(name_end + 1));
  std::string state, field;
  fields >> state;
  constexpr int kFieldsToStart = 19;
  for (int i = 0; i < kFieldsToStart; ++i) fields >> field;
  if (state == "Z" || state == "X" || !fields) return std::nullopt;
  return std::stoll(field);
}

nlohmann::json holder_in(const std::string& text) {
  nlohmann::json holder = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  return holder.is_object() ? holder : nlohmann::json::object();
}

std::optional<time_t> modified_at(const fs::path& file) {
  struct stat status = {};
  if (stat(file.c_str(), &status) != 0) return std::nullopt;
  return status.st_mtime;
}

/// The time by the clock that stamps the folder's files, which may be a file server's.
time_t now_in(const fs::path& folder, const std::string& token) {
  const fs::path probe = folder / ("lock.now." + token);
  train::PosixFile::create(probe).close();
  const auto now = modified_at(probe);
  std::error_code ignored;
  fs::remove(probe, ignored);
  return now.value_or(time(nullptr));
}

/// True when the holder of the lock in `file` is certainly or very probably gone.
bool is_stale(const fs::path& file, const std::string& text, const std::string& token) {
  const nlohmann::json holder = holder_in(text);
  if (holder.value("host", "") == comm::this_process().host) {
    const auto ticks = start_ticks(holder.value("process", int64_t{0}));
    return !ticks || *ticks != holder.value("start_ticks", int64_t{0});
  }
  const auto touched = modified_at(file);
  return !touched || now_in(file.parent_path(), token) - *touched > FolderLock::kStaleAfter.count();
}

std::string holder_text(const std::string& text) {
  const nlohmann::json holder = holder_in(text);
  if (!holder.contains("process")) return "another run";
  return fmt::format("process {} on host {}", holder.value("process", 0), holder.value("host", "?"));
}

/// What is said of a lock that stays, and that this run may not take.
std::string refusal(const fs::path& file, const TextOrReason& found) {
  const std::string folder = file.parent_path().string();
  if (!found.text) {
    return fmt::format(
        "run.out: expected a folder whose lock can be read, found {}: {}; choose another folder with "
        "--out, or, if no run uses {}, remove that file",
        file.string(), found.reason, folder);
  }
  return fmt::format(
      "run.out: expected a folder that no other run uses, found {} in use by {}; wait for that run, or "
      "choose another folder with --out. If that run is gone for certain, remove {}",
      folder, holder_text(*found.text), file.string());
}

}  // namespace

FolderLock::FolderLock(const fs::path& folder) : file_(folder / "lock"), token_(random_token()) {
  const nlohmann::json own = {{"host", comm::this_process().host},
                              {"process", getpid()},
                              {"start_ticks", start_ticks(getpid()).value_or(0)},
                              {"token", token_}};
  text_ = own.dump() + "\n";
  const auto patience = std::chrono::steady_clock::now() + kPatience;
  while (!try_to_take()) {
    const TextOrReason found = read_text_or_reason(file_);
    if (found.text && is_stale(file_, *found.text, token_) && take_over(*found.text)) continue;
    if (std::chrono::steady_clock::now() >= patience) throw UsageError(refusal(file_, found));
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

FolderLock::~FolderLock() {
  std::error_code ignored;
  if (is_own()) fs::remove(file_, ignored);
}

bool FolderLock::try_to_take() const {
  auto file = train::PosixFile::create_new(file_);
  if (!file) return false;
  file->write(std::as_bytes(std::span(text_)));
  file->close();
  return true;
}

/// Between judging a lock and moving it away another run may have taken it over: what was moved is judged again, and
/// put back when it is not what it was taken for.
bool FolderLock::take_over(const std::string& judged) const {
  const fs::path aside = file_.string() + ".stale." + token_;
  std::error_code error;
  fs::rename(file_, aside, error);
  if (error) return false;
  const bool taken = read_text(aside) == judged && is_stale(aside, judged, token_);
  if (taken) {
    spdlog::warn("{}: the lock of a run that is gone is taken over", file_.parent_path().string());
  } else {
    fs::create_hard_link(aside, file_,
                         error);  // fails where a third run was faster; the second then finds out by touch()
  }
  fs::remove(aside, error);
  return taken;
}

bool FolderLock::is_own() const { return read_text(file_) == text_; }

void FolderLock::touch() {
  const TextOrReason found = read_text_or_reason(file_);
  if (found.text != text_) {
    throw std::runtime_error(
        fmt::format("output folder {}: expected the lock of this run, found {}; the folder was removed, or another run "
                    "has taken it over, so this run stops. Go on with --resume when no other run uses the folder",
                    file_.parent_path().string(),
                    found.text ? "that of " + holder_text(*found.text) : "none to read: " + found.reason));
  }
  utimensat(AT_FDCWD, file_.c_str(), nullptr, 0);
}

}  // namespace tutti::launch
