# Makes build_info.cpp: the versions that are known when the build is configured.
set(TUTTI_COMMIT "")
find_package(Git QUIET)
if(GIT_FOUND)
  execute_process(COMMAND ${GIT_EXECUTABLE} -C ${PROJECT_SOURCE_DIR} rev-parse --short=12 HEAD
    OUTPUT_VARIABLE TUTTI_COMMIT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
configure_file(${PROJECT_SOURCE_DIR}/cmake/build_info.cpp.in ${PROJECT_BINARY_DIR}/launch/build_info.cpp @ONLY)
