// MPI comes as a library of its own, so that programs start where there is none.
#ifndef DEEPSTRIDE_RUNTIME_COMM_MPI_MPIPLUGIN_H
#define DEEPSTRIDE_RUNTIME_COMM_MPI_MPIPLUGIN_H

#include "runtime/comm/Transport.h"

#include <chrono>
#include <memory>
#include <string>

namespace ds {

// What libds_mpi.so exports: a new transport, or null and why not. The number changes with Transport.
#define DS_MPI_SYMBOL ds_open_mpi_transport_1
#define DS_MPI_SYMBOL_NAME "ds_open_mpi_transport_1"
using OpenMpiTransport = Transport *(char *fault, size_t faultBytes);

// Loads the library from beside this program or ../lib, and joins the ranks of MPI's world, which are so many; this one
// is on `host`. Throws Error where one of them does not come in time, or has ended on this host.
std::unique_ptr<Transport> openMpiTransport(unsigned world, const std::string &host,
                                            std::chrono::milliseconds patience);

} // namespace ds
#endif
