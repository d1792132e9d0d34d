// Addition in the order of the binary tree over the grains.
#ifndef TUTTI_COMM_TREE_ADD_H
#define TUTTI_COMM_TREE_ADD_H

#include <span>

#include "comm/team.h"

namespace tutti::comm {

/// A complete subtree's sum.
template <typename Element>
struct Leaf {
  Subtree subtree;
  const Element* values;
};

/// Adds the leaves elementwise into `sum`: S(level, i) = S(level - 1, 2 i) + S(level - 1, 2 i + 1), down to the leaves.
///
/// The leaves are in grain order and tile [0, grain_count), a power of two; each has as many values as `sum`, which may
/// be one of them. Throws std::invalid_argument where they do not tile.
template <typename Element>  // float or double
void add_in_tree_order(int64_t grain_count, std::span<const Leaf<Element>> leaves, std::span<Element> sum);

/// Bytes of scratch memory that add_in_tree_order() needs at most.
template <typename Element>
int64_t tree_add_scratch_bytes(int64_t grain_count, int64_t element_count);

}  // namespace tutti::comm

#endif
