find_package(Python3 COMPONENTS Interpreter REQUIRED)

add_test(NAME layering COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/layering_test.py)
set_tests_properties(layering PROPERTIES TIMEOUT 30)

if(TARGET tutti)
  add_test(NAME readme COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/readme_test.py $<TARGET_FILE:tutti>)
  set_tests_properties(readme PROPERTIES TIMEOUT 60)
endif()

# Whole runs of the program: tests/whole/NAME.py RANKS. They work in folders of their own.
function(whole_run_test name)
  cmake_parse_arguments(arg "" "TIMEOUT" "RANKS" ${ARGN})
  foreach(ranks IN LISTS arg_RANKS)
    set(test ${name}.ranks${ranks})
    add_test(NAME ${test} COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/whole/${name}.py ${ranks})
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

# tutti_whole_test(NAME TIMEOUT seconds RANKS n...): runs tests/whole/NAME.py N, which starts the program on N ranks.
function(tutti_whole_test name)
  cmake_parse_arguments(arg "" "TIMEOUT" "RANKS" ${ARGN})
  math(EXPR timeout "${arg_TIMEOUT} * ${time_factor}")
  foreach(ranks IN LISTS arg_RANKS)
    add_test(NAME ${name}.ranks${ranks}
      COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/whole/${name}.py ${ranks})
    set_tests_properties(${name}.ranks${ranks} PROPERTIES TIMEOUT ${timeout} PROCESSORS ${ranks}
      ENVIRONMENT "PYTHONPATH=${PROJECT_SOURCE_DIR}/tests/whole;PYTHONDONTWRITEBYTECODE=1;TUTTI=$<TARGET_FILE:tutti>")
  endforeach()
endfunction()

if(TARGET tutti)
  tutti_whole_test(bad_input RANKS 1 2 3 TIMEOUT 240)
  tutti_whole_test(silent_rank RANKS 2 3 TIMEOUT 120)
  tutti_whole_test(memory RANKS 1 2 TIMEOUT 120)
  tutti_whole_test(signals RANKS 1 2 3 TIMEOUT 180)
endif()
