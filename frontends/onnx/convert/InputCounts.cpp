// How many inputs each operator of the standard takes at most, from ONNX's operator documents. Patterns ask for the
// inputs that they know; this table finds those that nobody would ask for.
#include "frontends/onnx/convert/Registry.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace deepstride::onnx {

namespace {
/// `Name@18` is the count since opset 18, a plain name that of the operator's first version.
struct InputCount {
  unsigned most;
  StringRef names;
};
} // namespace

static constexpr InputCount inputCounts[] = {
    {0, "Constant RandomNormal RandomUniform SequenceEmpty"},
    {1, "Abs Acos Acosh ArgMax ArgMin Asin Asinh Atan Atanh AveragePool Bernoulli BitCast BitwiseNot BlackmanWindow "
        "Cast Ceil Celu Clip ConcatFromSequence ConstantOfShape Cos Cosh DepthToSpace Det Dropout "
        "DynamicQuantizeLinear Elu Erf Exp EyeLike Flatten Floor Gelu GlobalAveragePool GlobalLpPool GlobalMaxPool "
        "HammingWindow HannWindow HardSigmoid HardSwish Hardmax Identity If IsInf IsNaN LRN LeakyRelu Log LogSoftmax "
        "LpNormalization LpPool MaxPool MeanVarianceNormalization Mish Multinomial Neg NonZero Not Optional "
        "OptionalGetElement OptionalHasElement Pad RandomNormalLike RandomUniformLike Reciprocal ReduceL1 ReduceL2 "
        "ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare Relu Reshape "
        "Round Selu SequenceLength Shape Shrink Sigmoid Sign Sin Sinh Size Slice Softmax Softplus Softsign "
        "SpaceToDepth Split@2 Sqrt Squeeze Swish Tan Tanh ThresholdedRelu TopK Transpose Unique Unsqueeze Upsample"},
    {2, "Add AffineGrid And BitShift BitwiseAnd BitwiseOr BitwiseXor CastLike CenterCropPad Compress CumProd CumSum "
        "DFT Div Equal Expand Gather GatherElements GatherND Greater GreaterOrEqual GridSample Less LessOrEqual MatMul "
        "Mod Mul Or PRelu Pow RMSNormalization ReduceL1@18 ReduceL2@18 ReduceLogSum@18 ReduceLogSumExp@18 ReduceMax@18 "
        "ReduceMean@18 ReduceMin@18 ReduceProd@18 ReduceSum@13 ReduceSumSquare@18 Reshape@5 Resize ReverseSequence "
        "SequenceAt SequenceErase Split Split@13 SplitToSequence Squeeze@13 Sub Tile@6 TopK@10 Trilu Unsqueeze@13 "
        "Upsample@9 Xor"},
    {3, "Clip@11 Col2Im Conv ConvTranspose DFT@20 DequantizeLinear Dropout@12 Gemm GroupNormalization "
        "InstanceNormalization LayerNormalization MaxUnpool NegativeLogLikelihoodLoss OneHot Pad@11 QuantizeLinear "
        "Range RoiAlign Scatter ScatterElements ScatterND SequenceInsert SoftmaxCrossEntropyLoss TensorScatter Tile "
        "Where"},
    {4, "CausalConvWithState ConvInteger MatMulInteger Pad@18 Resize@11 RotaryEmbedding STFT"},
    {5, "BatchNormalization DeformConv MelWeightMatrix NonMaxSuppression Slice@10"},
    {6, "Attention GRU LinearAttention RNN"},
    {7, "Attention@24"},
    {8, "LSTM QLinearMatMul"},
    {9, "QLinearConv"},
};

std::optional<unsigned> mostInputs(StringRef domain, StringRef name, int64_t version) {
  static const auto byName = [] {
    llvm::StringMap<std::map<int64_t, unsigned>> counts;
    for (const InputCount &count : inputCounts)
      for (StringRef entry : llvm::split(count.names, " ")) {
        auto [op, since] = entry.split("@");
        int64_t opset;
        if (since.getAsInteger(10, opset))
          opset = 1;
        counts[op][opset] = count.most;
      }
    return counts;
  }();
  auto found = domain.empty() ? byName.find(name) : byName.end();
  if (found == byName.end())
    return std::nullopt;
  auto next = found->second.upper_bound(version);
  return next == found->second.begin() ? std::nullopt : std::optional(std::prev(next)->second);
}

} // namespace deepstride::onnx
