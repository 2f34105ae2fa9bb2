// The ds dialect in C++: ops, enums, the inference interface.
#ifndef DEEPSTRIDE_DIALECTS_DS_DSDIALECT_H
#define DEEPSTRIDE_DIALECTS_DS_DSDIALECT_H

#include "dialects/ds/Inference.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/ds/DsDialect.h.inc"
#include "dialects/ds/DsEnums.h.inc"
#include "dialects/ds/DsInterfaces.h.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/ds/DsAttrs.h.inc"

namespace deepstride::ds {
/// One step of what an attention does to its scores, see ds.attention.
struct ScoreStep {
  ScoreStepKind kind;
  mlir::Value mask; // null where the kind takes none
  double low = 0;   // what a hidden score becomes, or what is added to it
};
/// Which keys a row of an attention sees, see ds.attention; open without bounds.
struct ScoreWindow {
  SizeExpr past;
  std::optional<int64_t> left, right;
  mlir::Value positions; // instead of past
  std::optional<int64_t> capacity;

  explicit operator bool() const { return left || right; }
};
/// Whether steps of the kind take an operand; whether they hide places, and so have a `low`; whether what they take are
/// flags; whether they hide by the window.
bool takesMask(ScoreStepKind kind);
bool takesLow(ScoreStepKind kind);
bool takesFlags(ScoreStepKind kind);
bool isWindowed(ScoreStepKind kind);

// The steps in their text form: [add %m, keep %c else -1.0e9].
mlir::ParseResult parseScoreSteps(mlir::OpAsmParser &parser,
                                  llvm::SmallVectorImpl<mlir::OpAsmParser::UnresolvedOperand> &masks,
                                  mlir::ArrayAttr &steps, mlir::DenseF64ArrayAttr &lows);
void printScoreSteps(mlir::OpAsmPrinter &printer, mlir::Operation *op, mlir::OperandRange masks, mlir::ArrayAttr steps,
                     mlir::DenseF64ArrayAttr lows);
// The relation of a ds.require in its text form: equal to, broadcast with, at least.
mlir::ParseResult parseSizeRelation(mlir::OpAsmParser &parser, SizeRelationAttr &relation);
void printSizeRelation(mlir::OpAsmPrinter &printer, mlir::Operation *op, SizeRelationAttr relation);
} // namespace deepstride::ds

#define GET_OP_CLASSES
#include "dialects/ds/DsOps.h.inc"

namespace deepstride::ds {
// Attributes of entry functions, their arguments and results.
inline constexpr llvm::StringLiteral nameAttr = "ds.name";   // ONNX name of an argument or result
inline constexpr llvm::StringLiteral dimsAttr = "ds.dims";   // size list of an argument
inline constexpr llvm::StringLiteral boundAttr = "ds.bound"; // exclusive bound of integer inputs, for random inputs
inline constexpr llvm::StringLiteral stateAttr = "ds.state"; // name that ties an argument and a result to one buffer
inline constexpr llvm::StringLiteral initialAttr = "ds.initial"; // recipe with a state's first value
// Marks a number that the model's file stores, where it trains: a constant unless it is named.
inline constexpr llvm::StringLiteral storedAttr = "ds.stored";
// Marks the state of a running statistic, which moves with every step and is not trained.
inline constexpr llvm::StringLiteral statisticAttr = "ds.statistic";
inline constexpr llvm::StringLiteral scheduleAttr = "ds.schedule"; // of an op that multiplies
inline constexpr llvm::StringLiteral entryAttr = "ds.entry";       // marks functions that become entry points
inline constexpr llvm::StringLiteral valueNameAttr = "ds.values";  // ONNX value names of an op's results
// Of the module, where it trains: a dictionary of labels (an input's name), classes, ignored_label, shifts_labels.
inline constexpr llvm::StringLiteral trainingAttr = "ds.training";
// Of the module: dictionaries {of, transposed} by the names of weights that became others.
inline constexpr llvm::StringLiteral tiedAttr = "ds.tied";
} // namespace deepstride::ds

#endif
