// Which attributes each operator has, from the operator documents of ONNX and of ONNX Runtime's contributed operators.
// Patterns ask for the attributes that they know; this table finds those that nobody would ask for: a misspelt name, or
// the attribute of another opset (`axes` of a newer ReduceSum is an input), which would change the result unnoticed.
#include "frontends/onnx/convert/Registry.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace deepstride::onnx {

namespace {
struct AttributeName {
  StringRef name;
  StringRef operators;
};
} // namespace

/// `Name@18` has the attribute since opset 18, `Name<18` had it before, a plain name always.
static constexpr AttributeName standard[] = {
    {"activation", "CausalConvWithState"},
    {"activation_alpha", "GRU LSTM RNN"},
    {"activation_beta", "GRU LSTM RNN"},
    {"activations", "GRU LSTM RNN"},
    {"align_corners", "AffineGrid GridSample"},
    {"allowzero", "Reshape@14"},
    {"alpha", "Adam Celu Elu Gemm HardSigmoid LRN LeakyRelu Momentum Selu Swish ThresholdedRelu"},
    {"antialias", "Resize@18"},
    {"approximate", "Gelu"},
    {"auto_pad", "AveragePool Conv ConvInteger ConvTranspose LpPool MaxPool QLinearConv"},
    {"axes", "CenterCropPad MeanVarianceNormalization ReduceL1<18 ReduceL2<18 ReduceLogSum<18 ReduceLogSumExp<18 "
             "ReduceMax<18 ReduceMean<18 ReduceMin<18 ReduceProd<18 ReduceSum<13 ReduceSumSquare<18 Resize@18 "
             "Slice<10 Squeeze<13 Unsqueeze<13"},
    {"axis", "Add<7 And<7 ArgMax ArgMin Compress Concat ConcatFromSequence DFT<20 DequantizeLinear@13 Div<7 Equal<7 "
             "Flatten Gather GatherElements Greater<7 Hardmax LayerNormalization Less<7 LogSoftmax LpNormalization "
             "Mul<7 OneHot Or<7 Pow<7 QuantizeLinear@13 RMSNormalization Scatter ScatterElements "
             "SimplifiedLayerNormalization Softmax Split SplitToSequence Sub<7 TensorScatter TopK Unique Xor<7"},
    {"batch_axis", "ReverseSequence"},
    {"batch_dims", "GatherND@12"},
    {"beta", "Adam Gemm HardSigmoid LRN Momentum"},
    {"bias", "LRN Shrink"},
    {"block_size", "DequantizeLinear@21 QuantizeLinear@21"},
    {"blocksize", "DepthToSpace SpaceToDepth"},
    {"body", "Loop Scan SequenceMap"},
    {"broadcast", "Add<7 And<7 Div<7 Equal<7 Gemm<7 Greater<7 Less<7 Mul<7 Or<7 Pow<7 Sub<7 Xor<7"},
    {"ceil_mode", "AveragePool@10 LpPool@18 MaxPool@10"},
    {"center_point_box", "NonMaxSuppression"},
    {"chunk_size", "LinearAttention"},
    {"clip", "GRU LSTM RNN"},
    {"consumed_inputs", "Abs<6 Add<6 BatchNormalization<6 Ceil<6 Clip<6 Div<6 Dropout<6 Elu<6 Exp<6 Floor<6 "
                        "HardSigmoid<6 InstanceNormalization<6 LeakyRelu<6 Log<6 Max<6 Mean<6 Min<6 Mul<6 Neg<6 "
                        "PRelu<6 Reciprocal<6 Relu<6 Reshape<5 Selu<6 Sigmoid<6 Sqrt<6 Sub<6 Sum<6 Tanh<6"},
    {"coordinate_transformation_mode", "Resize@11 RoiAlign@16"},
    {"count_include_pad", "AveragePool@7"},
    {"cubic_coeff_a", "Resize@11"},
    {"decay_factor", "Adagrad"},
    {"detect_negative", "IsInf"},
    {"detect_positive", "IsInf"},
    {"dilations", "AveragePool@19 Col2Im Conv ConvInteger ConvTranspose DeformConv LpPool@18 MaxPool@10 QLinearConv"},
    {"direction", "BitShift GRU LSTM RNN"},
    {"directions", "Scan<9"},
    {"dtype", "Bernoulli EyeLike Multinomial RandomNormal RandomNormalLike RandomUniform RandomUniformLike "
              "SequenceEmpty"},
    {"else_branch", "If"},
    {"end", "Shape@15"},
    {"ends", "Slice<10"},
    {"epsilon", "Adagrad Adam BatchNormalization GroupNormalization InstanceNormalization LayerNormalization "
                "RMSNormalization SimplifiedLayerNormalization"},
    {"equation", "Einsum"},
    {"exclude_outside", "Resize@11"},
    {"exclusive", "CumProd CumSum"},
    {"extrapolation_value", "Resize@11"},
    {"fmod", "Mod"},
    {"gamma", "Selu"},
    {"group", "Conv ConvInteger ConvTranspose DeformConv QLinearConv"},
    {"height_scale", "Upsample<7"},
    {"hidden_size", "GRU LSTM RNN"},
    {"high", "RandomUniform RandomUniformLike"},
    {"ignore_index", "NegativeLogLikelihoodLoss SoftmaxCrossEntropyLoss"},
    {"input_forget", "LSTM"},
    {"interleaved", "RotaryEmbedding"},
    {"inverse", "DFT"},
    {"is_causal", "Attention"},
    {"is_test", "BatchNormalization<7 Dropout<7"},
    {"k", "EyeLike TopK<10"},
    {"keep_aspect_ratio_policy", "Resize@18"},
    {"keepdims", "ArgMax ArgMin ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin "
                 "ReduceProd ReduceSum ReduceSumSquare SplitToSequence"},
    {"kernel_shape", "AveragePool Conv ConvInteger ConvTranspose DeformConv LpPool MaxPool MaxUnpool QLinearConv"},
    {"kv_num_heads", "Attention LinearAttention"},
    {"lambd", "Shrink"},
    {"largest", "TopK@11"},
    {"layout", "GRU@14 LSTM@14 RNN@14"},
    {"linear_before_reset", "GRU@3"},
    {"low", "RandomUniform RandomUniformLike"},
    {"max", "Clip<11"},
    {"mean", "RandomNormal RandomNormalLike"},
    {"min", "Clip<11"},
    {"mode", "DepthToSpace@11 GridSample Momentum Pad Resize RoiAlign TensorScatter Upsample"},
    {"momentum", "BatchNormalization"},
    {"nearest_mode", "Resize@11"},
    {"new_axis", "ConcatFromSequence"},
    {"noop_with_empty_axes", "ReduceL1@18 ReduceL2@18 ReduceLogSum@18 ReduceLogSumExp@18 ReduceMax@18 ReduceMean@18 "
                             "ReduceMin@18 ReduceProd@18 ReduceSum@13 ReduceSumSquare@18"},
    {"norm_coefficient", "Adagrad Adam Momentum"},
    {"norm_coefficient_post", "Adam"},
    {"num_groups", "GroupNormalization"},
    {"num_heads", "RotaryEmbedding"},
    {"num_outputs", "Split@18"},
    {"num_scan_inputs", "Scan"},
    {"offset_group", "DeformConv"},
    {"onesided", "DFT STFT"},
    {"output_datatype", "BlackmanWindow HammingWindow HannWindow MelWeightMatrix"},
    {"output_dtype", "DequantizeLinear@23 QuantizeLinear@21"},
    {"output_height", "RoiAlign"},
    {"output_padding", "ConvTranspose"},
    {"output_sequence", "GRU<7 LSTM<7 RNN<7"},
    {"output_shape", "ConvTranspose"},
    {"output_width", "RoiAlign"},
    {"p", "GlobalLpPool LpNormalization LpPool"},
    {"padding_mode", "GridSample"},
    {"paddings", "Pad<2"},
    {"pads", "AveragePool Col2Im Conv ConvInteger ConvTranspose DeformConv LpPool MaxPool MaxUnpool Pad@2<11 "
             "QLinearConv"},
    {"periodic", "BlackmanWindow HammingWindow HannWindow"},
    {"perm", "Transpose"},
    {"precision", "QuantizeLinear@23"},
    {"q_num_heads", "Attention LinearAttention"},
    {"qk_matmul_output_mode", "Attention"},
    {"ratio", "Dropout<12"},
    {"reduction", "NegativeLogLikelihoodLoss ScatterElements@16 ScatterND@16 SoftmaxCrossEntropyLoss"},
    {"reverse", "CumProd CumSum"},
    {"rotary_embedding_dim", "RotaryEmbedding"},
    {"round_mode", "Cast@24 CastLike@24"},
    {"sample_size", "Multinomial"},
    {"sampling_ratio", "RoiAlign"},
    {"saturate", "Cast@19 CastLike@19 QuantizeLinear@19"},
    {"scale", "Attention LinearAttention RandomNormal RandomNormalLike"},
    {"scales", "Upsample@7<9"},
    {"scan_input_axes", "Scan@9"},
    {"scan_input_directions", "Scan@9"},
    {"scan_output_axes", "Scan@9"},
    {"scan_output_directions", "Scan@9"},
    {"seed", "Bernoulli Dropout@12 Multinomial RandomNormal RandomNormalLike RandomUniform RandomUniformLike"},
    {"select_last_index", "ArgMax@12 ArgMin@12"},
    {"shape", "RandomNormal RandomUniform Reshape<5"},
    {"size", "LRN"},
    {"softcap", "Attention"},
    {"softmax_precision", "Attention"},
    {"sorted", "TopK@11 Unique"},
    {"sparse_value", "Constant@11"},
    {"spatial", "BatchNormalization<9"},
    {"spatial_scale", "RoiAlign"},
    {"split", "Split<13"},
    {"start", "Shape@15"},
    {"starts", "Slice<10"},
    {"stash_type", "GroupNormalization@21 LayerNormalization RMSNormalization Range@27 SimplifiedLayerNormalization"},
    {"storage_order", "MaxPool@8"},
    {"strides", "AveragePool Col2Im Conv ConvInteger ConvTranspose DeformConv LpPool MaxPool MaxUnpool QLinearConv"},
    {"then_branch", "If"},
    {"time_axis", "ReverseSequence"},
    {"to", "BitCast Cast"},
    {"training_mode", "BatchNormalization@14"},
    {"transA", "Gemm"},
    {"transB", "Gemm"},
    {"type", "Optional"},
    {"update_rule", "LinearAttention"},
    {"upper", "Trilu"},
    {"value", "Constant ConstantOfShape Pad<11"},
    {"value_float", "Constant@12"},
    {"value_floats", "Constant@12"},
    {"value_int", "Constant@12"},
    {"value_ints", "Constant@12"},
    {"value_string", "Constant@12"},
    {"value_strings", "Constant@12"},
    {"width_scale", "Upsample<7"},
    {"xs", "Gradient"},
    {"y", "Gradient"},
    {"zs", "Gradient"},
};

