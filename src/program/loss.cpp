// Losses by ATen's elementwise kernels, with sums in double.
#include "src/program/loss.h"

#include <ATen/ATen.h>
#include <ATen/Dispatch.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <cmath>
#include <stdexcept>

namespace tutti::program {
namespace {

/// Outputs [rows, classes, inner] seen as three numbers; element (row, class, place) lies at
/// (row × classes + class) × inner + place.
struct ClassLayout {
  int64_t rows, classes, inner;
  explicit ClassLayout(const at::Tensor& outputs)
      : rows(outputs.size(0)),
        classes(outputs.size(1)),
        inner(outputs.numel() / std::max<int64_t>(1, rows * classes)) {}
};

void check_cross_entropy(const LossSpec& spec, const at::Tensor& outputs, const at::Tensor& targets) {
  if (outputs.dim() < 2) {
    throw std::runtime_error(
        fmt::format("cross-entropy: outputs have {} dimensions, expected [rows, classes, ...]. End "
                    "the model with one output per class.",
                    outputs.dim()));
  }
  std::vector<int64_t> expected = outputs.sizes().vec();
  expected.erase(expected.begin() + 1);
  if (targets.sizes() != at::IntArrayRef(expected) || targets.scalar_type() != at::kLong) {
    throw std::runtime_error(
        fmt::format("cross-entropy: targets are {} of shape [{}], expected int64 of shape [{}]. "
                    "Check the data set's targets against the model's outputs.",
                    c10::toString(targets.scalar_type()), fmt::join(targets.sizes(), ", "), fmt::join(expected, ", ")));
  }
  const auto weights = static_cast<int64_t>(spec.class_weights.size());
  if (weights != 0 && weights != outputs.size(1)) {
    throw std::runtime_error(fmt::format("cross-entropy: {} class weights for {} classes. Give one for each class.",
                                         weights, outputs.size(1)));
  }
}

/// With q the target's distribution times the class weights, the loss of a place is -Σ q log p, and its gradient by
/// the logits is p Σ q - q. PyTorch divides by the sum of the weights of the labels that count, smoothed or not.
template <typename Number>
class CrossEntropy {
 public:
  CrossEntropy(const LossSpec& spec, const at::Tensor& outputs)
      : spec_(spec),
        layout_(outputs),
        smooth_share_(spec.label_smoothing / static_cast<double>(layout_.classes)),
        label_share_(1 - spec.label_smoothing) {
    for (int64_t c = 0; c < layout_.classes; ++c) weight_sum_ += weight(c);
  }

  /// `log_probabilities` becomes the gradient where `wants_gradient`.
  LossSums run(Number* log_probabilities, const int64_t* labels, bool wants_gradient) const {
    LossSums sums;
    for (int64_t row = 0; row < layout_.rows; ++row) {
      for (int64_t place = 0; place < layout_.inner; ++place) {
        const int64_t label = labels[row * layout_.inner + place];
        Number* classes = log_probabilities + row * layout_.classes * layout_.inner + place;
        if (label == spec_.ignore_index) {
          if (wants_gradient) clear(classes);
          continue;
        }
        check_label(label, row);
        sums.sum += loss(classes, label);
        sums.denominator += weight(label);
        if (wants_gradient) replace_by_gradient(classes, label);
      }
    }
    return sums;
  }

 private:
  double weight(int64_t c) const { return spec_.class_weights.empty() ? 1 : spec_.class_weights[c]; }

  void check_label(int64_t label, int64_t row) const {
    if (label >= 0 && label < layout_.classes) return;
    throw std::runtime_error(
        fmt::format("cross-entropy: label {} in row {} of the grain, expected 0 to {}. Correct the "
                    "data, or give the model more outputs.",
                    label, row, layout_.classes - 1));
  }

  void clear(Number* classes) const {
    for (int64_t c = 0; c < layout_.classes; ++c) classes[c * layout_.inner] = 0;
  }

  double loss(const Number* classes, int64_t label) const {
    double smooth = 0;
    if (smooth_share_ != 0) {
      for (int64_t c = 0; c < layout_.classes; ++c) smooth -= weight(c) * classes[c * layout_.inner];
    }
    return smooth_share_ * smooth - label_share_ * weight(label) * classes[label * layout_.inner];
  }

  void replace_by_gradient(Number* classes, int64_t label) const {
    const double total = label_share_ * weight(label) + smooth_share_ * weight_sum_;
    for (int64_t c = 0; c < layout_.classes; ++c) {
      Number& element = classes[c * layout_.inner];
      const double share = smooth_share_ * weight(c) + (c == label ? label_share_ * weight(label) : 0);
      element = static_cast<Number>(static_cast<double>(std::exp(element)) * total - share);
    }
  }

