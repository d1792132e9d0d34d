// Buffer updates of functional programs, brought back to the operators that training programs use.
#ifndef TUTTI_SRC_GRAPH_BUFFER_UPDATES_H
#define TUTTI_SRC_GRAPH_BUFFER_UPDATES_H

#include "src/graph/graph.h"

namespace tutti::graph {

/// After ExportedProgram.run_decompositions(), a program returns its changed buffers, which the import copies into them
/// at the end. Two such updates become what they were before: a batch norm that returns new statistics becomes
/// aten::batch_norm, which updates them itself (a copy would change what its backward has saved), and a counter's sum
/// becomes aten::add_.
void restore_buffer_updates(Graph& graph);

}  // namespace tutti::graph

#endif