static constexpr AttributeName microsoft[] = {
    {"K", "MatMulNBits"},
    {"N", "MatMulNBits"},
    {"accuracy_level", "MatMulNBits"},
    {"activation", "FusedConv FusedGemm"},
    {"activation_alpha", "DynamicQuantizeLSTM FusedGemm"},
    {"activation_beta", "DynamicQuantizeLSTM FusedGemm"},
    {"activation_gamma", "FusedGemm"},
    {"activation_params", "FusedConv"},
    {"activations", "DynamicQuantizeLSTM"},
    {"alpha", "FusedGemm FusedMatMul QGemm QLinearLeakyRelu QuickGelu TransposeMatMul"},
    {"auto_pad", "FusedConv QLinearAveragePool"},
    {"axis", "BiasSoftmax DequantizeLinear QuantizeLinear QLinearConcat QLinearSoftmax SimplifiedLayerNormalization"},
    {"beta", "FusedGemm"},
    {"bits", "MatMulNBits"},
    {"block_size", "MatMulNBits"},
    {"causal", "GroupQueryAttention"},
    {"ceil_mode", "QLinearAveragePool"},
    {"channels_last", "QLinearAveragePool QLinearGlobalAveragePool"},
    {"clip", "DynamicQuantizeLSTM"},
    {"count_include_pad", "QLinearAveragePool"},
    {"dilations", "FusedConv"},
    {"direction", "DynamicQuantizeLSTM"},
    {"do_rotary", "Attention GroupQueryAttention QAttention"},
    {"epsilon", "EmbedLayerNormalization QEmbedLayerNormalization SimplifiedLayerNormalization SkipLayerNormalization "
                "SkipSimplifiedLayerNormalization"},
    {"group", "FusedConv"},
    {"hidden_size", "DynamicQuantizeLSTM"},
    {"input_forget", "DynamicQuantizeLSTM"},
    {"interleaved", "RotaryEmbedding"},
    {"is_inner_broadcast", "BiasSoftmax"},
    {"is_packed_batching", "RotaryEmbedding"},
    {"k_quant_type", "GroupQueryAttention"},
    {"kernel_shape", "FusedConv QLinearAveragePool"},
    {"kv_cache_bit_width", "GroupQueryAttention"},
    {"kv_num_heads", "GroupQueryAttention"},
    {"local_window_size", "GroupQueryAttention"},
    {"mask_filter_value", "Attention MultiHeadAttention QAttention"},
    {"mask_index_type", "EmbedLayerNormalization"},
    {"num_heads", "Attention GroupQueryAttention MultiHeadAttention QAttention RotaryEmbedding"},
    {"opset", "QLinearSoftmax"},
    {"pads", "FusedConv QLinearAveragePool"},
    {"past_present_share_buffer", "Attention QAttention"},
    {"qk_norm_epsilon", "GroupQueryAttention"},
    {"qk_output", "GroupQueryAttention"},
    {"qkv_hidden_sizes", "Attention"},
    {"rotary_embedding_dim", "Attention RotaryEmbedding"},
    {"rotary_interleaved", "GroupQueryAttention"},
    {"scale", "Attention GroupQueryAttention MultiHeadAttention QAttention RotaryEmbedding"},
    {"sliding_window_cache", "GroupQueryAttention"},
    {"smooth_softmax", "GroupQueryAttention"},
    {"softcap", "GroupQueryAttention"},
    {"stash_type", "SimplifiedLayerNormalization"},
    {"strides", "FusedConv QLinearAveragePool"},
    {"transA", "FusedGemm FusedMatMul QGemm TransposeMatMul"},
    {"transB", "FusedGemm FusedMatMul QGemm TransposeMatMul"},
    {"transBatchA", "FusedMatMul"},
    {"transBatchB", "FusedMatMul"},
    {"unidirectional", "Attention MultiHeadAttention QAttention"},
    {"v_quant_type", "GroupQueryAttention"},
    {"weight_prepacked", "MatMulNBits"},
};

