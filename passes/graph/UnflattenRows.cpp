// ds-unflatten-rows: lets products read rows as they lie. Exporters write a product of [batch, length, K] as one of
// [batch * length, K] between two reshapes, and what stands around these has other sizes than the product, so that
// neither a norm before it nor an activation or a residual behind it could share its kernel. A reshape before a product
// goes behind it, and on through elementwise ops, until one that follows takes it in; where it does not keep rows, as
// behind the heads of an attention, one behind the product goes before it.
//
//   ds.reshape (ds.gelu (ds.linear (ds.reshape %x)))    =>    ds.gelu (ds.linear %x)
#include "passes/Report.h"
#include "passes/graph/Matching.h"
#include "passes/graph/Passes.h"

#include "dialects/ds/DsBuilder.h"
#include "dialects/ds/Requirements.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace deepstride {

#define GEN_PASS_DEF_UNFLATTENROWS
#include "passes/graph/Passes.h.inc"

namespace {
struct UnflattenRows : impl::UnflattenRowsBase<UnflattenRows>, PassReport {
  void runOnOperation() override {
    count("products", 0);
    SmallVector<ds::LinearOp> ops;
    getOperation().walk([&](ds::LinearOp op) { ops.push_back(op); });
    auto found = SizeAnalysis::run(getOperation());
    if (failed(found))
      return signalPassFailure();
    analysis = &*found;
    for (ds::LinearOp op : ops) {
      auto reshape = op.getInput().getDefiningOp<ds::ReshapeOp>();
      if (!reshape || op.getPanel() || op.getTransposed())
        continue;
      const SizeVector &rows = sizesOf(reshape.getInput()), &flat = sizesOf(op.getInput());
      if (!rows.empty() && rows.back() == flat.back())
        sink(op, reshape.getInput());
      else
        hoist(op, reshape);
    }
    if (failed(eraseReplacedOps(getOperation())))
      return signalPassFailure();
  }

private:
  const SizeVector &sizesOf(Value value) { return analysis->facts(value).sizes; }

  DsBuilder builderAt(Operation *op) {
    DsBuilder b(OpBuilder(op), *analysis);
    b.setLocation(op->getLoc());
    return b;
  }

  /// The op with other operands, at `place`, whose result has these sizes up to the last one.
  Value cloneWith(Operation *op, const IRMapping &operands, ArrayRef<SizeExpr> rows, Operation *place) {
    OpBuilder builder(place);
    IRMapping map(operands);
    Operation *clone = builder.clone(*op, map);
    clone->removeAttr(ds::valueNameAttr);
    TensorFacts facts = analysis->facts(op->getResult(0));
    SizeExpr last = facts.sizes.back();
    facts.sizes.assign(rows.begin(), rows.end());
    facts.sizes.push_back(last);
    facts.contents.reset();
    clone->getResult(0).setType(facts.type());
    analysis->set(clone->getResult(0), facts);
    return clone->getResult(0);
  }

  /// Takes the reshape from before the product behind it, and as far as it goes.
  void sink(ds::LinearOp op, Value source) {
    SizeVector rows(ArrayRef(sizesOf(source)).drop_back());
    IRMapping map;
    map.map(op.getInput(), source);
    Operation *old = op;
    Value made = cloneWith(op, map, rows, op);
    while (Operation *next = follower(old, made, map)) {
      made = cloneWith(next, map, rows, next);
      old = next;
    }
    Value flat = old->getResult(0);
    for (Operation *user : SmallVector<Operation *>(flat.getUsers()))
      if (auto behind = dyn_cast<ds::ReshapeOp>(user)) { // one reshape instead of two, or none
        Value whole = builderAt(behind).reshape(made, sizesOf(behind));
        keepNames(behind, whole.getDefiningOp());
        behind.getResult().replaceAllUsesWith(whole);
        behind.erase();
      }
    if (!flat.use_empty()) {
      Value again = builderAt(old).reshape(made, sizesOf(flat));
      keepNames(old, again.getDefiningOp());
      flat.replaceAllUsesWith(again);
    }
    count("products");
  }

  /// What alone reads the result of `op`, which is `made` now, if it is elementwise and everything else that it reads
  /// is rows of the same sizes before they were flattened, or alike for all rows; `map` has what it reads then.
  Operation *follower(Operation *op, Value made, IRMapping &map) {
    Value flat = op->getResult(0);
    if (!flat.hasOneUse())
      return nullptr;
    Operation *next = *flat.getUsers().begin();
    auto element = dyn_cast<ds::PerElement>(next);
    if (!element || !element.isPointwise() || element.scannedOperand() ||
        !cast<ds::SizedByAttributes>(next).sizeAttributes().empty() || next->getNumResults() != 1 ||
        next->getBlock() != op->getBlock() || sizesOf(next->getResult(0)) != sizesOf(flat))
      return nullptr;
    map.map(flat, made);
    for (Value operand : next->getOperands()) {
      if (operand == flat)
        continue;
      const SizeVector &own = sizesOf(operand);
      if (own.empty() || (own.size() == 1 && (own[0].isConstant(1) || own[0] == sizesOf(flat).back())))
        continue;
      auto reshape = operand.getDefiningOp<ds::ReshapeOp>();
      if (own != sizesOf(flat) || !reshape || sizesOf(reshape.getInput()) != sizesOf(made))
        return nullptr;
      map.map(operand, reshape.getInput());
    }
    return next;
  }

  /// Takes the only reader of a product, a reshape of its rows, into the one before it. The product goes where the
  /// reader was, as only there its sizes may be known.
  void hoist(ds::LinearOp op, ds::ReshapeOp before) {
    auto behind = op->hasOneUse() ? dyn_cast<ds::ReshapeOp>(*op->getUsers().begin()) : ds::ReshapeOp();
    if (!behind || behind->getBlock() != op->getBlock() || sizesOf(behind).empty() ||
        sizesOf(behind).back() != sizesOf(op.getResult()).back())
      return;
    SizeVector rows(ArrayRef(sizesOf(behind)).drop_back()), sizes = rows;
    sizes.push_back(sizesOf(op.getInput()).back());
    IRMapping map;
    map.map(op.getInput(), builderAt(behind).reshape(before.getInput(), sizes));
    Value made = cloneWith(op, map, rows, behind);
    keepNames(behind, made.getDefiningOp());
    behind.getResult().replaceAllUsesWith(made);
    behind.erase();
    count("products");
  }

  SizeAnalysis *analysis = nullptr;
};
} // namespace

} // namespace deepstride
