// `${variable}` in a job file: replaced by the values of a sweep's variables and of the environment.
#ifndef TUTTI_LAUNCH_SUBSTITUTION_H
#define TUTTI_LAUNCH_SUBSTITUTION_H

#include <map>
#include <string>
#include <vector>

#include "launch/job_faults.h"
#include "launch/job_node.h"

namespace tutti::launch {

/// Values by variable name.
using Variables = std::map<std::string, Node>;

/// Replaces `${name}`, and `${env:NAME}` by an environment variable. A scalar that is one `${name}` and nothing else
/// becomes the variable's value with its type and place; inside longer text, and in keys, the value's source text is
/// put in. `$${` stands for `${`. A variable that does not exist, an unclosed `${` and a mapping inside text become
/// faults at `path`.
Node substitute(const Node& node, const Variables& variables, const std::string& path, Faults& faults);

/// The names of the variables that a text uses, in order.
std::vector<std::string> variables_in(const std::string& text);

}  // namespace tutti::launch

#endif
