// The zoo: whole networks by name. Their state-dict names are torchvision's where torchvision has the network.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "src/graph/layer_families.h"
#include "src/graph/window.h"

namespace tutti::graph {
namespace {

using Json = nlohmann::json;

/// Adds named layers one after the other: the state dict of an nn.Module with these members.
class Network {
 public:
  explicit Network(LayerBuild& layer) : scope_(layer.scope()), output_(layer.input()) {
    scope_.within += (scope_.within.empty() ? "" : ".") + layer.name();
  }

  Network& add(const std::string& name, const Json& layer) {
    output_ = build_layer(scope_.member(name), layer, output_).output;
    return *this;
  }
  /// A layer without parameters, which the module applies as a function.
  Network& apply(const Json& layer) { return add("forward", layer); }

  /// output + other, as a residual block ends.
  Network& add_value(ValueId other) {
    output_ = scope_.graph->add_sum(output_, other, fmt::format("layers.{} {} add", scope_.path, scope_.within));
    return *this;
  }
  /// A network of the same scope that begins at another value.
  Network from(ValueId value) const {
    Network other = *this;
    other.output_ = value;
    return other;
  }

  ValueId output() const { return output_; }
  const ListScope& scope() const { return scope_; }

 private:
  ListScope scope_;
  ValueId output_;
};

Json convolution(int64_t out, int64_t kernel, int64_t stride, int64_t padding, bool bias) {
  return {{"conv2d", {{"out", out}, {"kernel", kernel}, {"stride", stride}, {"padding", padding}, {"bias", bias}}}};
}

/// torchvision's scheme for convolutions: normal with variance 2 / (out * kernel) (He et al. 2015, fan out), bias zero.
void initialise_convolutions(GraphBuilder& graph, int64_t first_parameter) {
  for (Parameter& parameter : graph.parameters_from(first_parameter)) {
    const std::vector<int64_t>& shape = graph.value(parameter.value).shape;
    if (shape.size() != 4) continue;
    const double fan_out = static_cast<double>(shape[0] * shape[2] * shape[3]);
    parameter.initialisation = {Initialisation::Kind::kNormal, 0, std::sqrt(2 / fan_out)};
  }
}

BuiltLayer build_mlp(LayerBuild& layer) {
  const LayerOptions& options = layer.options();
  const std::string activation = options.string("activation");
  const LayerEntry* entry = find_layer(activation);
  if (entry == nullptr || entry->kind != LayerEntry::Kind::kActivation) {
    std::vector<std::string> known;
    for (const LayerEntry& other : layer_entries()) {
      if (other.kind == LayerEntry::Kind::kActivation) known.push_back(other.declaration.name);
    }
    layer.fail(fmt::format("the key `activation`: expected one of {}, found `{}`", fmt::join(known, ", "), activation));
  }
  Json layers = {"flatten"};
  for (const Json& width : options.json("widths")) {
    layers.push_back({{"linear", width}});
    layers.push_back(activation);
  }
  layers.push_back({{"linear", options.integer("classes")}});
  return build_sequence(Network(layer).scope(), layers, layer.input());
}

BuiltLayer build_lenet5(LayerBuild& layer) {
  const int64_t classes = layer.options().integer("classes");
  const int64_t padding = layer.options().integer("padding");
  const std::vector<int64_t> shape = image_shape(layer, 2);
  Network network(layer);
  network.add("conv1", convolution(6, 5, 1, padding, true)).apply("relu").apply({{"max_pool2d", 2}});
  network.add("conv2", convolution(16, 5, 1, 0, true)).apply("relu").apply({{"max_pool2d", 2}}).apply("flatten");
  const int64_t features = sample_shape(layer.graph().value(network.output()))[0];
  network.add("fc1", {{"linear", 120}}).apply("relu").add("fc2", {{"linear", 84}}).apply("relu");
  network.add("fc3", {{"linear", classes}});
  layer.scope().python_classes->insert("LeNet5");
  return {network.output(),
          {"LeNet5",
           {fmt::format("channels={}", shape[0]), fmt::format("features={}", features),
            fmt::format("padding={}", padding), fmt::format("classes={}", classes)}}};
}

/// conv, norm, relu, conv, norm, plus the input (through a 1x1 convolution and norm where the shape changes), relu.
void add_basic_block(Network& network, const std::string& name, int64_t width, int64_t stride, bool project) {
  const ValueId input = network.output();
  network.add(name + ".conv1", convolution(width, 3, stride, 1, false)).add(name + ".bn1", "batch_norm2d");
  network.apply("relu");
  network.add(name + ".conv2", convolution(width, 3, 1, 1, false)).add(name + ".bn2", "batch_norm2d");
  ValueId shortcut = input;
  if (project) {
    shortcut = network.from(input)
                   .add(name + ".downsample.0", convolution(width, 1, stride, 0, false))
                   .add(name + ".downsample.1", "batch_norm2d")
                   .output();
  }
  network.add_value(shortcut).apply("relu");
}

/// The networks for small images of He et al. (Deep Residual Learning, 2015, section 4.2): three stages of
/// `blocks` blocks, depth 6 blocks + 2.
template <int blocks>
BuiltLayer build_resnet(LayerBuild& layer) {
  const int64_t classes = layer.options().integer("classes");
  const int64_t width = layer.options().integer("width");
  const std::vector<int64_t> shape = image_shape(layer, 2);
  const int64_t first_parameter = layer.graph().parameter_count();
  Network network(layer);
  network.add("conv1", convolution(width, 3, 1, 1, false)).add("bn1", "batch_norm2d").apply("relu");
  for (int64_t stage = 0; stage < 3; ++stage) {
    for (int64_t block = 0; block < blocks; ++block) {
      const bool first = stage > 0 && block == 0;
      add_basic_block(network, fmt::format("layer{}.{}", stage + 1, block), width << stage, first ? 2 : 1, first);
    }
  }
  network.apply({{"adaptive_avg_pool2d", 1}}).apply("flatten").add("fc", {{"linear", classes}});
  initialise_convolutions(layer.graph(), first_parameter);
  layer.scope().python_classes->insert("ResNet");
  return {network.output(),
          {"ResNet",
           {fmt::format("channels={}", shape[0]), fmt::format("blocks={}", blocks), fmt::format("width={}", width),
            fmt::format("classes={}", classes)}}};
}

/// Configuration A of Simonyan and Zisserman (Very Deep Convolutional Networks, 2015); 0 is a pooling.
constexpr int64_t kVgg11[] = {64, 0, 128, 0, 256, 256, 0, 512, 512, 0, 512, 512, 0};

void add_vgg_features(Network& network, bool batch_norm) {
  int64_t index = 0;
  const auto add = [&](const Json& features_layer) {
    network.add(fmt::format("features.{}", index++), features_layer);
  };
  for (int64_t width : kVgg11) {
    if (width == 0) {
      add({{"max_pool2d", 2}});
      continue;
    }
    add(convolution(width, 3, 1, 1, true));
    if (batch_norm) add("batch_norm2d");
    add("relu");
  }
}

void initialise_vgg(GraphBuilder& graph, int64_t first_parameter) {
  initialise_convolutions(graph, first_parameter);
  for (Parameter& parameter : graph.parameters_from(first_parameter)) {
    const bool uniform = parameter.initialisation.kind == Initialisation::Kind::kUniform;
    if (!uniform) continue;  // convolutions are set, norms keep 1 and 0
    const bool matrix = graph.value(parameter.value).shape.size() == 2;
    parameter.initialisation = matrix ? Initialisation{Initialisation::Kind::kNormal, 0, 0.01} : Initialisation{};
  }
}

BuiltLayer build_vgg11(LayerBuild& layer) {
  const LayerOptions& options = layer.options();
  const int64_t classes = options.integer("classes");
  const int64_t hidden = options.integer("hidden");
  const bool batch_norm = options.boolean("batch_norm");
  const double dropout = options.number("dropout");
  const std::vector<int64_t> shape = image_shape(layer, 2);
  const int64_t first_parameter = layer.graph().parameter_count();
  Network network(layer);
  add_vgg_features(network, batch_norm);
  network.add("avgpool", {{"adaptive_avg_pool2d", 7}}).apply("flatten");
  network.add("classifier.0", {{"linear", hidden}}).add("classifier.1", "relu");
  network.add("classifier.2", {{"dropout", dropout}}).add("classifier.3", {{"linear", hidden}});
  network.add("classifier.4", "relu").add("classifier.5", {{"dropout", dropout}});
  network.add("classifier.6", {{"linear", classes}});
  initialise_vgg(layer.graph(), first_parameter);
  layer.scope().python_classes->insert("VGG11");
  return {network.output(),
          {"VGG11",
           {fmt::format("channels={}", shape[0]), fmt::format("classes={}", classes), fmt::format("hidden={}", hidden),
            "batch_norm=" + python_text(batch_norm), "dropout=" + python_text(dropout)}}};
}

const LayerKey kClasses = {"classes", "int >= 1", "", "number of outputs"};

LayerDeclaration resnet(const std::string& name) {
  return {name,
          "classes",
          {kClasses, {"width", "int >= 1", "16", "channels of the first stage; each next stage has twice as many"}},
          "the residual network for small images, three stages of basic blocks, 1x1 convolutions where shapes change; "
          "torchvision's names and first values"};
}

}  // namespace

std::vector<LayerEntry> zoo() {
  constexpr LayerEntry::Kind kZoo = LayerEntry::Kind::kZoo;
  return {
      {{"mlp",
        "",
        {{"widths", "list of ints, >= 1", "", "features of the hidden layers"},
         kClasses,
         {"activation", "name of an activation", "relu", "after each hidden layer"}},
        "flatten, then linear layers with activations between"},
       build_mlp,
       kZoo},
      {{"lenet5",
        "classes",
        {kClasses, {"padding", "int >= 0", "2", "of the first convolution: 2 for 28 x 28 images, 0 for 32 x 32"}},
        "LeNet-5 with relu and max pooling: conv1 (6), conv2 (16), fc1 (120), fc2 (84), fc3"},
       build_lenet5,
       kZoo},
      {resnet("resnet8"), build_resnet<1>, kZoo},
      {resnet("resnet20"), build_resnet<3>, kZoo},
      {resnet("resnet56"), build_resnet<9>, kZoo},
      {{"vgg11",
        "classes",
        {kClasses,
         {"hidden", "int >= 1", "4096", "features of the two hidden linear layers"},
         {"batch_norm", "bool", "false", "normalise after each convolution"},
         {"dropout", "float in [0, 1)", "0.5", "after the hidden linear layers"}},
        "VGG with 11 layers; torchvision's names, layers and first values; images of 32 x 32 or more"},
       build_vgg11,
       kZoo},
  };
}

}  // namespace tutti::graph
