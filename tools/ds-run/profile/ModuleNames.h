// Which module of the model a node belongs to: a path like {"encoder", "layer.0", "query"}, read off names.
#ifndef DEEPSTRIDE_TOOLS_DS_RUN_PROFILE_MODULENAMES_H
#define DEEPSTRIDE_TOOLS_DS_RUN_PROFILE_MODULENAMES_H

#include "runtime/core/Manifest.h"

#include <map>
#include <string>
#include <vector>

namespace ds {

using ModulePath = std::vector<std::string>;

// The modules that a name is inside of: of "/encoder/layer.0/query/MatMul", encoder, layer.0 and query. Parts are
// between slashes or, where there are none, between dots; a number belongs to the part before it.
ModulePath scopeOf(const std::string &name);
// What modules of one kind have in common: "layer" of "layer.0" and of "layer_11".
std::string classOf(const std::string &module);

// A node is in the module that its name says. One whose name has none is in that of its parameter's name; one without a
// parameter in what the nodes before and after it with one have in common; and one where that is nothing by itself,
// under its operator. What is done for a parameter is in the module of the node that reads it.
class ModuleNames {
public:
  // The order of nodes is that of the launches of the entry.
  ModuleNames(const Manifest &manifest, const EntryInfo &entry);

  ModulePath pathOf(const NodeWork &work) const;
  ModulePath pathOf(const ParameterInfo &parameter) const;
  // Whether names of nodes have modules; otherwise those of parameters may.
  bool areOfNodes() const { return hasScopes; }

private:
  std::map<std::string, const ParameterInfo *> parameters;
  std::map<std::string, ModulePath> nodes; // those whose names have no scope
  bool hasScopes = false;
};

} // namespace ds
#endif
