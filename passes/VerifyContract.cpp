// ds-verify-contract: checks what a phase promises. It runs on the module at a phase's end and reports every violation,
// naming op, location and rule. What single ops promise is in their verifiers; this is about the program as a whole.
#include "dialects/dist/DistDialect.h"
#include "dialects/ds/DsDialect.h"
#include "dialects/ds/HeadRows.h"
#include "dialects/ds/Norms.h"
#include "dialects/ds/Reductions.h"
#include "dialects/ds/SoftmaxProducts.h"
#include "dialects/ds/TileAccess.h"
#include "dialects/train/TrainDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "passes/Passes.h"
#include "passes/Phases.h"
#include "passes/UniformValues.h"
#include "passes/graph/ShapeArithmetic.h"
#include "passes/memory/VerifyPlan.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace deepstride {

#define GEN_PASS_DEF_VERIFYCONTRACT
#include "passes/Passes.h.inc"

namespace {

/// Counts violations; a program with one mistake often has thousands of it, so the rest is only counted.
class Violations {
public:
  explicit Violations(Phase phase) : phase(phaseInfo(phase).name) {}

  void add(Operation *op, const Twine &rule) {
    if (++count > limit)
      return;
    op->emitError() << "'" << op->getName() << "' violates the contract of phase '" << phase << "': " << rule;
  }
  void finish(ModuleOp module) {
    if (count > limit)
      module.emitError() << count - limit << " more violations of the contract of phase '" << phase << "'";
  }
  bool any() const { return count > 0; }

private:
  static constexpr int limit = 20;
  StringRef phase;
  int count = 0;
};

} // namespace

static bool isOnnx(Attribute attribute) { return attribute.getDialect().getNamespace() == "onnx"; }
static bool isOnnx(Type type) {
  if (auto shaped = dyn_cast<ShapedType>(type))
    return isOnnx(shaped.getElementType());
  return type.getDialect().getNamespace() == "onnx";
}

/// A size symbol has one meaning: what was sized by one definition would be read with the size of the other.
static void verifySymbols(func::FuncOp function, Violations &violations) {
  llvm::StringSet<> known;
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    if (auto sizes = function.getArgAttrOfType<ArrayAttr>(i, ds::dimsAttr))
      for (const SizeExpr &size : sizesFromAttribute(sizes).value_or(SizeVector()))
        for (const SizeAtom &symbol : size.symbols())
          if (symbol.kind() == SizeAtom::Kind::Symbol)
            known.insert(symbol.name());
  function.walk([&](Operation *op) {
    auto define = dyn_cast<ds::DefineOp>(op);
    auto nonZero = dyn_cast<ds::NonZeroOp>(op);
    if (!define && !nonZero)
      return;
    StringRef symbol = define ? define.getSymbol() : nonZero.getCount();
    if (!known.insert(symbol).second)
      violations.add(op, "size symbols are defined once, found '" + symbol + "' again");
  });
}

static void verifyImport(ModuleOp module, Violations &violations) {
  for (auto function : module.getOps<func::FuncOp>())
    verifySymbols(function, violations);
  module.walk([&](Operation *op) {
    if (op->getName().getDialectNamespace() == "onnx")
      return violations.add(op, "no onnx op is left");
    if (llvm::any_of(op->getAttrs(), [](NamedAttribute named) {
          return named.getName().getValue().starts_with("onnx.") || isOnnx(named.getValue());
        }))
      violations.add(op, "no onnx attribute is left");
    for (Type type : op->getResultTypes()) {
      if (isOnnx(type))
        violations.add(op, "no onnx type is left");
      if (isa<TensorType>(type) && !isa<RankedTensorType>(type))
        violations.add(op, "tensors are ranked");
    }
    if (isa<UnknownLoc>(op->getLoc()) && isa<ds::ResultInference>(op))
      violations.add(op, "every op has the location of its ONNX node");
  });
}

static void verifyGraph(ModuleOp module, Violations &violations) {
  for (auto function : module.getOps<func::FuncOp>()) {
    if (function.isExternal())
      continue;
    auto analysis = SizeAnalysis::run(function);
    if (failed(analysis)) {
      violations.add(function, "sizes can be inferred");
      continue;
    }
    function.walk([&](Operation *op) {
      if (findKnownValue(op, *analysis))
        violations.add(op, "no foldable shape arithmetic");
    });
  }
}

static void verifyTraining(ModuleOp module, Violations &violations) {
  module.walk([&](train::GradientOp gradient) { violations.add(gradient, "no train.gradient is left"); });
  module.walk([&](ds::RunningStatisticOp op) { violations.add(op, "no ds.running_statistic is left"); });
}

