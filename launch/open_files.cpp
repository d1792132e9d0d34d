#include "launch/open_files.h"

#include <sys/resource.h>

#include <algorithm>
#include <limits>

namespace tutti::launch {

int64_t raise_open_file_limit() {
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return std::numeric_limits<int64_t>::max();
  rlimit raised = limit;
  raised.rlim_cur = raised.rlim_max;
  if (setrlimit(RLIMIT_NOFILE, &raised) == 0) limit = raised;
  const auto most = static_cast<rlim_t>(std::numeric_limits<int64_t>::max());
  return static_cast<int64_t>(std::min(limit.rlim_cur, most));
}

}  // namespace tutti::launch
