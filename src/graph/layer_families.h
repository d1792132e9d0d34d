// The layer families: each lists its layers, with declarations and builders.
#ifndef TUTTI_SRC_GRAPH_LAYER_FAMILIES_H
#define TUTTI_SRC_GRAPH_LAYER_FAMILIES_H

#include <vector>

#include "src/graph/layer_build.h"

namespace tutti::graph {

std::vector<LayerEntry> linear_layers();
std::vector<LayerEntry> convolution_layers();
std::vector<LayerEntry> pooling_layers();
std::vector<LayerEntry> normalisation_layers();
std::vector<LayerEntry> activation_layers();
std::vector<LayerEntry> shape_layers();
std::vector<LayerEntry> blocks();
std::vector<LayerEntry> zoo();

}  // namespace tutti::graph

#endif
