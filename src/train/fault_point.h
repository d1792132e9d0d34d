// Places where a test can make a run go wrong.
#ifndef TUTTI_SRC_TRAIN_FAULT_POINT_H
#define TUTTI_SRC_TRAIN_FAULT_POINT_H

#include <string_view>

namespace tutti::train {

/// TUTTI_FAULT=POINT[/MODEL]:COUNT[:EFFECT] has its effect at this process's COUNT-th visit of the point (of that model
/// alone, where one is given): `kill` (SIGKILL, the default), `crash` (SIGSEGV), or `throw` (std::runtime_error). Costs
/// next to nothing without TUTTI_FAULT.
void fault_point(std::string_view point, std::string_view model = {});

/// As fault_point, but true is the whole effect.
bool fault_due(std::string_view point, std::string_view model = {});

}  // namespace tutti::train

#endif
