// Checks of a model's specification that concern several keys at once.
#ifndef TUTTI_LAUNCH_JOB_CHECKS_H
#define TUTTI_LAUNCH_JOB_CHECKS_H

#include <string>

#include "launch/key_reader.h"
#include "launch/model_warnings.h"
#include "src/train/model_spec.h"

namespace tutti::launch {

/// Compares grains, batches, steps, loss, target, outputs, metrics and augmentation with each other and with the data,
/// as far as the specification has them. Sets epochs from steps; cuts batches down to the rows there are, which changes
/// no number and is what memory is planned for. Faults go to the reader's.
void check_model(const KeyReader& reader, train::ModelSpec& spec, ModelWarnings& warnings);

/// A model's name as a file name: 1 to 128 of A-Z a-z 0-9 . _ -, no dot first.
bool is_valid_name(const std::string& name);

}  // namespace tutti::launch

#endif
