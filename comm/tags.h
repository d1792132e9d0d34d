// The tags the message layer keeps for itself.
#ifndef TUTTI_COMM_TAGS_H
#define TUTTI_COMM_TAGS_H

namespace tutti::comm {

/// Users of a Communicator choose their tags in [0, kFirstReservedTag).
inline constexpr int kFirstReservedTag = (1 << 30) - 16;
inline constexpr int kCollectiveTag = kFirstReservedTag;
inline constexpr int kWatchdogTag = kFirstReservedTag + 1;

}  // namespace tutti::comm

#endif
