// Moves every compute op and every ds.fused region of an entry function into a ds.kernel and leaves a ds.launch.
// Works on functions marked ds.entry whose sizes the size analysis can follow. Placing buffers is left to
// ds-plan-buffers, generating code to codegen.
//
//   %1 = ds.unary exp %0 : (tensor<?xf32>) -> tensor<?xf32>
// becomes
//   %1 = ds.launch @exp_0(%0) sizes ["n"] : (tensor<?xf32>) -> tensor<?xf32>
#include "dialects/ds/Recomputation.h"
#include "passes/Report.h"
#include "passes/memory/BufferCopies.h"
#include "passes/memory/NodeWork.h"
#include "passes/memory/Passes.h"
#include "passes/memory/States.h"

#include "dialects/ds/Reductions.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSet.h"

namespace deepstride {
#define GEN_PASS_DEF_OUTLINEKERNELS
#include "passes/memory/Passes.h.inc"
} // namespace deepstride

using namespace mlir;
using namespace deepstride;

namespace {

/// Whether the op gives a product's kernel a number of a parameter, as the scale of its weight is: with that inside,
/// each layer would have a kernel of its own.
bool readsParameter(Operation *user, ds::ConstantOp constant) {
  return constant->hasAttr(ds::valueNameAttr) && isa<ds::FusedOp>(user->getParentOp()) &&
         !user->getBlock()->getOps<ds::LinearOp>().empty() && ds::givesSharedNumber(user);
}

/// Splats that elementwise code turns into immediates; anything else is read from memory.
bool isEmbeddable(Value value, Operation *user) {
  auto constant = value.getDefiningOp<ds::ConstantOp>();
  return constant && !readsParameter(user, constant) && isa<SplatElementsAttr>(constant.getValue()) &&
         isElementwise(user);
}

class KernelOutliner {
public:
  KernelOutliner(ModuleOp module) : module(module), symbols(module) {}

  LogicalResult run(func::FuncOp function);
  unsigned kernelCount = 0, launchCount = 0, copyCount = 0;

private:
  void fillSplats(ds::ConstantOp constant);
  void storeConstants(func::FuncOp function);
  void countBeforeAllocating(func::FuncOp function);
  void recordConstraints(func::FuncOp function);
  void outline(Operation *op);
  ArrayAttr rename(ArrayRef<SizeExpr> sizes);
  FlatSymbolRefAttr shared(ds::KernelOp kernel, StringRef stem);

  ModuleOp module;
  SymbolTable symbols;
  SizeAnalysis analysis;
  llvm::StringMap<FlatSymbolRefAttr> byText;
  // Of the kernel being built: program expressions in order of first use; d<i> is the i-th.
  llvm::MapVector<llvm::StringRef, unsigned> sizeIds;
  std::vector<std::unique_ptr<std::string>> sizeTexts;
};

ArrayAttr KernelOutliner::rename(ArrayRef<SizeExpr> sizes) {
  SizeVector renamed;
  for (const SizeExpr &size : sizes) {
    if (size.constant()) {
      renamed.push_back(size);
      continue;
    }
    auto text = std::make_unique<std::string>(size.str());
    auto [entry, isNew] = sizeIds.insert({*text, static_cast<unsigned>(sizeIds.size())});
    if (isNew)
      sizeTexts.push_back(std::move(text));
    renamed.push_back(SizeExpr::symbol("d" + std::to_string(entry->second)));
  }
  return toAttribute(module.getContext(), renamed);
}

FlatSymbolRefAttr KernelOutliner::shared(ds::KernelOp kernel, StringRef stem) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  kernel.print(stream, OpPrintingFlags().useLocalScope());
  FlatSymbolRefAttr &symbol = byText[text];
  if (symbol) {
    kernel.erase();
    return symbol;
  }
  kernel.setSymName((stem + "_" + Twine(kernelCount++)).str());
  symbols.insert(kernel);
  symbol = FlatSymbolRefAttr::get(kernel);
  return symbol;
}