/// Whether the results are read inside of branches that the condition takes.
static bool areReadUnder(Value condition, Operation *wait) {
  return llvm::all_of(wait->getUsers(), [&](Operation *user) {
    for (Operation *inner = user, *parent = user->getParentOp(); !isa<FunctionOpInterface>(parent);
         inner = parent, parent = parent->getParentOp())
      if (auto branch = dyn_cast<scf::IfOp>(parent); branch && inner->getBlock() == branch.thenBlock())
        if (auto read = branch.getCondition().getDefiningOp<tensor::ExtractOp>(); read && read.getTensor() == condition)
          return true;
    return false;
  });
}

/// Ranks run the same program, so collectives meet in order as long as none depends on a rank's own data.
static void verifyDistribution(ModuleOp module, Violations &violations) {
  UniformValues uniform;
  llvm::StringMap<Operation *> sites;
  module.walk([&](dist::StartInterface start) {
    auto [previous, isNew] = sites.try_emplace(start.siteName(), start);
    if (!isNew)
      violations.add(start, "collective sites are unique, found '" + start.siteName() + "' twice");
    if (Value condition = start.conditionValue()) {
      if (!uniform.contains(condition))
        violations.add(start, "no condition that ranks might be given differently");
      if (isa<dist::AllGatherStartOp>(start) && !areReadUnder(condition, start.waitOp()))
        violations.add(start, "what is gathered under a condition is read under that condition");
    }
    for (Operation *parent = start->getParentOp(); parent && !isa<FunctionOpInterface>(parent);
         parent = parent->getParentOp()) {
      auto branch = dyn_cast<scf::IfOp>(parent);
      if (isa<scf::WhileOp, scf::IndexSwitchOp>(parent) || (branch && !uniform.contains(branch.getCondition())))
        return violations.add(start, "no collective under a branch or in a loop that ranks might take differently");
    }
  });
}

/// Whether the kernel of an op takes the extremes of rows that it makes: of a norm, of an attention, of a product and
/// of what follows it.
static bool takesExtremes(Operation *op) {
  return ds::isNorm(op) || isa<ds::AttentionOp>(op) ||
         (isa<ds::LinearOp, ds::PerElement>(op) && !op->getBlock()->getOps<ds::LinearOp>().empty());
}

/// Whether window ops show the value of what comes from outside of its region.
static bool showsMemory(Value value) {
  Block *body = value.getParentBlock();
  while (value.getParentBlock() == body && ds::isWindowOp(value.getDefiningOp()))
    value = value.getDefiningOp()->getOperand(0);
  return value.getParentBlock() != body;
}