  const LossSpec& spec_;
  ClassLayout layout_;
  double smooth_share_, label_share_;
  double weight_sum_ = 0;
};

LossSums cross_entropy(const LossSpec& spec, const at::Tensor& outputs, const at::Tensor& targets,
                       at::Tensor* gradient) {
  check_cross_entropy(spec, outputs, targets);
  at::Tensor log_probabilities = at::log_softmax(outputs.contiguous(), 1);
  const at::Tensor labels = targets.contiguous();
  LossSums sums;
  AT_DISPATCH_FLOATING_TYPES(outputs.scalar_type(), "cross_entropy", [&] {
    sums =
        CrossEntropy<scalar_t>(spec, outputs)
            .run(log_probabilities.mutable_data_ptr<scalar_t>(), labels.const_data_ptr<int64_t>(), gradient != nullptr);
  });
  if (gradient != nullptr) *gradient = std::move(log_probabilities);
  return sums;
}

/// The loss of one element and its derivative by the output.
struct Term {
  double loss, derivative;
};

struct SquaredError {
  Term operator()(double output, double target, int64_t) const {
    const double difference = output - target;
    return {difference * difference, 2 * difference};
  }
};

struct AbsoluteError {
  Term operator()(double output, double target, int64_t) const {
    const double difference = output - target;
    return {std::abs(difference), static_cast<double>((difference > 0) - (difference < 0))};
  }
};

struct HuberError {
  double delta;
  Term operator()(double output, double target, int64_t) const {
    const double difference = output - target;
    const double size = std::abs(difference);
    if (size <= delta) return {0.5 * difference * difference, difference};
    return {delta * (size - 0.5 * delta), std::copysign(delta, difference)};
  }
};

/// -(w t log σ(x) + (1 - t) log(1 - σ(x))), in the form that does not overflow; w is repeated over the trailing
/// dimension.
struct LogisticError {
  const std::vector<double>& weights;
  Term operator()(double output, double target, int64_t element) const {
    const double weight = weights.empty() ? 1 : weights[element % static_cast<int64_t>(weights.size())];
    const double softplus_of_minus = std::log1p(std::exp(-std::abs(output))) + std::max(-output, 0.0);
    const double factor = 1 + (weight - 1) * target;
    const double decay = std::exp(-std::abs(output));
    const double sigmoid_of_minus = (output >= 0 ? decay : 1) / (1 + decay);
    return {(1 - target) * output + factor * softplus_of_minus, (1 - target) - factor * sigmoid_of_minus};
  }
};

template <typename Error>
LossSums elementwise(const Error& error, const at::Tensor& outputs, const at::Tensor& targets, at::Tensor* gradient) {
  if (outputs.sizes() != targets.sizes() || outputs.scalar_type() != targets.scalar_type()) {
    throw std::runtime_error(
        fmt::format("loss: targets are {} of shape [{}], expected {} of shape [{}] as the model's "
                    "outputs. Check the data set's targets.",
                    c10::toString(targets.scalar_type()), fmt::join(targets.sizes(), ", "),
                    c10::toString(outputs.scalar_type()), fmt::join(outputs.sizes(), ", ")));
  }
  const at::Tensor from = outputs.contiguous();
  const at::Tensor wanted = targets.contiguous();
  if (gradient != nullptr) *gradient = at::empty(outputs.sizes(), outputs.options());
  LossSums sums{0, static_cast<double>(outputs.numel())};
  AT_DISPATCH_FLOATING_TYPES(outputs.scalar_type(), "loss", [&] {
    const scalar_t* output = from.const_data_ptr<scalar_t>();
    const scalar_t* target = wanted.const_data_ptr<scalar_t>();
    scalar_t* derivative = gradient == nullptr ? nullptr : gradient->mutable_data_ptr<scalar_t>();
    for (int64_t i = 0; i < from.numel(); ++i) {
      const Term term = error(static_cast<double>(output[i]), static_cast<double>(target[i]), i);
      sums.sum += term.loss;
      if (derivative != nullptr) derivative[i] = static_cast<scalar_t>(term.derivative);
    }
  });
  return sums;
}

LossSums logistic(const LossSpec& spec, const at::Tensor& outputs, const at::Tensor& targets, at::Tensor* gradient) {
  const auto weights = static_cast<int64_t>(spec.positive_weights.size());
  if (weights > 1 && (outputs.dim() == 0 || outputs.size(-1) != weights)) {
    throw std::runtime_error(
        fmt::format("BCE with logits: {} positive weights for outputs of shape [{}]. Give one for "
                    "each output, or one for all.",
                    weights, fmt::join(outputs.sizes(), ", ")));
  }
  return elementwise(LogisticError{spec.positive_weights}, outputs, targets, gradient);
}

}  // namespace

LossSums evaluate_loss(const LossSpec& spec, const at::Tensor& outputs, const at::Tensor& targets,
                       at::Tensor* gradient) {
  const at::NoGradGuard no_grad;
  switch (spec.kind) {
    case LossSpec::Kind::kCrossEntropy:
      return cross_entropy(spec, outputs, targets, gradient);
    case LossSpec::Kind::kMse:
      return elementwise(SquaredError{}, outputs, targets, gradient);
    case LossSpec::Kind::kL1:
      return elementwise(AbsoluteError{}, outputs, targets, gradient);
    case LossSpec::Kind::kHuber:
      return elementwise(HuberError{spec.delta}, outputs, targets, gradient);
    case LossSpec::Kind::kBceWithLogits:
      return logistic(spec, outputs, targets, gradient);
  }
  throw std::logic_error("evaluate_loss: unknown kind of loss");
}

}  // namespace tutti::program
