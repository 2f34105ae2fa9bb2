// Mutates buffer plans. A mutant changes the meaning of its program when some run of PlanMachine.h, over random trip
// counts and branches, shows other outputs, states or conditions than the program's values, or writes what nobody may
// write; all others count as equivalent. The verifier must catch every mutant that changes the meaning.
#include "dialects/dist/DistDialect.h"
#include "dialects/ds/DsDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "passes/memory/Passes.h"
#include "passes/memory/VerifyPlan.h"
#include "test/unit/passes/memory/PlanMachine.h"
#include "test/unit/passes/memory/PlanPrograms.h"
#include "llvm/Support/FormatVariadic.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace deepstride;
using namespace deepstride::test;

namespace {

constexpr uint64_t runs = 24;

bool changesMeaning(func::FuncOp entry) {
  for (uint64_t choices = 0; choices < runs; ++choices)
    if (!(runPlan(entry, choices) == runProgram(entry, choices)))
      return true;
  return false;
}

std::vector<std::string> violationsOf(func::FuncOp entry) {
  std::vector<std::string> found;
  verifyPlan(entry, [&](Operation *, const Twine &rule) { found.push_back(rule.str()); });
  return found;
}

OwningOpRef<ModuleOp> planned(StringRef text, MLIRContext &context) {
  context.loadDialect<ds::DSDialect, dist::DistDialect, func::FuncDialect, scf::SCFDialect, arith::ArithDialect,
                      tensor::TensorDialect>();
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
  // Remarks about copies are for readers of reports.
  ScopedDiagnosticHandler quiet(&context,
                                [](Diagnostic &d) { return success(d.getSeverity() == DiagnosticSeverity::Remark); });
  PassManager passes(&context);
  passes.addPass(createOutlineKernels());
  passes.addPass(createPlanBuffers());
  if (!module || failed(passes.run(*module)))
    return {};
  return module;
}

/// A program after the memory phase, and what became of its mutants.
class Mutants : public ::testing::TestWithParam<PlanProgram> {
protected:
  void SetUp() override {
    module = planned(GetParam().text, context);
    ASSERT_TRUE(module);
    entry = *module->getOps<func::FuncOp>().begin();
    plan = llvm::to_vector(entry->getAttrOfType<ArrayAttr>("ds.buffers").getAsRange<DictionaryAttr>());
  }

  /// Judges the plan as it stands now.
  void judge(const std::string &mutation) {
    bool isCaught = !violationsOf(entry).empty(), isChanged = changesMeaning(entry);
    caught += isCaught;
    changed += isChanged;
    ++total;
    EXPECT_TRUE(isCaught || !isChanged) << GetParam().name << ": not caught: " << mutation;
  }

  void tryList(Operation *op, ArrayRef<int64_t> list, const std::string &mutation) {
    Attribute old = op->getAttr("buffers");
    op->setAttr("buffers", Builder(&context).getDenseI64ArrayAttr(list));
    judge(mutation);
    op->setAttr("buffers", old);
  }

  void tryPlan(ArrayRef<DictionaryAttr> mutant, const std::string &mutation) {
    Attribute old = entry->getAttr("ds.buffers");
    SmallVector<Attribute> list(mutant.begin(), mutant.end());
    entry->setAttr("ds.buffers", Builder(&context).getArrayAttr(list));
    judge(mutation);
    entry->setAttr("ds.buffers", old);
  }

  DictionaryAttr with(DictionaryAttr fields, StringRef name, int64_t value) {
    NamedAttrList list(fields);
    list.set(name, Builder(&context).getI64IntegerAttr(value));
    return list.getDictionary(&context);
  }

