// A sweep: the variants of a model block, as a grid or as random draws.
#ifndef TUTTI_LAUNCH_SWEEP_H
#define TUTTI_LAUNCH_SWEEP_H

#include <cstdint>
#include <string>
#include <vector>

#include "launch/job_faults.h"
#include "launch/job_node.h"
#include "launch/substitution.h"

namespace tutti::launch {

/// What one variable of a sweep may be.
struct SweepVariable {
  enum class Kind { kChoice, kUniform, kLogUniform, kInteger };
  std::string name;
  Kind kind = Kind::kChoice;
  std::vector<Node> choices;  ///< of kChoice
  double low = 0, high = 0;   ///< of the others; kInteger draws both ends too
  Place place;

  /// Draw number `draw` with this seed: Philox keyed by (seed, name), counter = draw. Depends on nothing else. Numbers
  /// are rounded to 6 significant digits, so that a name tells them exactly.
  Node draw(uint64_t seed, int64_t draw) const;
};

class Sweep {
 public:
  static constexpr int64_t kMaxVariants = 10'000;

  /// Reads a model block's `sweep` and `sample`; either may be null. Wrong ones become faults at `path`, and leave no
  /// variants.
  Sweep(const Node* sweep, const Node* sample, const std::string& path, Faults& faults);

  /// How many variants there are: 1 without a sweep.
  int64_t size() const { return size_; }

  /// The values of all variables, and `index`, for variant number `index`. In a grid the last variable varies fastest.
  Variables variant(int64_t index) const;

  /// The variables in the order of the file.
  const std::vector<SweepVariable>& variables() const { return variables_; }

 private:
  void read_variables(const Node& sweep, const std::string& path, Faults& faults);
  void read_sample(const Node& sample, const std::string& path, Faults& faults);
  int64_t grid_size(const Place& place, const std::string& path, Faults& faults) const;

  std::vector<SweepVariable> variables_;
  bool sampled_ = false;
  uint64_t seed_ = 0;
  int64_t size_ = 0;
};

}  // namespace tutti::launch

#endif
