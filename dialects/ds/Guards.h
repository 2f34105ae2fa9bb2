// Attributes of guarded entries: the functions of a group are one entry to those who call it, and the runtime runs the
// first of them whose guards all hold. Passes carry the attributes along.
//
//   func.func @main(%sr: tensor<i64> {ds.name = "sr"}) attributes {ds.entry, ds.group = "main",
//       ds.guards = [{condition = "eq(16000, sr[0])", holds = true}]}
//   func.func @main.1(%sr: tensor<i64> {ds.name = "sr"}) attributes {ds.entry, ds.group = "main",
//       ds.guards = [{condition = "eq(16000, sr[0])", holds = false}]}
#ifndef DEEPSTRIDE_DIALECTS_DS_GUARDS_H
#define DEEPSTRIDE_DIALECTS_DS_GUARDS_H

#include "llvm/ADT/StringRef.h"

namespace deepstride::ds {
inline constexpr llvm::StringLiteral guardsAttr = "ds.guards";   // in the order of their evaluation
inline constexpr llvm::StringLiteral groupAttr = "ds.group";     // the name under which the group is called
inline constexpr llvm::StringLiteral conditionKey = "condition"; // of a guard: an expression of sizes, 0 or not
inline constexpr llvm::StringLiteral holdsKey = "holds";         // of a guard: whether it must not be 0, or must be
} // namespace deepstride::ds

#endif
