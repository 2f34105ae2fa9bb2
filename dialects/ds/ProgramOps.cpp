// Verifiers of fused regions, kernels, launches and sizes.
#include "dialects/ds/DsDialect.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace deepstride;
using namespace deepstride::ds;

LogicalResult FusedOp::verify() {
  auto yield = dyn_cast<YieldOp>(getBody().front().back());
  if (!yield || yield.getOperandTypes() != getResultTypes())
    return emitOpError("C1: expects the region to yield the result types");
  for (Operation &op : getBody().front().without_terminator())
    if (!isPure(&op))
      return op.emitOpError("C2: is not pure and cannot be inside ds.fused");
  return success();
}

LogicalResult DefineOp::verify() {
  auto type = dyn_cast<RankedTensorType>(getValue().getType());
  auto isCount = [](Type element) { return element.isSignlessInteger(64) || element.isSignlessInteger(1); };
  if (type && (!isCount(type.getElementType()) || !type.hasStaticShape() || type.getNumElements() != 1))
    return emitOpError("C1: expects one i64 or i1 value, found ") << type;
  if (getSymbol().empty())
    return emitOpError("C2: expects a symbol name");
  return success();
}

// The relations in their text form; two words each.
static constexpr std::pair<StringRef, StringRef> relationTexts[] = {
    {"equal", "to"}, {"broadcast", "with"}, {"at", "least"}};

ParseResult ds::parseSizeRelation(OpAsmParser &parser, SizeRelationAttr &relation) {
  StringRef word;
  llvm::SMLoc where = parser.getCurrentLocation();
  if (failed(parser.parseKeyword(&word)))
    return failure();
  for (auto [number, text] : llvm::enumerate(relationTexts))
    if (word == text.first) {
      relation = SizeRelationAttr::get(parser.getContext(), static_cast<SizeRelation>(number));
      return parser.parseKeyword(text.second);
    }
  return parser.emitError(where) << "expected 'equal to', 'broadcast with' or 'at least', found '" << word << "'";
}

void ds::printSizeRelation(OpAsmPrinter &printer, Operation *, SizeRelationAttr relation) {
  auto [first, second] = relationTexts[static_cast<size_t>(relation.getValue())];
  printer << first << ' ' << second;
}

SizeConstraint RequireOp::getConstraint() {
  SizeConstraint::Relation relation = SizeConstraint::Relation::AtLeast;
  switch (getRelation()) {
  case SizeRelation::equal: relation = SizeConstraint::Relation::Equal; break;
  case SizeRelation::broadcast: relation = SizeConstraint::Relation::Broadcast; break;
  case SizeRelation::at_least: break;
  }
  return {relation, *sizeFromAttribute(getLhs()), *sizeFromAttribute(getRhs()), getLoc()};
}

LogicalResult RequireOp::verify() {
  for (Attribute size : {getLhs(), getRhs()})
    if (!sizeFromAttribute(size))
      return emitOpError("C1: expects size expressions, found ") << size;
  return success();
}

LogicalResult RequireOp::canonicalize(RequireOp op, PatternRewriter &rewriter) {
  Inference turn(op, {}, /*quiet=*/true);
  if (failed(turn.require(op.getConstraint())) || !turn.constraints.empty())
    return rewriter.notifyMatchFailure(op, "only a run can tell");
  rewriter.eraseOp(op);
  return success();
}

LogicalResult SizeOp::verify() {
  if (!sizeFromAttribute(getValue()))
    return emitOpError("C1: expects a size expression, found ") << getValue();
  return success();
}

LogicalResult KernelOp::verify() {
  Block &block = getBody().front();
  if (getArgumentSizes().size() != block.getNumArguments())
    return emitOpError("C1: expects one size list per argument");
  for (auto [argument, sizes] : llvm::zip_equal(block.getArguments(), getArgumentSizes())) {
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    auto list = dyn_cast<ArrayAttr>(sizes);
    if (!type || !list || static_cast<int64_t>(list.size()) != type.getRank() || !sizesFromAttribute(list))
      return emitOpError("C1: expects a size list of its rank for argument ") << argument.getArgNumber();
  }
  if (block.empty() || !isa<YieldOp>(block.back()))
    return emitOpError("C2: expects the region to end in ds.yield");
  return success();
}

LogicalResult LaunchOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto kernel = symbols.lookupNearestSymbolFrom<KernelOp>(*this, getKernelAttr());
  if (!kernel)
    return emitOpError("C1: '") << getKernel() << "' is no ds.kernel";
  Block &block = kernel.getBody().front();
  if (block.getArgumentTypes() != getOperandTypes() || block.back().getOperandTypes() != getResultTypes())
    return emitOpError("C2: expects the operand and result types of the kernel");
  if (static_cast<int64_t>(getSizes().size()) != static_cast<int64_t>(kernel.getSizeCount()) ||
      !sizesFromAttribute(getSizes()))
    return emitOpError("C3: expects ") << kernel.getSizeCount() << " size expressions";
  return success();
}
