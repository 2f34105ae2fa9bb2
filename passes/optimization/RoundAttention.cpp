// ds-round-attention: where the machine multiplies pairs of bf16 faster than numbers of f32, both products of an
// attention of f32 round their operands: queries and keys, weights and values. Scores, their softmax and all sums stay
// f32. A decoder's step, with one query a head, stays as it is: it reads keys and values once, as fast as memory gives
// them, and rounding and packing them takes four times as long.
//
//   ds.attention %q, %k, %v scale 0.125  =>  ds.attention %q, %k, %v scale 0.125 rounds bf16
#include "passes/Report.h"
#include "passes/optimization/Passes.h"
#include "passes/optimization/ProductCosts.h"

#include "llvm/Support/FormatVariadic.h"

namespace deepstride {
#define GEN_PASS_DEF_ROUNDATTENTION
#include "passes/optimization/Passes.h.inc"
} // namespace deepstride

using namespace mlir;
using namespace deepstride;

namespace {

struct RoundAttention : deepstride::impl::RoundAttentionBase<RoundAttention>, PassReport {
  using Base::Base;
  /// Rounding and packing take some of what is won.
  static constexpr double leastGain = 1.5;

  void runOnOperation() override {
    count("attentions rounded", 0);
    std::string error;
    auto parsed = Machine::parse(machine, error);
    if (!parsed) {
      getOperation().emitError("ds-round-attention: ") << error;
      return signalPassFailure();
    }
    Type f32 = Float32Type::get(&getContext()), bf16 = BFloat16Type::get(&getContext());
    SmallVector<ds::ProductKernel> others;
    auto kernel = fastestKernel(*parsed, {{bf16, bf16, f32}, /*isPacked=*/true, std::nullopt}, others);
    double gain = kernel ? parsed->rates.at(*kernel) / parsed->rates.at(ds::ProductKernel::multiply_add) : 0;
    getOperation().walk([&](ds::AttentionOp op) {
      std::string reason = refuse(op, gain);
      if (!reason.empty()) {
        op.emitRemark() << "attention not rounded: " << reason;
        return;
      }
      op.setRounds(bf16);
      count("attentions rounded");
    });
  }

  static std::string refuse(ds::AttentionOp op, double gain) {
    if (op.getRounds())
      return "its operands are rounded already";
    if (!cast<RankedTensorType>(op.getType()).getElementType().isF32())
      return "its operands are not f32";
    if (cast<RankedTensorType>(op.getQuery().getType()).getDimSize(2) == 1)
      return "one query a head reads keys and values once, where they lie";
    if (gain < leastGain)
      return llvm::formatv("products of bf16 run at {0:f1} times the rate of f32 here, less than {1:f1}", gain,
                           leastGain);
    return "";
  }
};

} // namespace
