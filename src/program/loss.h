// Losses: sums over the rows of a grain, with their denominators and gradients.
#ifndef TUTTI_SRC_PROGRAM_LOSS_H
#define TUTTI_SRC_PROGRAM_LOSS_H

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace tutti::program {

/// What is minimised. PyTorch's definitions with reduction "mean"; the mean is taken over the whole global batch.
struct LossSpec {
  enum class Kind { kCrossEntropy, kMse, kL1, kHuber, kBceWithLogits };
  Kind kind = Kind::kCrossEntropy;
  double label_smoothing = 0;            ///< cross-entropy
  std::vector<double> class_weights;     ///< cross-entropy; empty = 1 each
  int64_t ignore_index = -100;           ///< cross-entropy
  double delta = 1;                      ///< Huber
  std::vector<double> positive_weights;  ///< BCE with logits; empty = 1 each
  bool integer_targets() const { return kind == Kind::kCrossEntropy; }
};

/// Sums over rows. loss = sum / denominator once both are summed over the whole global batch.
struct LossSums {
  double sum = 0;
  double denominator = 0;  ///< number of terms, or the sum of the class weights of the labels that count
};

/// The loss sum of one grain, and the gradient of that sum by the outputs (not divided by anything) into `gradient`,
/// unless it is null. Cross-entropy: outputs [rows, classes, ...], targets int64 [rows, ...]. The others: targets of
/// the outputs' shape and type.
LossSums evaluate_loss(const LossSpec& spec, const at::Tensor& outputs, const at::Tensor& targets,
                       at::Tensor* gradient);

}  // namespace tutti::program

#endif
