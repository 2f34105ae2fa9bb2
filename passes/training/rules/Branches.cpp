// The derivative of a branch: a branch of derivatives. Each side computes its values once more, since what a branch
// holds is not seen outside; what it uses from around it are its operands.
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "passes/training/ReverseSweep.h"

using namespace mlir;

namespace deepstride {

/// Fills one side of the new branch; false after a diagnostic.
static bool reverseSide(Block &source, Region &target, ArrayRef<Value> used, ArrayRef<Value> seeds, Derivative &d) {
  DsBuilder &b = d.b;
  OpBuilder &builder = b.getBuilder();
  OpBuilder::InsertionGuard guard(builder);
  Location where = b.getLocation();
  if (target.empty())
    builder.createBlock(&target);
  builder.setInsertionPointToEnd(&target.front());
  IRMapping copies;
  for (Operation &op : source.without_terminator())
    if (failed(b.getAnalysis().visit(builder.clone(op, copies))))
      return false;
  SmallVector<Value> results;
  for (Value value : source.getTerminator()->getOperands())
    results.push_back(copies.lookupOrDefault(value));
  ReverseSweep sweep(target.front(), used);
  if (failed(sweep.run(results, seeds, b)))
    return false;
  b.setLocation(where);
  SmallVector<Value> gradients;
  for (Value value : used) {
    Value found = sweep.gradient(value);
    gradients.push_back(found ? found : d.zeros(b.element(value), b.sizes(value)));
  }
  scf::YieldOp::create(builder, where, gradients);
  return true;
}

static void differentiateIf(scf::IfOp op, Derivative &d) {
  DsBuilder &b = d.b;
  SmallVector<Value> used, seeds;
  SmallVector<Type> types;
  for (Value value : valuesUsedBy(op))
    if (d.wants(value)) {
      used.push_back(value);
      types.push_back(b.facts(value).type());
    }
  for (unsigned i = 0; i < op.getNumResults(); ++i)
    seeds.push_back(d.gradient(i));
  auto branch = scf::IfOp::create(b.getBuilder(), b.getLocation(), types, op.getCondition(), /*withElseRegion=*/true);
  if (!reverseSide(*op.thenBlock(), branch.getThenRegion(), used, seeds, d) ||
      !reverseSide(*op.elseBlock(), branch.getElseRegion(), used, seeds, d))
    return d.fail();
  for (auto [result, value] : llvm::zip_equal(branch.getResults(), used)) {
    TensorFacts facts = b.facts(value);
    facts.contents.reset();
    b.getAnalysis().set(result, facts);
    d.giveTo(value, result);
  }
}

void addBranchRules(RuleTable &table) { table.add(differentiateIf); }

} // namespace deepstride
