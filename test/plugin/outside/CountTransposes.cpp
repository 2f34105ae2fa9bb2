// A pass out of tree: tells how many transposes a function has.
#include "dialects/ds/DsDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Tools/Plugins/PassPlugin.h"
#include "passes/Passes.h"

namespace {

struct CountTransposes : mlir::PassWrapper<CountTransposes, mlir::OperationPass<mlir::func::FuncOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(CountTransposes)
  llvm::StringRef getArgument() const override { return "count-transposes"; }
  llvm::StringRef getDescription() const override { return "count the transposes of a function"; }
  void runOnOperation() override {
    unsigned count = 0;
    getOperation().walk([&](deepstride::ds::TransposeOp) { ++count; });
    getOperation().emitRemark() << count << " transposes";
  }
};

} // namespace

extern "C" mlir::PassPluginLibraryInfo mlirGetPassPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "count-transposes", LLVM_VERSION_STRING,
          [] { mlir::PassRegistration<CountTransposes>(); }};
}
