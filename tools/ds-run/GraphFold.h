// Makes a graph fit a screen: what differs in a number only is one node, and dimensions have short names.
#ifndef DEEPSTRIDE_TOOLS_DS_RUN_GRAPHFOLD_H
#define DEEPSTRIDE_TOOLS_DS_RUN_GRAPHFOLD_H

#include "tools/ds-run/Graph.h"

#include <map>
#include <string>
#include <vector>

namespace ds {

// Inputs, states and outputs of one shape whose names differ in numbers only and that the same nodes read and write,
// such as the caches of equal layers, become one, with their count.
void foldEqualEnds(Graph &graph);

// Letters for the dimensions of an entry that have long names: "batch_size" is B, and "sequence_length" S. Names of at
// most three letters are short already.
std::map<std::string, std::string> shortDimensions(const EntryInfo &entry);

// An expression with those in the place of names: "batch_size*(sequence_length + 1)" is "B*(S + 1)".
std::string withShortNames(const std::string &expression, const std::map<std::string, std::string> &shortNames);

} // namespace ds
#endif
