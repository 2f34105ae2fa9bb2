// From the inputs of a call to the values of an entry's symbols.
#ifndef DEEPSTRIDE_RUNTIME_CORE_BINDING_H
#define DEEPSTRIDE_RUNTIME_CORE_BINDING_H

#include "runtime/core/Manifest.h"
#include "runtime/core/Tensor.h"

#include <map>
#include <string>
#include <vector>

namespace ds {

// Which rank of how many this is, along the axis of data.
struct Mesh {
  int64_t ranks = 1, rank = 0;
};

// Whether a symbol is a place in the mesh, not a number of ranks.
bool isMeshIndex(const SymbolInfo &symbol);
// Whether a size depends on nothing but the mesh: it is known before any call.
bool isOfMesh(const EntryInfo &entry, const SizeExpr &expr);
// Values of the mesh's symbols; others are 0.
std::vector<int64_t> meshSymbols(const EntryInfo &entry, const Mesh &mesh);

using Pins = std::map<std::string, int64_t>; // dimensions given by name

// One value per symbol; computed symbols are 0 until the code defines them. Checks the number, types, ranks and shapes
// of the inputs. Throws Error: UnboundDimension naming a dimension that nothing gives, ShapeMismatch, InvalidArgument.
// With `wanted`, a flag per symbol, only those symbols must have values, and shapes are not compared with what they
// make.
std::vector<int64_t> bindSymbols(const EntryInfo &entry, const std::vector<TensorView> &inputs, const Pins &pins,
                                 const std::vector<bool> *wanted = nullptr);

// Throws Error(ShapeMismatch) naming the first constraint that does not hold. Constraints over computed symbols are
// left to the definition of those.
void checkConstraints(const EntryInfo &entry, const std::vector<int64_t> &symbols);
void checkConstraint(const ConstraintInfo &constraint, const std::vector<int64_t> &symbols);

Shape evaluateShape(const SymbolicShape &shape, const std::vector<int64_t> &symbols);

// Dimension symbols by pins alone, for making inputs up; `known` says which are given.
std::vector<int64_t> bindPins(const EntryInfo &entry, const Pins &pins, std::vector<bool> &known);

// "[batch, seq]"
std::string shapeText(const SymbolicShape &shape);

} // namespace ds
#endif
