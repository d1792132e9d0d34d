// Recurrent layers and cells.
#ifndef TUTTI_SRC_PROGRAM_RECURRENT_H
#define TUTTI_SRC_PROGRAM_RECURRENT_H

#include <memory>

#include "src/program/instruction.h"
#include "src/program/node_context.h"

namespace tutti::program {

/// aten::lstm.input, gru.input, rnn_tanh.input, rnn_relu.input: several layers, both directions. Dropout between layers
/// draws one mask [layers - 1, times, rows, channels] as dropout.h says.
std::unique_ptr<Instruction> make_recurrent_layers(const NodeContext& context);
/// aten::lstm_cell, gru_cell, rnn_tanh_cell, rnn_relu_cell.
std::unique_ptr<Instruction> make_recurrent_cell(const NodeContext& context);

/// True for [times, rows, size] or [rows, times, size] without projection, all of one type.
bool recurrent_layers_have_instruction(const graph::Graph& graph, const graph::Node& node);
bool recurrent_cell_has_instruction(const graph::Graph& graph, const graph::Node& node);

}  // namespace tutti::program

#endif
