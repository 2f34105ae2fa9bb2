// The inputs of a run: from files, from values on the command line, or random by seed.
#ifndef DEEPSTRIDE_TOOLS_DS_RUN_INPUTS_H
#define DEEPSTRIDE_TOOLS_DS_RUN_INPUTS_H

#include "tools/ds-run/Options.h"

#include "runtime/core/Session.h"

namespace ds {

// In the order of the entry's inputs. Throws Error naming the input or file; UnboundDimension when a random input's
// size is not known. `madeUp`, if given, becomes the names of the inputs that are random.
std::vector<Tensor> gatherInputs(const EntryInfo &entry, const Options &options, const Pins &pins, unsigned rank,
                                 std::vector<std::string> *madeUp = nullptr);

// The values of --state-in become those of the session's states, where it is given.
void restoreStates(Session &session, const Options &options, unsigned rank);

// Says on stderr which inputs are random, unless the command line asks for just that: --seed and no input. For after a
// call: one that fails is diagnosed in one line.
void noteRandomInputs(const std::vector<std::string> &madeUp, const Options &options);

// Standard normal floats; integers in [0, bound), or {0, 1} without a bound. The same seed gives the same values on
// every machine.
Tensor randomTensor(const TensorInfo &info, const Shape &shape, uint64_t seed);

// "3", "1.5", "true" or a nested list "[[1, 2], [3, 4]]" as a tensor of the type; a plain number has rank 0.
Tensor parseValue(const std::string &text, ElementType type);

// Replaces every "{rank}".
std::string forRank(const std::string &text, unsigned rank);

std::vector<TensorView> viewsOf(const std::vector<Tensor> &tensors);

// input_<i>.pb or output_<i>.pb of a test data folder, in order. Throws when the number is not as expected.
std::vector<Tensor> readTestData(const std::string &folder, const char *prefix, size_t expected);

} // namespace ds
#endif
