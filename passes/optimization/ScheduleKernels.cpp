// Puts a schedule on every op that multiplies: which micro-kernel, which tile. The cost model is that of
// ProductCosts.h, over what the machine's instructions were measured to do; what depends on the number of rows, which
// is mostly known at run time only, is chosen there, within one kernel: a row has the same bits in whatever batch it
// lies.
//
//   ds.linear %x, %w  =>  ds.linear %x, %w {ds.schedule = #ds.schedule<multiply_add, rows = 8, columns = 48, ...>}
#include "passes/Report.h"
#include "passes/optimization/Passes.h"
#include "passes/optimization/ProductCosts.h"

#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/Format.h"

namespace deepstride {
#define GEN_PASS_DEF_SCHEDULEKERNELS
#include "passes/optimization/Passes.h.inc"
} // namespace deepstride

using namespace mlir;
using namespace deepstride;

namespace {

Type elementOf(Value value) { return cast<RankedTensorType>(value.getType()).getElementType(); }

/// The product of the last `count` sizes, where all are known.
std::optional<int64_t> lastSizes(Value value, int64_t count) {
  int64_t product = 1;
  for (int64_t size : cast<RankedTensorType>(value.getType()).getShape().take_back(count)) {
    if (ShapedType::isDynamic(size) || llvm::MulOverflow(product, size, product))
      return std::nullopt;
  }
  return product;
}

/// K as the weight has it, in whole steps of its panels where it is packed.
std::optional<int64_t> depthOf(ds::LinearOp linear) {
  auto weight = cast<RankedTensorType>(linear.getWeight().getType());
  int64_t steps = weight.getDimSize(linear.getPanel() || linear.getTransposed() ? 1 : 0);
  if (ShapedType::isDynamic(steps))
    return std::nullopt;
  return steps * static_cast<int64_t>(linear.getInterleave());
}

ProductShape shapeOf(Operation *op, const Machine &machine) {
  return llvm::TypeSwitch<Operation *, ProductShape>(op)
      .Case([](ds::LinearOp linear) {
        Type right = elementOf(linear.getWeight());
        if (linear.holdsHalfBytes())
          right = IntegerType::get(linear.getContext(), 4);
        auto isConstant = [](Value value) { return isa_and_present<ds::WeightOp>(value.getDefiningOp()); };
        bool isPacked = linear.getPanel() || isConstant(linear.getWeight());
        if (!linear.getPanel() && linear.getScales()) // packed with what stands beside, or not
          isPacked = isPacked && !linear.getTransposed() && isConstant(linear.getScales()) &&
                     (!linear.getZeroPoints() || isConstant(linear.getZeroPoints()));
        return ProductShape{{elementOf(linear.getInput()), right, elementOf(linear.getResult())},
                            isPacked,
                            lastSizes(linear.getResult(), 1),
                            linear.getZeroPoints() != nullptr,
                            static_cast<int64_t>(linear.getGroup().value_or(0)),
                            depthOf(linear)};
      })
      .Case([](ds::MatmulOp matmul) {
        return ProductShape{{elementOf(matmul.getLhs()), elementOf(matmul.getRhs()), elementOf(matmul.getResult())},
                            false,
                            lastSizes(matmul.getResult(), 1)};
      })
      .Case([&](ds::ConvOp conv) { // filters by pixels
        int64_t rank = cast<RankedTensorType>(conv.getType()).getRank();
        ProductShape shape{{elementOf(conv.getWeight()), elementOf(conv.getInput()), elementOf(conv.getResult())},
                           false,
                           std::nullopt};
        if (!ds::joinsImages(conv, machine.vectorBits / static_cast<int64_t>(ds::sumBits(shape.types.result))))
          shape.columns = lastSizes(conv.getResult(), rank - 2);
        shape.sharesColumns = true;
        return shape;
      })
      .Case([](ds::AttentionOp attention) { // scores of as many columns as there are keys
        Type element = elementOf(attention.getQuery());
        if (auto narrow = attention.getRounds()) // its kernel rounds and packs both operands
          return ProductShape{{*narrow, *narrow, element}, true, std::nullopt};
        if (element.isF16() || element.isBF16()) // its kernel computes in f32
          element = Float32Type::get(attention.getContext());
        return ProductShape{{element, element, element}, false, std::nullopt};
      })
      .Case([](ds::AttentionGradientOp attention) {
        Type element = elementOf(attention.getQuery());
        return ProductShape{{element, element, element}, false, std::nullopt};
      });
}

struct ScheduleKernels : deepstride::impl::ScheduleKernelsBase<ScheduleKernels>, PassReport {
  using Base::Base;
  // With K of a few thousand, so many rows of f32 and a panel stay in a cache of 1 MiB.
  static constexpr int64_t rowsPerSweep = 128;
  // Squares multiply faster than memory gives panels: as many rows as stay in a level-2 cache beside panels and sums.
  static constexpr int64_t mostRowsPerSweep = 512, bytesOfRows = 3 << 18;
  // Digits are read once for each panel: as many rows as stay in a level-2 cache beside it, while few are not too few.
  static constexpr int64_t fewestRowsPerSweep = 16;
  static constexpr int64_t rowsOfCodes = 16; // two blocks of rows; a third would pay for converting the panel

