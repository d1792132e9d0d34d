// The fast sum over a team: the bytes of a ring for every placement, but bits that depend on the placement.
#ifndef TUTTI_COMM_FAST_SUM_H
#define TUTTI_COMM_FAST_SUM_H

#include <vector>

#include "comm/tree_sum.h"

namespace tutti::comm {

/// As TreeSum, but each member adds the sums of its own subtrees from left to right first, and sends one vector however
/// its run lies in the tree. The members' vectors are added in a fixed tree over the members: the same team gives the
/// same bits, another team may give others. Where all members own one subtree of the same size, both sums are equal.
///
/// It offers what TreeSum offers, and is collective in the same way.
template <typename Element>  // float or double
class FastSum {
 public:
  using Part = typename TreeSum<Element>::Part;

  /// As TreeSum's. Writes to `sum` at once.
  FastSum(Communicator& communicator, const Team& team, int tag, const std::vector<Part>& parts, Word word,
          std::span<Element> sum);

  bool progress() { return exchange_.progress(); }
  const std::vector<double>& scalars() const { return exchange_.scalars(); }
  const Verdict& verdict() const { return exchange_.verdict(); }
  std::vector<int> waiting_for() const { return exchange_.waiting_for(); }

  static int64_t buffer_bytes(const Team& team, int position, int64_t element_count, int64_t scalar_count);

 private:
  std::vector<double> own_scalars_;  // on the heap, where exchange_ finds it also after a move
  TreeSum<Element> exchange_;
};

extern template class FastSum<float>;
extern template class FastSum<double>;

}  // namespace tutti::comm

#endif
