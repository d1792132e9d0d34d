// The Python classes that a model.py defines beside torch's.
#ifndef TUTTI_SRC_GRAPH_PYTHON_CLASSES_H
#define TUTTI_SRC_GRAPH_PYTHON_CLASSES_H

#include <string>
#include <string_view>

namespace tutti::graph {

/// The source of the class "Residual", "Branches", "Reshape", "LeNet5", "ResNet" or "VGG11".
std::string_view python_class(const std::string& name);

}  // namespace tutti::graph

#endif