  void runOnOperation() override {
    std::string error;
    auto parsed = Machine::parse(machine, error);
    if (!parsed) {
      getOperation().emitError("ds-schedule-kernels: ") << error;
      return signalPassFailure();
    }
    WalkResult result = getOperation().walk([&](Operation *op) {
      if (!isa<ds::LinearOp, ds::MatmulOp, ds::ConvOp, ds::AttentionOp, ds::AttentionGradientOp>(op) ||
          op->getParentOfType<ds::RecipeOp>())
        return WalkResult::advance();
      return failed(schedule(op, *parsed)) ? WalkResult::interrupt() : WalkResult::advance();
    });
    if (result.wasInterrupted())
      return signalPassFailure();
    for (const auto &[line, number] : schedules)
      note(std::to_string(number) + (number == 1 ? " op: " : " ops: ") + line);
  }

  LogicalResult schedule(Operation *op, const Machine &machine) {
    ProductShape shape = shapeOf(op, machine);
    SmallVector<ds::ProductKernel> others;
    auto kernel = fastestKernel(machine, shape, others);
    auto linear = dyn_cast<ds::LinearOp>(op);
    bool isUnpacked = linear && linear.getScales() && !shape.isPacked; // scales of run time
    if (!kernel || isUnpacked || (isa<ds::AttentionGradientOp>(op) && !shape.types.result.isF32())) {
      op->emitRemark() << "not scheduled, plain loops: no vector kernel multiplies " << shape.types.left << " by "
                       << shape.types.right << " into " << shape.types.result;
      count("plain loops");
      return success();
    }
    Tile tile = fastestTile(machine, *kernel, shape);
    if (rows)
      tile.rows = rows;
    if (columns)
      tile.columns = columns * 32 / static_cast<int64_t>(ds::sumBits(shape.types.result));
    if (linear && linear.getPanel())
      tile.columns = *linear.getPanel(); // packed before
    int64_t lanes = machine.vectorBits / static_cast<int64_t>(ds::sumBits(shape.types.result));
    if (tile.rows < 1 || tile.columns < 1 || tile.columns % lanes != 0)
      return op->emitOpError("cannot be scheduled: a tile has at least one row, and whole vectors of ")
             << lanes << " columns, found " << tile.rows << " rows and " << tile.columns << " columns";
    bool hasDigits = *kernel == ds::ProductKernel::code_digits; // codes stay bytes
    bool isWidened = linear && ((linear.getScales() && !hasDigits) || *kernel == ds::ProductKernel::bfloat_halves);
    int64_t few = !shape.isPacked || !linear ? 0
                  : *kernel == ds::ProductKernel::byte_pairs
                      ? 2 * tile.rows // in registers, rows are widened for each panel
                  : isWidened ? rowsOfCodes
                              : 0;
    auto schedule =
        ds::ScheduleAttr::get(op->getContext(), *kernel, tile.rows, tile.columns, sweepOf(op, *kernel, shape), few);
    op->setAttr(ds::scheduleAttr, schedule);
    count("products scheduled");
    std::string line = describe(*kernel, tile, machine, others);
    op->emitRemark() << "scheduled: " << line;
    if (auto *found = llvm::find_if(schedules, [&](const auto &entry) { return entry.first == line; });
        found != schedules.end())
      ++found->second;
    else
      schedules.emplace_back(line, 1);
    return success();
  }

  static int64_t sweepOf(Operation *op, ds::ProductKernel kernel, const ProductShape &shape) {
    auto linear = dyn_cast<ds::LinearOp>(op);
    if (kernel == ds::ProductKernel::code_digits && shape.depth) {
      int64_t rows = bytesOfRows / (*shape.depth * 3) / fewestRowsPerSweep * fewestRowsPerSweep;
      return std::clamp(rows, fewestRowsPerSweep, rowsPerSweep);
    }
    if (!linear || !ds::usesSquares(kernel))
      return rowsPerSweep;
    int64_t depth = cast<RankedTensorType>(linear.getInput().getType()).getShape().back();
    if (ShapedType::isDynamic(depth) || depth <= 0)
      return rowsPerSweep;
    int64_t bytes = shape.types.left.getIntOrFloatBitWidth() / 8;
    int64_t rows = bytesOfRows / (depth * bytes) / rowsPerSweep * rowsPerSweep;
    return std::clamp(rows, rowsPerSweep, mostRowsPerSweep);
  }

  static std::string describe(ds::ProductKernel kernel, const Tile &tile, const Machine &machine,
                              ArrayRef<ds::ProductKernel> others) {
    std::string line =
        (ds::stringifyProductKernel(kernel) + ", " + Twine(tile.rows) + " x " + Twine(tile.columns)).str();
    for (ds::ProductKernel other : others) {
      if (other == ds::ProductKernel::multiply_add)
        continue;
      llvm::raw_string_ostream os(line);
      os << "; " << ds::stringifyProductKernel(other) << " takes "
         << llvm::format("%.1f", machine.rates.at(kernel) / machine.rates.at(other)) << " times as long";
    }
    return line;
  }

  SmallVector<std::pair<std::string, int64_t>> schedules; // in the order of first appearance
};

} // namespace
