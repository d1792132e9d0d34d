# The main of tests that run under mpirun.
add_library(tutti_mpi_main STATIC mpi_main.cpp)
target_link_libraries(tutti_mpi_main PUBLIC tutti_comm GTest::gtest)

tutti_test(team_test LIBRARIES tutti_comm)
tutti_test(communicator_test LIBRARIES tutti_mpi_main RANKS 1 2 3 4)
tutti_test(collectives_test LIBRARIES tutti_mpi_main RANKS 1 2 3 4)
tutti_test(tree_sum_test LIBRARIES tutti_mpi_main RANKS 1 2 3 4)
tutti_test(fast_sum_test LIBRARIES tutti_mpi_main RANKS 1 2 3 4)
tutti_test(exchange_queue_test LIBRARIES tutti_mpi_main RANKS 1)
tutti_test(watchdog_test LIBRARIES tutti_mpi_main RANKS 1 2 3 4)
