// Attributes by which entries say where states of a unit of ZeRO lie (docs/rationale/dist.md).
#ifndef DEEPSTRIDE_DIALECTS_DS_UNITATTRS_H
#define DEEPSTRIDE_DIALECTS_DS_UNITATTRS_H

#include "llvm/ADT/StringRef.h"

namespace deepstride::ds {

/// Of the entry that updates parameters: the units, an array of {name, block, elements, rounded, tensors = [{name,
/// offset, shape, initial}]}, initial being the recipe of a parameter's first value, rounded the type, if there is one,
/// that parameters are rounded to from masters of the suffix "/master".
inline constexpr llvm::StringLiteral unitsAttr = "ds.units";
/// Of the argument of a state: the name of its unit.
inline constexpr llvm::StringLiteral unitAttr = "ds.unit";
/// As which part it lies there: "tensor" of the unit's memory; "view" of what this rank owns in that memory; "shard",
/// which is what this rank owns, alone.
inline constexpr llvm::StringLiteral partAttr = "ds.part";
/// What stands behind the names of the unit's tensors: "/exp_avg".
inline constexpr llvm::StringLiteral suffixAttr = "ds.suffix";
/// Of a wait for parameters of a unit: their names, in the order of its results.
inline constexpr llvm::StringLiteral gatheredAttr = "ds.gathered";

} // namespace deepstride::ds

#endif
