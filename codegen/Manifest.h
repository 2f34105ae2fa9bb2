// manifest.json of docs/package-format.md.
#ifndef DEEPSTRIDE_CODEGEN_MANIFEST_H
#define DEEPSTRIDE_CODEGEN_MANIFEST_H

#include "codegen/EntryPlan.h"
#include "codegen/cpu/Target.h"
#include "llvm/Support/JSON.h"

namespace deepstride {

/// A stored range of weights.bin.
struct StoredConstant {
  std::string name, type, layout;
  uint64_t offset = 0, bytes = 0;
  std::vector<int64_t> shape;
};

/// Of ds.units; says in `unitIds` the number of each unit. `constantIds` gives the number of each recipe in the
/// variant's list of constants.
llvm::json::Array unitsManifest(mlir::ArrayAttr units, const llvm::StringMap<unsigned> &constantIds,
                                llvm::StringMap<unsigned> &unitIds);
llvm::json::Object entryManifest(const EntryPlan &plan, const llvm::StringMap<unsigned> &constantIds,
                                 const llvm::StringMap<unsigned> &unitIds, llvm::StringRef arithmetic);
llvm::json::Object variantManifest(const CpuTarget &target, llvm::StringRef codeFile,
                                   llvm::ArrayRef<StoredConstant> constants, llvm::json::Array units,
                                   llvm::json::Array entries);

} // namespace deepstride

#endif
