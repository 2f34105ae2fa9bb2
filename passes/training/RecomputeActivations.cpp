// ds-recompute-activations: trades time for memory (Chen et al., 1604.06174). Works on the entry `micro` that
// ds-build-training-step makes, once derivatives are ops and before anything is fused.
//
//   %a = gelu %z                                    %a = gelu %z
//   ...                                        =>   ...
//   %dw = matmul %a, %dy  (the way back)            %b = gelu %z {ds.recomputed}
//                                                   %dw = matmul %b, %dy
#include "dialects/ds/Recomputation.h"
#include "passes/Report.h"
#include "passes/training/Activations.h"
#include "passes/training/Passes.h"

using namespace mlir;

namespace deepstride {

#define GEN_PASS_DEF_RECOMPUTEACTIVATIONS
#include "passes/training/Passes.h.inc"

namespace {

struct Candidate {
  size_t scope;
  Value value;
  double bytes;
};

/// Orders activations, and finds what has to be computed again for the first of them.
class Choice {
public:
  Choice(std::vector<ActivationScope> &scopes, const SizeAnalysis &analysis, const std::map<std::string, int64_t> &dims)
      : scopes(scopes), analysis(analysis), dims(dims), dropped(scopes.size()), again(scopes.size()) {
    for (auto [number, scope] : llvm::enumerate(scopes)) {
      scope.findRead();
      for (Value value : scope.activations())
        if (scope.needed(value, {}, {}))
          candidates.push_back({number, value, bytesOf(value, analysis, dims)});
    }
  }

  int64_t count() const { return static_cast<int64_t>(candidates.size()); }
  /// The activation that saves most for what it adds, given those that were taken; false where none is left.
  bool take();
  const llvm::DenseSet<Value> &droppedOf(size_t scope) const { return dropped[scope]; }
  Value lastTaken() const { return last; }

private:
  /// Sizes take long to evaluate, and every choice weighs every activation.
  double costOnce(Operation *op) {
    auto [found, isNew] = costs.try_emplace(op);
    if (isNew)
      found->second = costOf(op, analysis, dims);
    return found->second;
  }

  std::vector<ActivationScope> &scopes;
  const SizeAnalysis &analysis;
  const std::map<std::string, int64_t> &dims;
  std::vector<Candidate> candidates;
  std::vector<llvm::DenseSet<Value>> dropped;
  std::vector<llvm::DenseSet<Operation *>> again;
  llvm::DenseMap<Operation *, double> costs;
  Value last;
};

bool Choice::take() {
  std::optional<size_t> best;
  llvm::SetVector<Operation *> bestOps;
  double bestRatio = 0;
  for (auto [number, candidate] : llvm::enumerate(candidates)) {
    if (dropped[candidate.scope].contains(candidate.value))
      continue;
    auto ops = scopes[candidate.scope].needed(candidate.value, dropped[candidate.scope], again[candidate.scope]);
    if (!ops)
      continue;
    double cost = 1;
    for (Operation *op : *ops)
      cost += costOnce(op);
    if (double ratio = candidate.bytes / cost; ratio > bestRatio) {
      best = number;
      bestRatio = ratio;
      bestOps = std::move(*ops);
    }
  }
  if (!best)
    return false;
  const Candidate &taken = candidates[*best];
  dropped[taken.scope].insert(taken.value);
  again[taken.scope].insert_range(bestOps);
  last = taken.value;
  return true;
}

struct RecomputeActivations : impl::RecomputeActivationsBase<RecomputeActivations>, PassReport {
  using Base::Base;

  void runOnOperation() override {
    auto micro = getOperation().lookupSymbol<func::FuncOp>("micro");
    if (!micro) {
      getOperation().emitError() << "expected an entry 'micro', as training makes it, found none";
      return signalPassFailure();
    }
    std::map<std::string, int64_t> sizes;
    for (const std::string &dim : dims) {
      auto [name, value] = StringRef(dim).split('=');
      int64_t size = 0;
      if (name.empty() || value.getAsInteger(10, size) || size < 0) {
        micro.emitError() << "dims: expected name=value, found '" << dim << "'";
        return signalPassFailure();
      }
      sizes[name.str()] = size;
    }
    auto analysis = SizeAnalysis::run(micro);
    if (failed(analysis))
      return signalPassFailure();
    std::vector<ActivationScope> scopes = activationScopes(micro);
    Choice choice(scopes, *analysis, sizes);
    int64_t taken = 0;
    while ((values < 0 || taken < values) && choice.take()) {
      choice.lastTaken().getDefiningOp()->emitRemark() << "computed again on the way back";
      ++taken;
    }
    int64_t ops = 0;
    for (auto [number, scope] : llvm::enumerate(scopes))
      ops += scope.recompute(choice.droppedOf(number), *analysis);
    getOperation()->setAttr(ds::activationsAttr, Builder(&getContext()).getI64IntegerAttr(choice.count()));
    count("activations", choice.count());
    count("computed again", taken);
    count("ops", ops);
  }
};

} // namespace

} // namespace deepstride
