// The faults of a job file, collected so that all are told at once.
#ifndef TUTTI_LAUNCH_JOB_FAULTS_H
#define TUTTI_LAUNCH_JOB_FAULTS_H

#include <string>
#include <string_view>
#include <vector>

#include "launch/job_node.h"

namespace tutti::launch {

/// Collects faults as "FILE:LINE: PATH: MESSAGE" and throws them together. Equal ones count once: the variants of a
/// sweep repeat what is wrong with their block.
class Faults {
 public:
  static constexpr size_t kLimit = 20;

  /// `settings` are the texts of the `--set` options that places refer to.
  Faults(std::string file, std::vector<std::string> settings);

  void add(const Place& place, std::string_view path, std::string_view message);

  /// How often add() was called, equal faults included: tells whether a step went well.
  size_t added() const { return added_; }
  /// True when no more faults are kept; checks may end early.
  bool full() const { return faults_.size() >= kLimit; }

  /// Throws JobError with all faults, if there are any.
  void throw_if_any() const;

  /// What add() collects; also the form of warnings.
  std::string text_of(const Place& place, std::string_view path, std::string_view message) const;

  /// "FILE:LINE", or "--set KEY=VALUE".
  std::string text_of(const Place& place) const;

 private:
  std::string file_;
  std::vector<std::string> settings_;
  std::vector<std::string> faults_;
  size_t added_ = 0;
};

/// "expected one of a, b, c; did you mean `a`?", with the nearest to `word`; the nearest alone where there are many.
std::string expected_one_of(std::string_view word, const std::vector<std::string>& known);

}  // namespace tutti::launch

#endif
