// A pass plugin: counts the ds ops of each function in a remark. Shows what a pass needs that lives outside of the
// repository; `crash-on-demand` beside it lets tests see what ds-opt does when a pass crashes.
#include "dialects/ds/DsDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Tools/Plugins/PassPlugin.h"

using namespace mlir;

namespace {

struct CountOps : PassWrapper<CountOps, OperationPass<func::FuncOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(CountOps)
  StringRef getArgument() const override { return "count-ds-ops"; }
  StringRef getDescription() const override { return "count the ds ops of a function"; }
  void runOnOperation() override {
    unsigned count = 0, transposes = 0;
    getOperation().walk([&](Operation *op) {
      count += op->getName().getDialectNamespace() == "ds";
      transposes += isa<deepstride::ds::TransposeOp>(op);
    });
    getOperation().emitRemark() << count << " ds ops, " << transposes << " transposes";
  }
};

struct CrashOnDemand : PassWrapper<CrashOnDemand, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(CrashOnDemand)
  StringRef getArgument() const override { return "crash-on-demand"; }
  StringRef getDescription() const override { return "abort"; }
  void runOnOperation() override { abort(); }
};

/// A wrong rewrite, for the test of --verify-numerics.
struct BreakNumerics : PassWrapper<BreakNumerics, OperationPass<func::FuncOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(BreakNumerics)
  StringRef getArgument() const override { return "break-numerics"; }
  StringRef getDescription() const override { return "turn exp into tanh"; }
  void runOnOperation() override {
    getOperation().walk([&](deepstride::ds::UnaryOp op) {
      if (op.getKind() == deepstride::ds::UnaryKind::exp)
        op.setKind(deepstride::ds::UnaryKind::tanh);
    });
  }
};

/// A size that is only sometimes the right one, for the test of the sizes that --verify-numerics draws.
struct BreakSizes : PassWrapper<BreakSizes, OperationPass<func::FuncOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(BreakSizes)
  BreakSizes() = default;
  BreakSizes(const BreakSizes &other) : PassWrapper(other) {}
  StringRef getArgument() const override { return "break-sizes"; }
  StringRef getDescription() const override { return "write another value into all ds.shape"; }
  void runOnOperation() override {
    Builder builder(&getContext());
    getOperation().walk([&](deepstride::ds::ShapeOp op) { op.setValuesAttr(builder.getStrArrayAttr({size})); });
  }
  Option<std::string> size{*this, "size", llvm::cl::desc("the size to write")};
};

} // namespace

extern "C" LLVM_ATTRIBUTE_WEAK PassPluginLibraryInfo mlirGetPassPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "ds-test-plugin", LLVM_VERSION_STRING, [] {
            PassRegistration<CountOps>();
            PassRegistration<CrashOnDemand>();
            PassRegistration<BreakNumerics>();
            PassRegistration<BreakSizes>();
          }};
}
