// The check that all ranks mean the same job: version, job, models and shapes are compared before the first step.
#ifndef TUTTI_COMM_AGREEMENT_H
#define TUTTI_COMM_AGREEMENT_H

#include <span>
#include <stdexcept>
#include <string>

#include "comm/communicator.h"
#include "comm/deadline.h"

namespace tutti::comm {

/// Something all ranks must have alike.
struct LabelledValue {
  std::string label;  ///< as a message can name it: "program version", "model list"
  std::string value;
};

/// Ranks that differ from rank 0.
class Disagreement : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Compares the values of all ranks with those of rank 0. Collective; where one rank differs, all throw the same
/// Disagreement, which names the rank, the label, what was expected (rank 0's value) and what was found.
void agree(Communicator& communicator, std::span<const LabelledValue> values, const Deadline& deadline);

}  // namespace tutti::comm

#endif
