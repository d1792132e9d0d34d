// What is known of a build when it is configured.
#ifndef TUTTI_LAUNCH_BUILD_INFO_H
#define TUTTI_LAUNCH_BUILD_INFO_H

#include <string_view>

namespace tutti::launch {

struct BuildInfo {
  std::string_view version;       ///< of Tutti
  std::string_view commit;        ///< empty when it was not built from a git checkout
  std::string_view hdf5_version;  ///< built against
  std::string_view build_type;    ///< "Release", "Debug"
};

extern const BuildInfo kBuildInfo;

}  // namespace tutti::launch

#endif
