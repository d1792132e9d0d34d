// What a node of recurrent layers, or of one step of a cell, is made of.
#ifndef TUTTI_SRC_PROGRAM_RECURRENT_STRUCTURE_H
#define TUTTI_SRC_PROGRAM_RECURRENT_STRUCTURE_H

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "src/program/dropout.h"
#include "src/program/node_context.h"
#include "src/program/recurrent_cell.h"

namespace tutti::program {

/// A value with the target of its gradient.
struct RecurrentWeight {
  graph::ValueId value = graph::kNoValue;
  GradientTarget target;
};

struct RecurrentStructure {
  enum class Form { kTimesFirst, kRowsFirst, kStep };
  const RecurrentCell* cell = nullptr;
  Form form = Form::kTimesFirst;
  int64_t layers = 1, directions = 1;
  std::vector<RecurrentWeight> states;                  ///< hidden, then cell state
  std::vector<std::array<RecurrentWeight, 4>> weights;  ///< of each direction of each layer; biases may be absent
  graph::ValueId output = graph::kNoValue;
  std::vector<graph::ValueId> last_states;  ///< kNoValue where nobody reads them
  std::optional<DropoutSite> dropout;       ///< of [layers - 1, times, rows, channels]
};

/// Of aten::lstm.input, gru.input, rnn_tanh.input, rnn_relu.input.
RecurrentStructure structure_of_layers(const NodeContext& context);
/// Of aten::lstm_cell, gru_cell, rnn_tanh_cell, rnn_relu_cell.
RecurrentStructure structure_of_cell(const NodeContext& context);

}  // namespace tutti::program

#endif
