// Runs a program on the calls that a file holds. Sees the runtime, but no compiler.
#ifndef DEEPSTRIDE_TOOLS_DSOPT_CALIBRATIONRUN_H
#define DEEPSTRIDE_TOOLS_DSOPT_CALIBRATIONRUN_H

#include <cstdint>
#include <functional>
#include <string>

namespace deepstride {

/// Is told a state of f64 after the last call: its name, its elements, and how many rows and columns they are. Returns
/// what is wrong with them, or nothing.
using UseSums = std::function<std::string(const std::string &state, const double *sums, int64_t size)>;

/// Makes all calls of an .npz with the only entry of a package, in their order. Its arrays are NAME, an input of every
/// call, or N/NAME, that of call N: 0, 1, and so on. One call's inputs are in memory at a time. Returns what is wrong,
/// in one line, or nothing; `calls` becomes their number.
std::string runCalibration(const std::string &package, const std::string &file, const UseSums &use, int64_t &calls);

} // namespace deepstride

#endif
