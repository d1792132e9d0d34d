// One layer being built: what every layer family works with.
#ifndef TUTTI_SRC_GRAPH_LAYER_BUILD_H
#define TUTTI_SRC_GRAPH_LAYER_BUILD_H

#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "src/graph/graph_builder.h"
#include "src/graph/layer_list.h"
#include "src/graph/layer_options.h"

namespace tutti::graph {

/// A call of a Python class: the layer as model.py writes it.
struct PythonModule {
  std::string type;                    ///< "nn.Conv2d", "Residual"
  std::vector<std::string> arguments;  ///< "8", "padding=2", "nn.ReLU()"

  /// Adds `name=value` unless `value` is `default_value`, Python's own default.
  PythonModule& keyword(const std::string& name, const std::string& value, const std::string& default_value);
  std::string text() const;
};

std::string python_text(bool value);
std::string python_text(double value);
/// One number where all are equal, else a tuple.
std::string python_text(const std::vector<int64_t>& values);

struct BuiltLayer {
  ValueId output = kNoValue;
  PythonModule module;
};

/// Where a list of layers stands, and the build that it belongs to.
struct ListScope {
  GraphBuilder* graph;
  std::set<std::string>* python_classes;  ///< classes that model.py must define, beside torch's
  std::string path;                       ///< in the job file's list: "2.residual"; "" at the top
  std::string within;                     ///< inside a zoo entry, which the job file does not show: "lenet5.conv1"
  std::string prefix;                     ///< of state-dict names: "2.body."; "" at the top

  /// The scope of a member: `step` leads to it in the job file, `module` in the state dict.
  ListScope member(const std::string& step, const std::string& module) const;
  ListScope member(const std::string& name) const { return member(name, name); }
};

/// The layer under construction: its settings, its input, and the graph that it adds to.
class LayerBuild {
 public:
  LayerBuild(ListScope scope, const LayerDeclaration& declaration, LayerOptions options, ValueId input);

  const std::string& name() const { return declaration_->name; }
  const LayerOptions& options() const { return options_; }
  const ListScope& scope() const { return scope_; }
  GraphBuilder& graph() { return *scope_.graph; }
  ValueId input() const { return input_; }
  /// The scope of the list behind a key, which is also its name in the state dict.
  ListScope member(const std::string& key) const;

  /// The input's shape per sample, whatever its type.
  std::vector<int64_t> any_shape() const;
  /// The input's shape per sample. Throws LayerError unless it has `rank` dimensions ("[channels, height, width]" in
  /// words) of floating-point numbers. `advice` ends the message.
  std::vector<int64_t> shape(int64_t rank, const std::string& words, const std::string& advice = "") const;
  /// Throws LayerError unless the input's numbers are floating point.
  void expect_float() const;

  ValueId parameter(const std::string& name, std::vector<int64_t> shape, const Initialisation& initialisation);
  ValueId buffer(const std::string& name, at::Tensor initial);
  /// Appends a node whose result has this shape per sample.
  ValueId call(std::string_view operator_name, std::vector<Argument> arguments, const std::vector<int64_t>& shape,
               at::ScalarType type = at::kFloat);
  /// Appends a node whose result has the input's shape.
  ValueId call_like_input(std::string_view operator_name, std::vector<Argument> arguments);

  /// "layers.3 conv2d"
  std::string label() const;
  /// "[16, 7, 7] from layers.3 max_pool2d"
  std::string found(ValueId value) const;
  [[noreturn]] void fail(const std::string& message) const;

 private:
  void expect_size(const std::vector<int64_t>& shape) const;

  ListScope scope_;
  const LayerDeclaration* declaration_;
  LayerOptions options_;
  ValueId input_;
};

/// A layer: what it is called and how it is built.
struct LayerEntry {
  enum class Kind { kActivation, kLayer, kBlock, kZoo };
  LayerDeclaration declaration;
  BuiltLayer (*build)(LayerBuild& layer);
  Kind kind = Kind::kLayer;
};

/// All layers, in the order of the documentation.
const std::vector<LayerEntry>& layer_entries();
/// nullptr if there is none.
const LayerEntry* find_layer(const std::string& name);

/// Builds one element of a list. Throws LayerError.
BuiltLayer build_layer(const ListScope& scope, const nlohmann::json& layer, ValueId input);

/// Builds layers one after the other, as an nn.Sequential names them.
BuiltLayer build_sequence(const ListScope& scope, const nlohmann::json& layers, ValueId input);

/// The product of the sizes.
int64_t element_count(std::span<const int64_t> shape);
std::string text_of(const std::vector<int64_t>& shape);

}  // namespace tutti::graph

#endif
