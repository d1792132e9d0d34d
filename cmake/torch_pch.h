// The precompiled header of every target that uses LibTorch. It saves compile time only: each file still includes what
// it uses.
#ifndef TUTTI_CMAKE_TORCH_PCH_H
#define TUTTI_CMAKE_TORCH_PCH_H

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#endif