namespace {
struct Presence {
  StringRef attribute;
  int64_t since, until; // opsets
};
} // namespace

static llvm::StringMap<SmallVector<Presence>> index(ArrayRef<AttributeName> attributes) {
  llvm::StringMap<SmallVector<Presence>> byOperator;
  for (const AttributeName &attribute : attributes)
    for (StringRef entry : llvm::split(attribute.operators, " ")) {
      auto [rest, last] = entry.split('<');
      auto [op, first] = rest.split('@');
      int64_t since = 0, until = INT64_MAX;
      if ((!first.empty() && first.getAsInteger(10, since)) || (!last.empty() && last.getAsInteger(10, until)))
        llvm_unreachable("an opset of the table is no number");
      byOperator[op].push_back({attribute.name, since, until});
    }
  return byOperator;
}

SmallVector<StringRef> attributeNames(StringRef domain, StringRef op, int64_t version) {
  static const auto ofStandard = index(standard), ofMicrosoft = index(microsoft);
  SmallVector<StringRef> names;
  for (const Presence &presence : (domain == "com.microsoft" ? ofMicrosoft : ofStandard).lookup(op))
    if (!domain.empty() || (presence.since <= version && version < presence.until)) // opsets are of the default domain
      names.push_back(presence.attribute);
  return names;
}

} // namespace deepstride::onnx
