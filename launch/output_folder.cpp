#include "launch/output_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <system_error>
#include <thread>

#include "launch/command.h"
#include "launch/saved_job.h"

namespace tutti::launch {

namespace fs = std::filesystem;

namespace {

[[noreturn]] void fail(const char* doing, const fs::path& path) {
  throw std::system_error(errno, std::generic_category(), std::string(doing) + " " + path.string());
}

std::string host_name() {
  char name[256] = {};
  gethostname(name, sizeof(name) - 1);
  return name;
}

nlohmann::json read_json(const fs::path& file) {
  std::ifstream stream(file);
  return nlohmann::json::parse(stream, nullptr, /*allow_exceptions=*/false);
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

/// True when the lock's holder is certainly or very probably gone.
bool is_stale(const fs::path& lock, const nlohmann::json& holder) {
  if (holder.is_object() && holder.value("host", "") == host_name()) {
    const auto ticks = start_ticks(holder.value("process", int64_t{0}));
    return !ticks || *ticks != holder.value("start_ticks", int64_t{0});
  }
  struct stat status = {};
  if (stat(lock.c_str(), &status) != 0) return true;
  return time(nullptr) - status.st_mtime > OutputFolder::kStaleAfter.count();
}

/// The keys, as paths, in which two descriptions differ.
std::vector<std::string> differing_keys(const nlohmann::json& before, const nlohmann::json& now) {
  std::vector<std::string> keys;
  for (const auto& change : nlohmann::json::diff(before, now)) {
    std::string path = change.at("path").get<std::string>().substr(1);
    std::replace(path.begin(), path.end(), '/', '.');
    keys.push_back(path);
  }
  return keys;
}

}  // namespace

void replace_file(const fs::path& file, const std::string& text) {
  const fs::path aside = file.string() + ".writing";
  const int descriptor = open(aside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor < 0) fail("cannot create", aside);
  size_t written = 0;
  while (written < text.size()) {
    const ssize_t count = write(descriptor, text.data() + written, text.size() - written);
    if (count < 0 && errno != EINTR) break;
    written += count > 0 ? static_cast<size_t>(count) : 0;
  }
  const bool good = written == text.size() && fsync(descriptor) == 0;
  close(descriptor);
  if (!good) fail("cannot write", aside);
  fs::rename(aside, file);
}

OutputFolder::OutputFolder(const Job& job) : path_(job.run.out), lock_(path_ / "lock") {
  std::error_code error;
  fs::create_directories(path_ / "models", error);
  if (error) {
    throw UsageError(fmt::format("run.out: expected a folder that can be written, found {}: {}; choose another with "
                                 "--out", path_.string(), error.message()));
  }
  take_lock();
  try {
    compare_or_record(job);
  } catch (...) {
    fs::remove(lock_, error);
    throw;
  }
}

OutputFolder::~OutputFolder() {
  std::error_code ignored;
  fs::remove(lock_, ignored);
}

void OutputFolder::take_lock() {
  const nlohmann::json own = {
      {"host", host_name()}, {"process", getpid()}, {"start_ticks", start_ticks(getpid()).value_or(0)}};
  const auto patience = std::chrono::steady_clock::now() + kPatience;
  while (true) {
    const int descriptor = open(lock_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor >= 0) {
      const std::string text = own.dump() + "\n";
      const bool good = write(descriptor, text.data(), text.size()) == static_cast<ssize_t>(text.size());
      close(descriptor);
      if (!good) fail("cannot write", lock_);
      last_touch_ = std::chrono::steady_clock::now();
      return;
    }
    if (errno != EEXIST) fail("cannot create", lock_);
    const nlohmann::json holder = read_json(lock_);
    if (!is_stale(lock_, holder)) {
      if (std::chrono::steady_clock::now() < patience) {
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        continue;
      }
      throw UsageError(fmt::format(
          "run.out: expected a folder that no other run uses, found {} in use by {}; wait for that run, or choose "
          "another folder with --out. If that run is gone for certain, remove {}",
          path_.string(),
          holder.is_object() ? fmt::format("process {} on host {}", holder.value("process", 0), holder.value("host", "?"))
                             : std::string("another run"),
          lock_.string()));
    }
    spdlog::warn("{}: the lock of a run that is gone is taken over", path_.string());
    fs::remove(lock_);
  }
}

void OutputFolder::compare_or_record(const Job& job) {
  const fs::path record = path_ / "job.json";
  nlohmann::json before = read_json(record);
  if (before.is_object() && !job.run.resume) {
    throw UsageError(fmt::format("run.out: expected a folder without output, found an earlier run's in {}; go on with "
                                 "it by --resume, or choose another folder with --out", path_.string()));
  }
  nlohmann::json now = {{"format", 1}, {"models", nlohmann::json::object()}};
  if (before.is_object()) now["models"] = before.value("models", nlohmann::json::object());
  for (const train::ModelSpec& model : job.models) {
    const auto known = now["models"].find(model.name);
    if (known != now["models"].end() && *known != model.source) {
      throw UsageError(fmt::format("model {}: --resume expects the settings it began with, found other values of {}; "
                                   "restore them, or give the changed model another name",
                                   model.name, fmt::join(differing_keys(*known, model.source), ", ")));
    }
    now["models"][model.name] = model.source;
  }
  now.update(load_options_of(job));
  save_job(job, path_);
  replace_file(record, now.dump(1) + "\n");
}

void OutputFolder::heartbeat() {
  const auto now = std::chrono::steady_clock::now();
  if (now - last_touch_ < kHeartbeat) return;
  last_touch_ = now;
  utimensat(AT_FDCWD, lock_.c_str(), nullptr, 0);
}

}  // namespace tutti::launch
