# Imported targets for LibTorch, made by hand: find_package(Torch) of a CUDA wheel asks for a CUDA toolkit even when
# only the CPU libraries are used, and adds global flags.
#
# TUTTI_TORCH names the folder that holds `torch/` and `nvidia/` (a `pip install --target` folder, or the
# site-packages of the user's own Python), or a LibTorch folder with `lib/` and `include/`.
# The environment variable of the same name gives the first value; later -DTUTTI_TORCH=DIR changes it.
set(torch_default "${PROJECT_SOURCE_DIR}/build/libtorch")
if(DEFINED ENV{TUTTI_TORCH})
  set(torch_default "$ENV{TUTTI_TORCH}")
endif()
set(TUTTI_TORCH "${torch_default}" CACHE PATH "Folder that holds LibTorch (see cmake/fetch_libtorch)")

if(EXISTS "${TUTTI_TORCH}/torch/lib/libtorch_cpu.so")
  set(torch_root "${TUTTI_TORCH}/torch")
elseif(EXISTS "${TUTTI_TORCH}/lib/libtorch_cpu.so")
  set(torch_root "${TUTTI_TORCH}")
else()
  message(FATAL_ERROR "LibTorch: expected ${TUTTI_TORCH}/torch/lib/libtorch_cpu.so or ${TUTTI_TORCH}/lib/libtorch_cpu.so, "
    "found neither. Run `cmake/fetch_libtorch` to fetch it into build/libtorch, or give your own with -DTUTTI_TORCH=DIR.")
endif()

file(GLOB torch_dependency_dirs "${TUTTI_TORCH}/nvidia/*/lib")
set(torch_link_options "")
foreach(dir IN LISTS torch_dependency_dirs)
  list(APPEND torch_link_options "LINKER:-rpath-link,${dir}")
endforeach()

foreach(library c10 torch_cpu)
  add_library(torch::${library} SHARED IMPORTED)
  set_target_properties(torch::${library} PROPERTIES IMPORTED_LOCATION "${torch_root}/lib/lib${library}.so")
endforeach()

# LibTorch carries headers of an own {fmt}; ours, which the library we link to has, must be found before them.
find_package(fmt REQUIRED)
get_target_property(fmt_include_dirs fmt::fmt INTERFACE_INCLUDE_DIRECTORIES)
find_path(fmt_include_dir fmt/format.h HINTS ${fmt_include_dirs} REQUIRED)
set(include_first "${PROJECT_BINARY_DIR}/include_first")
file(MAKE_DIRECTORY "${include_first}")
file(CREATE_LINK "${fmt_include_dir}/fmt" "${include_first}/fmt" SYMBOLIC)

add_library(torch::torch INTERFACE IMPORTED)
target_include_directories(torch::torch SYSTEM INTERFACE
  "${include_first}" "${torch_root}/include" "${torch_root}/include/torch/csrc/api/include")
target_link_libraries(torch::torch INTERFACE torch::torch_cpu torch::c10)
target_link_options(torch::torch INTERFACE ${torch_link_options})