static void verifyOptimization(ModuleOp module, Violations &violations) {
  module.walk([&](ds::FusedOp fused) {
    unsigned anchors = 0;
    Block &body = fused.getBody().front();
    // Attention and what moves elements read through any strides.
    bool hasAttention =
        llvm::any_of(body.without_terminator(), llvm::IsaPred<ds::AttentionOp, ds::AttentionGradientOp>);
    bool readsWindows = hasAttention || llvm::all_of(body.without_terminator(), [](Operation &op) {
                          return ds::isWindowOp(&op) || ds::readsWindows(&op);
                        });
    auto ops = llvm::map_to_vector(body.without_terminator(), [](Operation &op) { return &op; });
    bool hasSoftmax = ds::SoftmaxProducts::of(ops).has_value();
    auto reductions = body.getOps<ds::ReduceOp>();
    ds::ReduceOp scan = reductions.empty() ? ds::ReduceOp() : *reductions.begin();
    bool hasProduct = !body.getOps<ds::LinearOp>().empty();
    bool areNumbers = llvm::all_of(body.without_terminator(), [](Operation &op) { return ds::givesSharedNumber(&op); });
    bool isScan = scan && (ds::reducesWhole(scan) || // else nothing follows
                           llvm::all_of(body.without_terminator(), llvm::IsaPred<ds::ReduceOp>));
    for (Operation &op : body.without_terminator()) {
      if (hasSoftmax && (isa<ds::MatmulOp, ds::SoftmaxOp>(op) || ds::joinsAttention(&op)))
        continue;
      if ((hasAttention && ds::joinsAttention(&op)) || ds::preparesFilters(&op))
        continue;
      if (areNumbers || (hasProduct && ds::givesSharedNumber(&op)))
        continue;
      if (Value rows = ds::extremesOf(&op); ds::showsParts(&op) || (rows && takesExtremes(rows.getDefiningOp())))
        continue;
      if (auto reduce = dyn_cast<ds::ReduceOp>(op); reduce && isScan) {
        if ((reduce != scan && !ds::shareScan(scan, reduce)) || reduce.getInput().getParentBlock() == &body)
          violations.add(&op, "reductions of a fused region have one input and the same axes");
        continue;
      }
      if ((isa<ds::Anchor>(op) || ds::readsRows(&op)) && llvm::any_of(op.getOperands().drop_front(), [&](Value value) {
            return value.getParentBlock() == &body && !value.getDefiningOp<ds::ConstantOp>() &&
                   !ds::preparesFilters(value.getDefiningOp());
          }))
        violations.add(&op, "what an anchor reads beside its rows comes from outside of a fused region");
      bool endsRows = ds::readsRows(&op) &&
                      llvm::all_of(llvm::make_range(std::next(op.getIterator()), body.without_terminator().end()),
                                   [&](Operation &behind) { return ds::followsRows(&behind, &op); });
      if (isa<ds::Anchor, ds::AttentionOp, ds::AttentionGradientOp>(op) || (readsWindows && ds::readsWindows(&op)) ||
          endsRows) {
        auto linear = dyn_cast<ds::LinearOp>(op);
        auto firsts = body.getOps<ds::LinearOp>();
        bool isPair = linear && linear != *firsts.begin() && ds::arePair(*firsts.begin(), linear);
        if (linear && ds::areBeside(*firsts.begin(), linear, body.getTerminator()->getOperands()))
          continue;
        if (++anchors > (isPair ? 2 : 1))
          violations.add(&op, "a fused region has at most one anchor");
        continue;
      }
      if (readsWindows && ds::isWindowOp(&op))
        continue;
      if ((ds::isNorm(&op) || isa<ds::QuantizeRowsOp>(op)) && llvm::any_of(op.getUsers(), [&](Operation *user) {
            return (isa<ds::LinearOp>(user) || ds::preparesRows(user)) && user->getBlock() == &body;
          }))
        continue; // its prologue
      if (ds::insertedResult(&op))
        continue; // of what it computes
      if (isa<ds::ReshapeOp>(op) && (showsMemory(op.getResult(0)) || llvm::all_of(op.getUsers(), ds::insertedResult)))
        continue;
      auto element = dyn_cast<ds::PerElement>(op);
      if (!element || !element.joinsRegions()) {
        violations.add(
            &op, "fused regions hold elementwise ops, slices, broadcasts and transposes only, beside an anchor and "
                 "what is computed before it and extremes of its rows, before a norm or softmax, or views "
                 "only, or reductions of one input");
        continue;
      }
      auto scanned = element.scannedOperand();
      Operation *source = scanned ? op.getOperand(*scanned).getDefiningOp() : nullptr;
      if (source && source->getBlock() == op.getBlock() && !isa<ds::ConstantOp>(source))
        violations.add(&op, "what is read as a whole first, as divisors are, comes from outside of a fused region");
    }
  });
}

static void verifyMemory(ModuleOp module, Violations &violations) {
  for (auto function : module.getOps<func::FuncOp>()) {
    function.walk([&](Operation *op) {
      bool isNone = isa<ds::ReshapeOp, ds::ConstantOp, ds::EmptyOp>(op);
      if (isa<ds::FusedOp>(op) || (isa<ds::ResultInference>(op) && !isNone))
        violations.add(op, "every compute op is in a kernel");
    });
    if (function->hasAttr(ds::entryAttr))
      verifyPlan(function, [&](Operation *op, const Twine &rule) { violations.add(op, rule); });
  }
}

namespace {
struct VerifyContract : impl::VerifyContractBase<VerifyContract> {
  using VerifyContractBase::VerifyContractBase;

  void runOnOperation() override {
    auto known = parsePhase(phase);
    if (!known) {
      getOperation().emitError() << "ds-verify-contract expects a phase (" << phaseNames() << "), found '" << phase
                                 << "'";
      return signalPassFailure();
    }
    Violations violations(*known);
    switch (*known) {
    case Phase::Import: verifyImport(getOperation(), violations); break;
    case Phase::Graph: verifyGraph(getOperation(), violations); break;
    case Phase::Training: verifyTraining(getOperation(), violations); break;
    case Phase::Distribution: verifyDistribution(getOperation(), violations); break;
    case Phase::Optimization: verifyOptimization(getOperation(), violations); break;
    case Phase::Memory: verifyMemory(getOperation(), violations); break;
    case Phase::Codegen: // its product is a package, checked by checksums
      break;
    }
    violations.finish(getOperation());
    if (violations.any())
      return signalPassFailure();
    markAllAnalysesPreserved();
  }
};
} // namespace

} // namespace deepstride
