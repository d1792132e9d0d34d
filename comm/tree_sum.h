// The exact sum over a team: the same bits however the grains are spread over ranks.
#ifndef TUTTI_COMM_TREE_SUM_H
#define TUTTI_COMM_TREE_SUM_H

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "comm/team.h"

namespace tutti::comm {

/// What a member says beside its numbers. The members' words reach every member, so that all decide alike.
struct Word {
  bool stop_requested = false;  ///< this member was asked to stop at the next step boundary
  std::string error;            ///< why this member cannot go on; empty = it can. At most 1,000 bytes are sent.
};

/// What the members said, the same on every member.
struct Verdict {
  bool stop_requested = false;  ///< any member's
  std::string error;            ///< the first member's in grain order that has one
};

/// The sum of one vector over the grains of a team, in the order of the binary tree over the grains:
/// S(level, i) = S(level - 1, 2 i) + S(level - 1, 2 i + 1). Each member hands in the sums of its complete subtrees
/// (`subtrees_of` its run); a reduce-scatter adds them in tree order and an all-gather returns the sum.
///
/// Collective over the team: all members start it with the same tag, element count and scalar count. It only makes
/// progress inside progress(), on the communication thread. Where one member reports an error nobody sums, and the
/// verdict tells it to all; the sum's and the scalars' values are then unspecified.
template <typename Element>  // float or double
class TreeSum {
 public:
  struct Part {
    std::span<const Element> elements;  ///< this subtree's sum
    std::span<const double> scalars;    ///< this subtree's sum of the statistics that travel beside it
  };

  /// `parts` are in the order of subtrees_of(own run), and must live, untouched, until finished. `sum` (as long as
  /// each part's elements) may be the first part's own memory. `tag` is used with tag + 1 as well; two operations that
  /// run at the same time need tags of their own. Throws std::invalid_argument where the parts do not fit the team.
  TreeSum(Communicator& communicator, const Team& team, int tag, std::vector<Part> parts, Word word,
          std::span<Element> sum);
  ~TreeSum();
  TreeSum(TreeSum&&) noexcept;

  /// Moves on as far as it can without waiting. True once finished.
  bool progress();

  /// After progress() was true: the sums of the scalars in tree order, and what the members said.
  const std::vector<double>& scalars() const;
  const Verdict& verdict() const;

  /// The members (ranks) this operation still waits for.
  std::vector<int> waiting_for() const;

  /// The memory an operation allocates on the member at `position` of the team, beside the caller's parts and sum.
  static int64_t buffer_bytes(const Team& team, int position, int64_t element_count, int64_t scalar_count);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

extern template class TreeSum<float>;
extern template class TreeSum<double>;

}  // namespace tutti::comm

#endif
