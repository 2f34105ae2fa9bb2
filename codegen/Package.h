// Writes packages (docs/package-format.md).
#ifndef DEEPSTRIDE_CODEGEN_PACKAGE_H
#define DEEPSTRIDE_CODEGEN_PACKAGE_H

#include "codegen/Manifest.h"
#include "codegen/TemporaryFolder.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"

#include <functional>

namespace deepstride {

struct PackageOptions {
  std::string model; // base name of what was compiled
  struct ConfigValue {
    std::string key, value, origin;
  };
  std::vector<ConfigValue> config; // every option with its origin, for the manifest
  std::string training;            // JSON text of what a package that trains was configured with; empty: it does not
  bool manyRows = false;           // as of convert-ds-to-linalg
  /// Prepares the pass manager that lowers kernels, or fails after a diagnostic; empty: as it is.
  std::function<llvm::LogicalResult(mlir::PassManager &)> prepare = {};
};

/// One package under construction: a variant per target, then finish. Everything is written into a temporary directory
/// beside the destination; only finish renames it, and a package that is not finished leaves nothing behind.
class PackageWriter {
public:
  /// `destination`: as packageDestination gives it.
  PackageWriter(std::string destination, PackageOptions options);

  /// `program`: after the memory phase (launches, buffer plans, kernels, recipes). Its kernels are lowered in place.
  /// `lowered`, if given, is called with the module once its kernels are in the LLVM dialect.
  llvm::LogicalResult addVariant(mlir::ModuleOp program, const CpuTarget &target, bool reference,
                                 llvm::function_ref<void(mlir::ModuleOp)> lowered = {});
  /// Another file of the package.
  llvm::LogicalResult addFile(llvm::StringRef name, llvm::StringRef contents, mlir::Location where);
  llvm::LogicalResult finish(mlir::Location where);

private:
  llvm::LogicalResult storeConstants(mlir::ModuleOp program, std::vector<StoredConstant> &constants,
                                     llvm::StringMap<unsigned> &ids);
  llvm::LogicalResult compile(mlir::ModuleOp program, const CpuTarget &target, bool reference,
                              llvm::ArrayRef<std::pair<mlir::func::FuncOp, EntryPlan>> entries,
                              llvm::StringRef codeFile);
  llvm::LogicalResult prepareFolder(mlir::Location where);

  std::string destination;
  llvm::json::Array parameters; // of the model
  llvm::json::Object training;  // what the program says of it
  TemporaryFolder folder;
  PackageOptions options;
  llvm::json::Array variants;
  std::vector<std::string> codeFiles, otherFiles;
  llvm::StringMap<StoredConstant> stored; // by the recipe's text
  uint64_t weightBytes = 0;
  bool hasGuards = false;
};

} // namespace deepstride

#endif
