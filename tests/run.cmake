find_package(Python3 COMPONENTS Interpreter REQUIRED)

add_test(NAME layering COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/layering_test.py)
set_tests_properties(layering PROPERTIES TIMEOUT 30)

if(TARGET tutti)
  add_test(NAME readme COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/readme_test.py $<TARGET_FILE:tutti>)
  set_tests_properties(readme PROPERTIES TIMEOUT 60)
endif()

# Whole runs of the program: tests/whole/NAME.py RANKS [VARIANT]. They work in folders of their own.
function(whole_run_test name)
  cmake_parse_arguments(arg "" "TIMEOUT;VARIANT" "RANKS" ${ARGN})
  foreach(ranks IN LISTS arg_RANKS)
    set(test ${name}.ranks${ranks})
    if(arg_VARIANT)
      string(APPEND test .${arg_VARIANT})
    endif()
    add_test(NAME ${test}
      COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/whole/${name}.py ${ranks} ${arg_VARIANT})
    math(EXPR timeout "${arg_TIMEOUT} * ${time_factor}")
    set_tests_properties(${test} PROPERTIES TIMEOUT ${timeout} PROCESSORS 2
      ENVIRONMENT "TUTTI=$<TARGET_FILE:tutti>;TUTTI_TIME_FACTOR=${time_factor}")
  endforeach()
endfunction()

whole_run_test(p1_together_equals_alone RANKS 1 2 3 4 TIMEOUT 120)
whole_run_test(p2_placement_is_invisible RANKS 1 2 3 4 TIMEOUT 120)
whole_run_test(p3_interruption_is_invisible RANKS 1 2 3 4 TIMEOUT 240)
whole_run_test(p4_isolation RANKS 1 2 3 4 TIMEOUT 120)
whole_run_test(commands RANKS 1 2 3 TIMEOUT 240)
whole_run_test(pytorch_trajectories RANKS 1 2 TIMEOUT 240)
whole_run_test(pytorch_sensitivity RANKS 1 TIMEOUT 240)

if(TARGET tutti)
  whole_run_test(bad_input RANKS 1 2 3 TIMEOUT 240)
  whole_run_test(silent_rank RANKS 2 3 TIMEOUT 120)
  whole_run_test(signals RANKS 1 2 3 TIMEOUT 180)
  whole_run_test(lane_choice RANKS 1 2 TIMEOUT 60)
  whole_run_test(full_disk VARIANT limit RANKS 1 2 TIMEOUT 120)
  # Only root may mount the file system that is filled.
  execute_process(COMMAND id -u OUTPUT_VARIABLE user_id OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(user_id EQUAL 0)
    whole_run_test(full_disk VARIANT tmpfs RANKS 1 2 TIMEOUT 120)
  endif()
  if(NOT TUTTI_SANITIZE)
    whole_run_test(memory RANKS 1 2 TIMEOUT 120)
  endif()
endif()