void KernelOutliner::outline(Operation *op) {
  MLIRContext *context = module.getContext();
  SmallVector<Operation *> body;
  SmallVector<Value> yielded;
  auto fused = dyn_cast<ds::FusedOp>(op);
  if (fused) {
    for (Operation &inner : fused.getBody().front().without_terminator())
      body.push_back(&inner);
    ValueRange values = fused.getBody().front().getTerminator()->getOperands();
    yielded.assign(values.begin(), values.end());
  } else {
    body.push_back(op);
    yielded.assign(op->result_begin(), op->result_end());
  }

  sizeIds.clear();
  sizeTexts.clear();
  llvm::SmallPtrSet<Operation *, 16> inside(body.begin(), body.end());
  llvm::SetVector<Value> inputs;
  auto isInput = [&](Value value, Operation *user) {
    return !inside.contains(value.getDefiningOp()) && !isEmbeddable(value, user);
  };
  for (Operation *inner : body)
    for (Value operand : inner->getOperands())
      if (isInput(operand, inner))
        inputs.insert(operand);
  for (Value value : yielded) // a region may yield a value from outside: a copy
    if (!inside.contains(value.getDefiningOp()))
      inputs.insert(value);

  SmallVector<Attribute> argumentSizes;
  for (Value input : inputs)
    argumentSizes.push_back(rename(analysis.facts(input).sizes));

  OpBuilder builder(context);
  Location unknown = builder.getUnknownLoc();
  auto kernel = ds::KernelOp::create(builder, unknown, "kernel", 0, builder.getArrayAttr(argumentSizes));
  Block *block = builder.createBlock(&kernel.getBody());
  IRMapping mapping;
  for (Value input : inputs)
    mapping.map(input, block->addArgument(input.getType(), unknown));
  for (Operation *inner : body) {
    for (Value operand : inner->getOperands())
      if (!mapping.contains(operand) && isEmbeddable(operand, inner)) {
        Operation *constant = builder.clone(*operand.getDefiningOp());
        constant->setLoc(unknown);
        constant->setAttrs(DictionaryAttr::get(context, {{"value", constant->getAttr("value")}}));
        mapping.map(operand, constant->getResult(0));
      }
    Operation *clone = builder.clone(*inner, mapping);
    clone->setLoc(unknown);
    clone->removeAttr(ds::valueNameAttr);
    clone->removeAttr(ds::recomputedAttr);
    for (StringRef name : cast<ds::SizedByAttributes>(clone).sizeAttributes())
      if (auto sizes = clone->getAttrOfType<ArrayAttr>(name))
        clone->setAttr(name, rename(*sizesFromAttribute(sizes)));
    SmallVector<Attribute> resultSizes;
    for (Value result : inner->getResults())
      resultSizes.push_back(rename(analysis.facts(result).sizes));
    clone->setAttr("result_sizes", builder.getArrayAttr(resultSizes));
    if (auto nonZero = dyn_cast<ds::NonZeroOp>(clone))
      nonZero.setCount("d");
  }
  SmallVector<Value> results;
  SmallVector<Attribute> launchSizes;
  for (Value value : yielded) {
    results.push_back(mapping.lookup(value));
    launchSizes.push_back(toAttribute(context, analysis.facts(value).sizes));
  }
  ds::YieldOp::create(builder, unknown, results);
  kernel.setSizeCount(sizeIds.size());
  SmallVector<Attribute> sizes;
  for (auto &[text, id] : sizeIds)
    sizes.push_back(builder.getStringAttr(text));

  StringRef stem = body.size() == 1 ? body.front()->getName().stripDialect() : body.empty() ? "copy" : "fused";
  if (body.size() == 1)
    if (auto unary = dyn_cast<ds::UnaryOp>(body.front()))
      stem = ds::stringifyUnaryKind(unary.getKind());
  if (body.size() == 1)
    if (auto binary = dyn_cast<ds::BinaryOp>(body.front()))
      stem = ds::stringifyBinaryKind(binary.getKind());
  std::string anchored; // a profile of kernels should say which of them are products
  for (Operation *inner : body)
    if (body.size() > 1 && isa<ds::Anchor, ds::AttentionOp, ds::AttentionGradientOp>(inner))
      stem = anchored = (inner->getName().stripDialect() + "_fused").str();
  FlatSymbolRefAttr symbol = shared(kernel, stem);

  ArrayAttr work = nodeWork(context, body.empty() ? ArrayRef(op) : ArrayRef(body), inputs.getArrayRef(), yielded,
                            [&](Value value) { return analysis.facts(value).sizes; });
  builder.setInsertionPoint(op);
  auto launch = ds::LaunchOp::create(builder, op->getLoc(), op->getResultTypes(), symbol, inputs.getArrayRef(),
                                     builder.getArrayAttr(sizes));
  launch->setAttr("result_sizes", builder.getArrayAttr(launchSizes));
  launch->setAttr("work", work);
  if (Attribute names = op->getAttr(ds::valueNameAttr))
    launch->setAttr(ds::valueNameAttr, names);
  SmallVector<int64_t> inPlace; // which input a result is, in part rewritten
  for (Value result : op->getResults()) {
    OpOperand *target = updateTarget(result);
    inPlace.push_back(target ? llvm::find(inputs, target->get()) - inputs.begin() : -1);
  }
  if (llvm::any_of(inPlace, [](int64_t input) { return input >= 0; }))
    launch->setAttr("in_place", builder.getDenseI64ArrayAttr(inPlace));
  for (auto [from, to] : llvm::zip_equal(op->getResults(), launch.getResults())) {
    analysis.set(to, analysis.facts(from));
    from.replaceAllUsesWith(to);
  }
  op->erase();
  ++launchCount;
}

