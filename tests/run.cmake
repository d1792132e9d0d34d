find_package(Python3 COMPONENTS Interpreter REQUIRED)

add_test(NAME layering COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/layering_test.py)
set_tests_properties(layering PROPERTIES TIMEOUT 30)
