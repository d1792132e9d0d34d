// The tags the message layer keeps for itself.
#ifndef TUTTI_COMM_TAGS_H
#define TUTTI_COMM_TAGS_H

namespace tutti::comm {

/// MPI promises tags up to 32,767 only, and some networks' libraries give little more: all tags are small numbers.
inline constexpr int kCollectiveTag = 0;
inline constexpr int kWatchdogTag = 1;

/// Users of a Communicator choose their tags from here up to its greatest_tag().
inline constexpr int kFirstFreeTag = 2;

}  // namespace tutti::comm

#endif
