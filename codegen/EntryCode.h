// LLVM IR of entry points and of the package's one exported symbol.
#ifndef DEEPSTRIDE_CODEGEN_ENTRYCODE_H
#define DEEPSTRIDE_CODEGEN_ENTRYCODE_H

#include "codegen/EntryPlan.h"
#include "llvm/IR/Module.h"

namespace deepstride {

/// Adds the entry's function to a module that declares its kernels; returns the function.
mlir::FailureOr<llvm::Function *> emitEntry(llvm::Module &module, mlir::func::FuncOp function, const EntryPlan &plan);
/// Adds ds_package_query over the given entries.
void emitPackageQuery(llvm::Module &module, llvm::ArrayRef<std::pair<std::string, llvm::Function *>> entries);

} // namespace deepstride

#endif
