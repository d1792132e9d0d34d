// The main of tests that run under mpirun: every rank runs every test, and all fail where one does.
#ifndef TUTTI_TESTS_MPI_MAIN_H
#define TUTTI_TESTS_MPI_MAIN_H

#include "comm/mpi_session.h"

namespace tutti::tests {

/// The session of the running test program. The program takes --expect-ranks=N, and fails in a world of another size.
const comm::MpiSession& mpi_session();

}  // namespace tutti::tests

#endif
