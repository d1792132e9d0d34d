// Reads the binary versions of CIFAR-10 and CIFAR-100.
#ifndef TUTTI_DATA_IMPORT_CIFAR_H
#define TUTTI_DATA_IMPORT_CIFAR_H

#include <filesystem>
#include <memory>

#include "data/row_source.h"

namespace tutti::data {

enum class CifarKind { kCifar10, kCifar100 };
enum class CifarPart { kTrain, kTest };

/// The files of one part in the unpacked folder: data_batch_*.bin or test_batch.bin (CIFAR-10), train.bin or test.bin
/// (CIFAR-100, fine labels). Gives the input `x` ([3, 32, 32] uint8) and the target `y` (uint8), with class names where
/// batches.meta.txt or fine_label_names.txt lie beside them. Throws DataError.
std::unique_ptr<RowSource> import_cifar(CifarKind kind, CifarPart part, const std::filesystem::path& folder);

}  // namespace tutti::data

#endif
