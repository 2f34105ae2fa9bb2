// ds-report-fusion: how many kernels a program has and what they move, before and after fusion, and why each value
// between two kernels is in memory. Reads only.
//
//   report-fusion: 16 kernels before fusion, 5 kernels after fusion, 4 regions, 4 boundaries
//   bytes moved before fusion: ...
//   1 boundary, 'ds.linear' to 'ds.attention': reduction along another axis: ...
#include "passes/Report.h"
#include "passes/optimization/Boundaries.h"
#include "passes/optimization/Passes.h"

#include "dialects/ds/StridedWindow.h"
#include "dialects/ds/Traffic.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace deepstride {
#define GEN_PASS_DEF_REPORTFUSION
#include "passes/optimization/Passes.h.inc"
} // namespace deepstride

using namespace mlir;
using namespace deepstride;

namespace {

struct ReportFusion : deepstride::impl::ReportFusionBase<ReportFusion>, PassReport {
  using Base::Base;
  static constexpr int64_t assumedSize = 32; // of what is not known
  static constexpr size_t longestText = 240;

  void runOnOperation() override {
    if (stage != "before" && stage != "after") {
      getOperation().emitError("ds-report-fusion: stage is before or after, found '") << stage << "'";
      return signalPassFailure();
    }
    int64_t kernels = 0;
    SizeExpr bytes = 0;
    reasons.clear();
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (!function->hasAttr(ds::entryAttr))
        continue;
      auto analysis = SizeAnalysis::run(function);
      if (failed(analysis))
        return signalPassFailure();
      std::vector<KernelRegion> found = kernelsOf(function);
      kernels += static_cast<int64_t>(found.size());
      for (const KernelRegion &kernel : found)
        bytes = bytes + bytesOf(kernel, *analysis);
      if (stage == "after")
        explain(found, *analysis);
    }
    count("kernels " + stage + " fusion", kernels);
    note("bytes moved " + stage + " fusion: " + describe(bytes));
    if (stage == "before")
      return;
    count("regions", regions);
    count("boundaries", 0);
    for (const auto &[line, number] : reasons) {
      count("boundaries", number);
      note(std::to_string(number) + (number == 1 ? " boundary, " : " boundaries, ") + line);
    }
    regions = 0;
  }

  static SizeExpr bytesOf(const KernelRegion &kernel, const SizeAnalysis &analysis) {
    auto sizesOf = [&](Value value) { return analysis.facts(value).sizes; };
    ds::Traffic traffic = ds::trafficOf(kernel.body, kernel.operands, kernel.yielded, sizesOf);
    SizeExpr bytes = 0;
    auto add = [&](ArrayRef<Value> values, ArrayRef<std::optional<SizeExpr>> counts) {
      for (auto [value, part] : llvm::zip_equal(values, counts)) {
        const TensorFacts &facts = analysis.facts(value);
        bytes = bytes + part.value_or(product(facts.sizes)) * SizeExpr(ds::bytesOfElement(facts.elementType));
      }
    };
    add(kernel.operands, traffic.reads);
    add(kernel.yielded, traffic.writes);
    return bytes;
  }

  /// The number, or the expression beside what it is where all sizes that are not known are 32.
  static std::string describe(const SizeExpr &bytes) {
    if (auto known = bytes.constant())
      return std::to_string(*known);
    llvm::StringMap<SizeExpr> bindings;
    std::string sizes;
    for (const SizeAtom &symbol : bytes.symbols()) {
      bindings[symbol.kind() == SizeAtom::Kind::Symbol ? symbol.name() : symbol.text()] = assumedSize;
      sizes += (sizes.empty() ? "" : ", ") + symbol.text().str() + "=" + std::to_string(assumedSize);
    }
    std::string text = bytes.str();
    auto bound = SizeExpr::parse(text, &bindings);
    auto number = bound ? bound->constant() : std::nullopt;
    std::string value = number ? std::to_string(*number) + " at " + sizes : "not known before a run";
    return text.size() <= longestText ? value + ": " + text : value;
  }

  void explain(const std::vector<KernelRegion> &kernels, const SizeAnalysis &analysis) {
    llvm::DenseMap<Operation *, const KernelRegion *> byTop;
    llvm::DenseMap<Value, llvm::SmallSetVector<Operation *, 4>> readers;
    for (const KernelRegion &kernel : kernels) {
      byTop[kernel.top] = &kernel;
      regions += isa<ds::FusedOp>(kernel.top);
      for (Value operand : kernel.operands)
        readers[ds::throughReshapes(operand)].insert(kernel.top);
    }
    for (const KernelRegion &kernel : kernels)
      for (Value operand : kernel.operands) {
        Value value = ds::throughReshapes(operand);
        auto from = byTop.find(value.getDefiningOp());
        if (from == byTop.end())
          continue; // of the package, an input, or out of a loop
        Value yielded = from->second->yielded[cast<OpResult>(value).getResultNumber()];
        auto boundary = Boundary::of(*from->second, kernel, yielded, operand, readers[value].size());
        std::string reason = reasonOf(boundary, analysis, products);
        boundary.reader->emitRemark() << "in memory before '" << boundary.reader->getName().getStringRef()
                                      << "' reads it: " << reason;
        std::string line = boundary.describe() + ": " + reason;
        if (auto *known = llvm::find_if(reasons, [&](const auto &entry) { return entry.first == line; });
            known != reasons.end())
          ++known->second;
        else
          reasons.emplace_back(line, 1);
      }
  }

  SmallVector<std::pair<std::string, int64_t>> reasons;
  int64_t regions = 0;
};

} // namespace
