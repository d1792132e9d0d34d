find_package(Python3 COMPONENTS Interpreter REQUIRED)

add_test(NAME layering COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/layering_test.py)
set_tests_properties(layering PROPERTIES TIMEOUT 30)

if(TARGET tutti)
  add_test(NAME readme COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/readme_test.py $<TARGET_FILE:tutti>)
  set_tests_properties(readme PROPERTIES TIMEOUT 60)
endif()