  int64_t number(size_t buffer, StringRef name) { return plan[buffer].getAs<IntegerAttr>(name).getInt(); }
  bool isWorkspace(size_t buffer) { return plan[buffer].getAs<StringAttr>("role") == "workspace"; }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  func::FuncOp entry;
  SmallVector<DictionaryAttr> plan;
  int total = 0, caught = 0, changed = 0;
};

TEST_P(Mutants, PlansAreRight) {
  EXPECT_EQ(violationsOf(entry), std::vector<std::string>());
  EXPECT_FALSE(changesMeaning(entry));
}

TEST_P(Mutants, OtherBuffersAreCaught) {
  entry.walk([&](Operation *op) {
    auto list = op->getAttrOfType<DenseI64ArrayAttr>("buffers");
    if (list)
      for (size_t i = 0; i < static_cast<size_t>(list.size()); ++i) {
        std::vector<int64_t> mutant = list.asArrayRef().vec();
        for (size_t other = 0; other < plan.size(); ++other) {
          mutant[i] = static_cast<int64_t>(other);
          if (mutant[i] != list[i])
            tryList(op, mutant, "position " + std::to_string(i) + " of a list is " + std::to_string(other));
        }
        for (size_t j = 0; j < i; ++j) {
          mutant = list.asArrayRef().vec();
          std::swap(mutant[i], mutant[j]);
          if (mutant[i] != mutant[j])
            tryList(op, mutant, "positions " + std::to_string(j) + " and " + std::to_string(i) + " are swapped");
        }
      }
    if (auto buffer = op->getAttrOfType<IntegerAttr>("buffer"))
      for (size_t other = 0; other < plan.size(); ++other) {
        op->setAttr("buffer", Builder(&context).getI64IntegerAttr(static_cast<int64_t>(other)));
        judge("a condition is read from buffer " + std::to_string(other));
        op->setAttr("buffer", buffer);
      }
  });
  EXPECT_GT(changed, total / 2);
  RecordProperty("caught", caught);
}

TEST_P(Mutants, OtherLifetimesAreCaught) {
  for (size_t i = 0; i < plan.size(); ++i) {
    if (!isWorkspace(i))
      continue;
    int64_t first = number(i, "first"), last = number(i, "last");
    for (int64_t moved = first - 1; moved < last; ++moved) {
      SmallVector<DictionaryAttr> mutant(plan);
      mutant[i] = with(plan[i], "last", moved);
      tryPlan(mutant, "buffer " + std::to_string(i) + " ends at " + std::to_string(moved));
      mutant[i] = with(plan[i], "first", moved + 1 + (moved + 1 == first));
      tryPlan(mutant, "buffer " + std::to_string(i) + " begins later than " + std::to_string(moved));
    }
    SmallVector<DictionaryAttr> mutant(plan);
    mutant[i] = with(plan[i], "bytes", number(i, "bytes") - 1);
    tryPlan(mutant, "buffer " + std::to_string(i) + " is too small");
  }
}

TEST_P(Mutants, MergedBuffersAreCaught) {
  for (size_t kept = 0; kept < plan.size(); ++kept)
    for (size_t gone = 0; gone < plan.size(); ++gone) {
      if (kept == gone || !isWorkspace(gone))
        continue;
      SmallVector<std::pair<Operation *, Attribute>> lists;
      entry.walk([&](Operation *op) {
        if (auto list = op->getAttrOfType<DenseI64ArrayAttr>("buffers")) {
          lists.push_back({op, list});
          std::vector<int64_t> merged = list.asArrayRef().vec();
          std::replace(merged.begin(), merged.end(), static_cast<int64_t>(gone), static_cast<int64_t>(kept));
          op->setAttr("buffers", Builder(&context).getDenseI64ArrayAttr(merged));
        }
      });
      SmallVector<DictionaryAttr> mutant(plan);
      if (isWorkspace(kept)) {
        mutant[kept] = with(mutant[kept], "first", std::min(number(kept, "first"), number(gone, "first")));
        mutant[kept] = with(mutant[kept], "last", std::max(number(kept, "last"), number(gone, "last")));
        mutant[kept] = with(mutant[kept], "bytes", std::max(number(kept, "bytes"), number(gone, "bytes")));
      }
      tryPlan(mutant, "buffer " + std::to_string(gone) + " lies in " + std::to_string(kept));
      for (auto [op, list] : lists)
        op->setAttr("buffers", list);
    }
}

TEST_P(Mutants, OtherRolesAreCaught) {
  for (size_t i = 0; i < plan.size(); ++i)
    for (size_t j = 0; j < i; ++j) {
      SmallVector<DictionaryAttr> mutant(plan);
      std::swap(mutant[i], mutant[j]);
      tryPlan(mutant, "buffers " + std::to_string(j) + " and " + std::to_string(i) + " change roles");
    }
}

// `in_place` states what the kernel does anyway: a plan without it, or with another number, is refused as such.
TEST_P(Mutants, WrongInPlaceIsCaught) {
  entry.walk([&](ds::LaunchOp launch) {
    auto stated = launch->getAttrOfType<DenseI64ArrayAttr>("in_place");
    SmallVector<int64_t> none(launch.getNumResults(), -1);
    ArrayRef<int64_t> right = stated ? stated.asArrayRef() : ArrayRef(none);
    auto expectCaught = [&](DenseI64ArrayAttr mutant, const std::string &what) {
      mutant ? launch->setAttr("in_place", mutant) : (void)launch->removeAttr("in_place");
      EXPECT_FALSE(violationsOf(entry).empty()) << GetParam().name << ": in_place " << what;
      stated ? launch->setAttr("in_place", stated) : (void)launch->removeAttr("in_place");
    };
    for (size_t result = 0; result < right.size(); ++result)
      for (int64_t other = -1; other < static_cast<int64_t>(launch.getInputs().size()); ++other) {
        SmallVector<int64_t> mutant(right);
        mutant[result] = other;
        if (ArrayRef<int64_t>(mutant) != right)
          expectCaught(DenseI64ArrayAttr::get(&context, mutant), std::to_string(other));
      }
    if (stated)
      expectCaught({}, "is left out");
  });
}

// A kernel that finds its updates where it writes: what ds-outline-kernels would make without copies.
TEST_P(Mutants, UpdatesFromTheirTargetAreCaught) {
  entry.walk([&](ds::LaunchOp launch) {
    auto inPlace = launch->getAttrOfType<DenseI64ArrayAttr>("in_place");
    if (!inPlace)
      return;
    Region &body = module->lookupSymbol<ds::KernelOp>(launch.getKernel()).getBody();
    Value target = body.getArgument(*llvm::max_element(inPlace.asArrayRef()));
    for (BlockArgument argument : body.getArguments()) {
      if (argument == target || argument.getType() != target.getType())
        continue;
      OpOperand &use = *argument.getUses().begin();
      use.set(target);
      EXPECT_TRUE(changesMeaning(entry));
      EXPECT_FALSE(violationsOf(entry).empty());
      use.set(argument);
    }
  });
}

TEST_P(Mutants, LaunchesThatExchangeTheirNumbersAreCaught) {
  SmallVector<ds::LaunchOp> launches;
  entry.walk([&](ds::LaunchOp launch) { launches.push_back(launch); });
  for (size_t i = 0; i < launches.size(); ++i)
    for (size_t j = 0; j < i; ++j) {
      Attribute a = launches[i]->getAttr("index"), b = launches[j]->getAttr("index");
      launches[i]->setAttr("index", b), launches[j]->setAttr("index", a);
      judge("launches " + std::to_string(j) + " and " + std::to_string(i) + " exchange their numbers");
      launches[i]->setAttr("index", a);
      EXPECT_FALSE(violationsOf(entry).empty()) << "two launches of one number";
      launches[j]->setAttr("index", b);
    }
}

/// Loops within each other; each hands on two values, crosswise.
std::string nest(int depth) {
  std::string body = R"(
    %r0:2 = ds.fused {
      %0 = ds.binary add %c1, %x : (!t, !t) -> !t
      %1 = ds.unary neg %d1 : (!t) -> !t
      ds.yield %0, %1 : !t, !t
    } : !t, !t)";
  for (int level = 1; level <= depth; ++level)
    body = llvm::formatv(R"(
    %r{0}:2 = scf.while (%a{0} = %c{1}, %b{0} = %d{1}) : (!t, !t) -> (!t, !t) {{
      scf.condition(%go) %a{0}, %b{0} : !t, !t
    } do {{
    ^bb0(%c{0}: !t, %d{0}: !t):
      {2}
      scf.yield %r{3}#1, %r{3}#0 : !t, !t
    })",
                         level, level + 1, body, level - 1);
  return llvm::formatv(R"(
!t = tensor<4xf32>
func.func @f(%c: tensor<i1> {{ds.dims = []}, %x: !t {{ds.dims = [4]}) -> (!t, !t) attributes {{ds.entry} {{
  %go = tensor.extract %c[] : tensor<i1>
  %c{0} = ds.unary exp %x : (!t) -> !t
  %d{0} = ds.unary tanh %x : (!t) -> !t
  {1}
  return %r{2}#0, %r{2}#1 : !t, !t
})",
                       depth + 1, body, depth);
}

// A verifier that starts every visit of a loop anew would be at it for years.
TEST(Plans, OfDeepNestsAreRight) {
  MLIRContext context;
  OwningOpRef<ModuleOp> module = planned(nest(32), context);
  ASSERT_TRUE(module);
  EXPECT_EQ(violationsOf(*module->getOps<func::FuncOp>().begin()), std::vector<std::string>());
}

INSTANTIATE_TEST_SUITE_P(Plans, Mutants, ::testing::ValuesIn(planPrograms),
                         [](const auto &info) { return std::string(info.param.name); });

} // namespace
