// A kernel is judged by the ops it holds: the schedule of its products, and whether it computes anything.
#include "tools/ds-opt/SlowKernels.h"

#include "dialects/ds/DsDialect.h"
#include "dialects/ds/Schedule.h"
#include "frontends/onnx/reader/Import.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace deepstride {

namespace {

struct Uses {
  unsigned launches = 0;
  std::optional<Location> first;
};

} // namespace

static bool isProduct(Operation *op) { return isa<ds::MatmulOp, ds::LinearOp, ds::ConvOp>(op); }

/// Ops whose results hold elements of their operands and nothing else.
static bool isMovement(Operation *op) {
  return isa<ds::TransposeOp, ds::ReshapeOp, ds::BroadcastOp, ds::SliceOp, ds::ConcatOp, ds::PadOp>(op);
}

/// What is slow about a kernel; empty where nothing is.
static std::string faultOf(ds::KernelOp kernel) {
  llvm::SmallSetVector<StringRef, 4> names;
  SmallVector<Operation *> ops;
  kernel.getBody().walk([&](Operation *op) {
    if (isa<ds::YieldOp, ds::ConstantOp>(op) || op->getNumRegions() > 0)
      return;
    ops.push_back(op);
    names.insert(op->getName().getStringRef());
  });
  for (Operation *op : ops)
    if (isProduct(op) && !ds::scheduleOf(op)) {
      std::string left, right;
      llvm::raw_string_ostream(left) << getElementTypeOrSelf(op->getOperand(0).getType());
      llvm::raw_string_ostream(right) << getElementTypeOrSelf(op->getOperand(1).getType());
      return (op->getName().getStringRef() + " of " + left + " by " + right + " in plain loops").str();
    }
  std::string list = llvm::join(names, ", ");
  if (llvm::all_of(ops, isMovement))
    return "only copies" + (list.empty() ? "" : " (" + list + ")");
  auto computes = [](Operation *op) { return isa<ds::PerElement>(op) && !isMovement(op); };
  if (llvm::count_if(ops, computes) == 1 && llvm::all_of(ops, llvm::IsaPred<ds::PerElement>))
    return "not fused with its neighbours (" + list + ")";
  return "";
}

static std::string nodeOf(Location where) {
  std::string text = onnx::describeLocation(where);
  size_t node = text.find(": '");
  return node == std::string::npos ? "" : text.substr(node + 2);
}

std::string SlowKernels::summary() const {
  return std::to_string(lines.size()) + " of " + std::to_string(kernels) + " kernels slow, in " +
         std::to_string(slowLaunches) + " of " + std::to_string(launches) + " launches";
}

SlowKernels findSlowKernels(ModuleOp program) {
  llvm::MapVector<StringRef, Uses> uses;
  program.walk([&](ds::LaunchOp launch) {
    Uses &use = uses[launch.getKernel()];
    ++use.launches;
    if (!use.first)
      use.first = launch.getLoc();
  });
  SlowKernels slow;
  for (auto &[name, use] : uses) {
    auto kernel = program.lookupSymbol<ds::KernelOp>(name);
    if (!kernel)
      continue;
    ++slow.kernels;
    slow.launches += use.launches;
    std::string fault = faultOf(kernel);
    if (fault.empty())
      continue;
    slow.slowLaunches += use.launches;
    std::string node = nodeOf(*use.first);
    slow.lines.push_back((name + ": " + fault + ", " + Twine(use.launches) +
                          (use.launches == 1 ? " launch" : " launches") +
                          (node.empty() ? "" : (use.launches == 1 ? ", of " : ", the first of ") + node))
                             .str());
  }
  return slow;
}

} // namespace deepstride