/// Whether a use writes into the buffer of what it reads, so that a constant there would be copied first.
static bool isWrittenInto(OpOperand &use) {
  Operation *op = use.getOwner();
  return isa<scf::WhileOp>(op) || (isa<ds::ScatterNdOp, ds::ScatterElementsOp>(op) && use.getOperandNumber() == 0) ||
         (isa<ds::InsertOp>(op) && use.getOperandNumber() == 1);
}

/// Large constants of equal elements that are written into are made where they are needed, instead of being stored.
void KernelOutliner::fillSplats(ds::ConstantOp constant) {
  auto splat = dyn_cast<SplatElementsAttr>(constant.getValue());
  if (!splat ||
      splat.getNumElements() * ((splat.getElementType().getIntOrFloatBitWidth() + 7) / 8) <= ds::ConstantOp::byteLimit)
    return;
  for (OpOperand &use : llvm::make_early_inc_range(constant->getUses())) {
    if (!isWrittenInto(use))
      continue;
    OpBuilder builder(use.getOwner());
    auto scalar = RankedTensorType::get({}, splat.getElementType());
    Value one = ds::ConstantOp::create(builder, constant.getLoc(),
                                       DenseElementsAttr::get(scalar, splat.getSplatValue<Attribute>()));
    analysis.set(one, {splat.getElementType(), {}, std::nullopt});
    TensorFacts facts = analysis.facts(constant);
    Value filled = ds::BroadcastOp::create(builder, constant.getLoc(), constant.getType(), one,
                                           toAttribute(builder.getContext(), facts.sizes));
    analysis.set(filled, {facts.elementType, facts.sizes, std::nullopt});
    use.set(filled);
  }
}

void KernelOutliner::storeConstants(func::FuncOp function) {
  llvm::DenseMap<Attribute, FlatSymbolRefAttr> stored;
  function.walk([&](ds::ConstantOp constant) {
    bool allEmbedded =
        llvm::all_of(constant->getUsers(), [&](Operation *user) { return isEmbeddable(constant, user); });
    if (allEmbedded)
      return;
    OpBuilder builder(constant);
    FlatSymbolRefAttr &symbol = stored[constant.getValue()];
    if (!symbol) {
      OpBuilder top(module.getContext());
      auto recipe = ds::RecipeOp::create(top, constant.getLoc(), "constant");
      OpBuilder body = OpBuilder::atBlockEnd(&recipe.getBody().emplaceBlock());
      Value value = ds::ConstantOp::create(body, constant.getLoc(), constant.getValue());
      ds::YieldOp::create(body, constant.getLoc(), value);
      symbols.insert(recipe, module.getBody()->begin());
      symbol = FlatSymbolRefAttr::get(recipe);
    }
    auto weight = ds::WeightOp::create(builder, constant.getLoc(), constant.getType(), symbol);
    analysis.set(weight, analysis.facts(constant));
    constant->getResult(0).replaceUsesWithIf(weight,
                                             [&](OpOperand &use) { return !isEmbeddable(constant, use.getOwner()); });
  });
}

// The size of ds.nonzero's result is known only after counting: a count of its own comes first and defines the symbol.
void KernelOutliner::countBeforeAllocating(func::FuncOp function) {
  function.walk([&](ds::NonZeroOp op) {
    OpBuilder builder(op);
    auto append = [&](Operation *created) -> Value {
      LogicalResult known = analysis.visit(created, /*retype=*/true);
      assert(succeeded(known) && "ops on a legal operand are legal");
      (void)known;
      return created->getResult(0);
    };
    Type any = op.getInput().getType(), element = cast<RankedTensorType>(any).getElementType();
    Value flags = op.getInput();
    if (!element.isInteger(1)) {
      auto zero = DenseElementsAttr::get(RankedTensorType::get({}, element), builder.getZeroAttr(element));
      Value none = append(ds::ConstantOp::create(builder, op.getLoc(), zero));
      flags = append(ds::BinaryOp::create(builder, op.getLoc(), any, ds::BinaryKind::ne, flags, none));
    }
    Value ones = append(ds::CastOp::create(builder, op.getLoc(), any, flags, builder.getI64Type()));
    SmallVector<int64_t> axes;
    for (int64_t axis = 0; axis < cast<RankedTensorType>(any).getRank(); ++axis)
      axes.push_back(axis);
    Value count = append(ds::ReduceOp::create(builder, op.getLoc(), any, ds::ReduceKind::sum, ones, axes, false));
    ds::DefineOp::create(builder, op.getLoc(), op.getCount(), count);
  });
}

