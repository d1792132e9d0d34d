// Activations and dropout.
#include <fmt/format.h>

#include "src/graph/layer_families.h"

namespace tutti::graph {
namespace {

BuiltLayer elementwise(LayerBuild& layer, std::string_view target, std::vector<Argument> arguments,
                       PythonModule module) {
  arguments.insert(arguments.begin(), Argument::of(layer.input()));
  return {layer.call_like_input(target, std::move(arguments)), std::move(module)};
}

BuiltLayer build_relu(LayerBuild& layer) { return elementwise(layer, "aten::relu", {}, {"nn.ReLU", {}}); }
BuiltLayer build_silu(LayerBuild& layer) { return elementwise(layer, "aten::silu", {}, {"nn.SiLU", {}}); }
BuiltLayer build_sigmoid(LayerBuild& layer) { return elementwise(layer, "aten::sigmoid", {}, {"nn.Sigmoid", {}}); }
BuiltLayer build_tanh(LayerBuild& layer) { return elementwise(layer, "aten::tanh", {}, {"nn.Tanh", {}}); }

BuiltLayer build_leaky_relu(LayerBuild& layer) {
  const double slope = layer.options().number("negative_slope");
  PythonModule module{"nn.LeakyReLU", {}};
  module.keyword("negative_slope", python_text(slope), "0.01");
  return elementwise(layer, "aten::leaky_relu", {Argument::fixed(slope)}, module);
}

BuiltLayer build_gelu(LayerBuild& layer) {
  const std::string approximate = layer.options().string("approximate");
  PythonModule module{"nn.GELU", {}};
  module.keyword("approximate", "'" + approximate + "'", "'none'");
  return elementwise(layer, "aten::gelu", {Argument::fixed(approximate)}, module);
}

BuiltLayer build_softplus(LayerBuild& layer) {
  const double beta = layer.options().number("beta");
  const double threshold = layer.options().number("threshold");
  PythonModule module{"nn.Softplus", {}};
  module.keyword("beta", python_text(beta), "1").keyword("threshold", python_text(threshold), "20");
  return elementwise(layer, "aten::softplus", {Argument::fixed(beta), Argument::fixed(threshold)}, module);
}

BuiltLayer build_elu(LayerBuild& layer) {
  const double alpha = layer.options().number("alpha");
  PythonModule module{"nn.ELU", {}};
  module.keyword("alpha", python_text(alpha), "1");
  return elementwise(layer, "aten::elu", {Argument::fixed(alpha), Argument::fixed(1.0), Argument::fixed(1.0)}, module);
}

BuiltLayer build_dropout(LayerBuild& layer) {
  const double p = layer.options().number("p");
  return elementwise(layer, "aten::dropout", {Argument::fixed(p), Argument::fixed(true)},
                     {"nn.Dropout", {python_text(p)}});
}

LayerEntry activation(LayerDeclaration declaration, BuiltLayer (*build)(LayerBuild&)) {
  return {std::move(declaration), build, LayerEntry::Kind::kActivation};
}

}  // namespace

std::vector<LayerEntry> activation_layers() {
  return {
      activation({"relu", "", {}, "max(x, 0)"}, build_relu),
      activation({"leaky_relu",
                  "negative_slope",
                  {{"negative_slope", "float", "0.01", "factor of negative values"}},
                  "x where positive, negative_slope x elsewhere"},
                 build_leaky_relu),
      activation({"gelu",
                  "approximate",
                  {{"approximate", "none or tanh", "none", "`tanh`: the approximation by tanh"}},
                  "x times the normal distribution function of x"},
                 build_gelu),
      activation({"silu", "", {}, "x sigmoid(x)"}, build_silu),
      activation({"sigmoid", "", {}, "1 / (1 + exp(-x))"}, build_sigmoid),
      activation({"tanh", "", {}, "hyperbolic tangent"}, build_tanh),
      activation({"softplus",
                  "",
                  {{"beta", "float > 0", "1", "sharpness"},
                   {"threshold", "float", "20", "the identity is used where beta x is above it"}},
                  "log(1 + exp(beta x)) / beta"},
                 build_softplus),
      activation({"elu",
                  "alpha",
                  {{"alpha", "float", "1", "factor of the negative part"}},
                  "x where positive, alpha (exp(x) - 1) elsewhere"},
                 build_elu),
      {{"dropout",
        "p",
        {{"p", "float in [0, 1)", "0.5", "probability that an element is set to zero"}},
        "sets elements to zero at random and divides the others by 1 - p; in training only"},
       build_dropout},
  };
}

}  // namespace tutti::graph
