// All ops of the ds dialect, by family. Shape rules live in the .cpp files beside this one, as inferResults.
#ifndef DEEPSTRIDE_DS_OPS_TD
#define DEEPSTRIDE_DS_OPS_TD

include "dialects/ds/DsDialect.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"

// Ops that declare more in C++ do so by `declarations`.
class DS_Op<string mnemonic, list<Trait> traits = []>
    : Op<DS_Dialect, mnemonic, !listconcat([DS_SizedByAttributes], traits)> {
  code declarations = "";
  defvar sizeNames = DS_SizeAttributeNames<arguments>.names;
  let extraClassDeclaration =
      "static ::llvm::ArrayRef<::llvm::StringLiteral> sizeAttributes() {"
      # !if(!empty(sizeNames), " return {};",
            " static constexpr ::llvm::StringLiteral names[] = {" # !interleave(sizeNames, ", ") # "}; return names;")
      # " }\n" # declarations;
}

// A pure op on ranked tensors whose result types follow from operands and attributes.
class DS_TensorOp<string mnemonic, list<Trait> traits = []>
    : DS_Op<mnemonic, !listconcat([Pure, DeclareOpInterfaceMethods<DS_ResultInference>], traits)>;

defvar DS_Tensor = AnyRankedTensor;

include "dialects/ds/LeafOps.td"
include "dialects/ds/ElementwiseOps.td"
include "dialects/ds/MovementOps.td"
include "dialects/ds/ReductionOps.td"
include "dialects/ds/LinearAlgebraOps.td"
include "dialects/ds/ProgramOps.td"

#endif