static std::string nameOf(Location location) {
  if (auto name = dyn_cast<NameLoc>(location))
    return name.getName().str();
  if (auto fused = dyn_cast<FusedLoc>(location))
    for (Location part : fused.getLocations())
      if (std::string name = nameOf(part); !name.empty())
        return name;
  return {};
}

// Kernels do not infer shapes: what the ops required of sizes is checked by the runtime before a call.
void KernelOutliner::recordConstraints(func::FuncOp function) {
  Builder builder(function.getContext());
  SmallVector<Attribute> list;
  llvm::StringSet<> seen;
  for (const SizeConstraint &constraint : analysis.constraints) {
    std::string lhs = constraint.lhs.str(), rhs = constraint.rhs.str();
    if (constraint.lhs == constraint.rhs) // of a branch or a loop that is never run
      continue;
    if (!seen.insert((toString(constraint.relation) + "|" + lhs + "|" + rhs).str()).second)
      continue;
    NamedAttrList fields;
    fields.append("relation", builder.getStringAttr(toString(constraint.relation)));
    fields.append("lhs", builder.getStringAttr(lhs));
    fields.append("rhs", builder.getStringAttr(rhs));
    fields.append("where", builder.getStringAttr(nameOf(constraint.where)));
    list.push_back(fields.getDictionary(function.getContext()));
  }
  if (!list.empty())
    function->setAttr("ds.constraints", builder.getArrayAttr(list));
}

/// Whether a value can cross the border of a package.
static bool isPackageTensor(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  Type element = tensor ? tensor.getElementType() : Type();
  if (auto integer = dyn_cast_if_present<IntegerType>(element))
    return integer.isInteger(1) || llvm::is_contained({2u, 4u, 8u, 16u, 32u, 64u}, integer.getWidth());
  return isa_and_present<Float16Type, BFloat16Type, Float32Type, Float64Type, Float8E4M3FNType, Float8E4M3FNUZType,
                         Float8E5M2Type, Float8E5M2FNUZType, Float8E8M0FNUType, Float4E2M1FNType>(element);
}

LogicalResult KernelOutliner::run(func::FuncOp function) {
  if (!llvm::all_of(function.getArgumentTypes(), isPackageTensor) ||
      !llvm::all_of(function.getResultTypes(), isPackageTensor))
    return function.emitOpError("expects arguments and results that are ranked tensors of i1, 2- to 64-bit integers, "
                                "or floats of 16 to 64 bits or the standard's narrow formats");
  auto result = SizeAnalysis::run(function);
  if (failed(result))
    return failure();
  analysis = std::move(*result);
  if (failed(checkStates(function, analysis)))
    return failure();
  recordConstraints(function);
  function.walk([](ds::RequireOp condition) { condition.erase(); });
  countBeforeAllocating(function);
  SmallVector<ds::ConstantOp> constants;
  function.walk([&](ds::ConstantOp constant) { constants.push_back(constant); });
  llvm::for_each(constants, [&](ds::ConstantOp constant) { fillSplats(constant); });
  copyCount += insertCopies(function, analysis);
  storeConstants(function);
  SmallVector<Operation *> work;
  function.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (isa<ds::FusedOp>(op)) {
      work.push_back(op);
      return WalkResult::skip();
    }
    if (isa<ds::ResultInference>(op) && !isa<ds::ConstantOp, ds::EmptyOp, ds::ReshapeOp>(op))
      work.push_back(op);
    return WalkResult::advance();
  });
  for (Operation *op : work)
    outline(op);
  function.walk([](Operation *op) {
    if (isa<ds::ConstantOp, ds::EmptyOp>(op) && op->use_empty())
      op->erase();
  });
  return success();
}

struct OutlineKernels : deepstride::impl::OutlineKernelsBase<OutlineKernels>, PassReport {
  void runOnOperation() override {
    KernelOutliner outliner(getOperation());
    for (auto function : llvm::to_vector(getOperation().getOps<func::FuncOp>()))
      if (function->hasAttr(ds::entryAttr) && failed(outliner.run(function)))
        return signalPassFailure();
    count("kernels", outliner.kernelCount);
    count("launches", outliner.launchCount);
    count("copies", outliner.copyCount);
  }
};

} // namespace
