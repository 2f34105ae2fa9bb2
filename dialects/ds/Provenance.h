// Whose work an op is: of which node, parameter or part of a step, and in which role. Locations carry it, because every
// op has one and whatever replaces an op hands it on; a location without it is the forward work of its node.
//
//   loc(fused<{role = "backward"}>["/encoder/MatMul"])    what a rule of derivatives made of that node
//   loc(fused<{parameter = "w", role = "update"}>[...])   what the optimizer does to a parameter
//   loc(fused<{shares = array<i64: 64, 32>}>["/q", "/k"]) one op for two nodes, by these shares
#ifndef DEEPSTRIDE_DIALECTS_DS_PROVENANCE_H
#define DEEPSTRIDE_DIALECTS_DS_PROVENANCE_H

#include "mlir/IR/Location.h"
#include "mlir/IR/Operation.h"

#include <string>

namespace deepstride {

/// Of the module: the parameters of the model, a dictionary {elements, node} by their ONNX names; node is the first one
/// that reads it. `ds-list-parameters` writes it while every weight still is by itself.
inline constexpr llvm::StringLiteral parametersAttr = "ds.parameters";

enum class WorkRole : uint8_t {
  Forward,
  Backward,
  Recompute, // what the way there computed already, once more on the way back
  Update,
};
llvm::StringRef toString(WorkRole role);

/// The location of ops that work in that role for what `where` names. The outermost role counts.
mlir::Location withRole(mlir::Location where, WorkRole role);
/// The same of what is done for a parameter, by its ONNX name, instead of a node.
mlir::Location withParameter(mlir::Location where, WorkRole role, llvm::StringRef parameter);
/// Of a part of the program that is no node's: "loss", "optimizer".
mlir::Location withPart(mlir::Location where, WorkRole role, llvm::StringRef part);
/// Of an op in the place of several, each with its share of the work.
mlir::Location withShares(mlir::MLIRContext *context, llvm::ArrayRef<mlir::Location> places,
                          llvm::ArrayRef<int64_t> shares);

/// What an op works for; several are there where it took the place of several ops.
struct WorkPlace {
  std::string node, parameter, part; // at most one is not empty
  WorkRole role = WorkRole::Forward;
  int64_t share = 1;
};
/// An op with forward work inside of a branch or loop of the way back recomputes.
llvm::SmallVector<WorkPlace> workPlacesOf(mlir::Operation *op);

} // namespace deepstride

#endif
