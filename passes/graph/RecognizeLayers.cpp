// ds-recognize-layers: tells the layers of a transformer, one line each, for the report. It reads attention, norms and
// activations in program order: a layer begins with an attention, after the activation that ends the one before, and
// takes in the norms in front of it whose operand the residual stream passes by. Names play no part.
//
//   norm, attention, norm, activation, norm, ...      =>  layer 0: attention (causal), layer norm x2, gelu tanh
#include "passes/Report.h"
#include "passes/graph/Layers.h"
#include "passes/graph/Passes.h"

using namespace mlir;

namespace deepstride {

#define GEN_PASS_DEF_RECOGNIZELAYERS
#include "passes/graph/Passes.h.inc"

namespace {
struct Layer {
  SmallVector<std::string> attentions, left;
  bool hasSelf = false, hasCross = false, beginsWithNorm = false;
  unsigned layerNorms = 0, rmsNorms = 0;
  std::string activation;
};

struct RecognizeLayers : impl::RecognizeLayersBase<RecognizeLayers>, PassReport {
  void runOnOperation() override {
    layers.clear();
    waiting.clear();
    headNorms.clear();
    if (getOperation().isExternal())
      return;
    SmallVector<Operation *> ops;
    getOperation().walk([&](Operation *op) {
      ops.push_back(op);
      if (auto attention = dyn_cast<ds::AttentionOp>(op))
        headNorms.insert_range(findHeadNorms(attention));
    });
    for (Operation *op : ops)
      read(op);
    report();
  }

  void read(Operation *op) {
    if (auto attention = dyn_cast<ds::AttentionOp>(op)) {
      bool isSelf = isSelfAttention(attention);
      Layer &layer = layerOfAttention(isSelf, !isSelf);
      std::string features = describeAttention(attention);
      layer.attentions.push_back(std::string(isSelf ? "attention" : "cross attention") +
                                 (features.empty() ? "" : " (" + features + ")"));
    } else if (auto reason = op->getAttrOfType<StringAttr>(leftAttr)) {
      op->removeDiscardableAttr(leftAttr);
      // A product that was nearly an attention takes its place, whichever kind it is.
      Layer *layer = isa<ds::MatmulOp>(op) ? &layerOfAttention(false, false)
                     : layers.empty()      ? nullptr
                                           : &layers.back();
      if (layer && !llvm::is_contained(layer->left, reason.getValue()))
        layer->left.push_back(reason.str());
    } else if (isa<ds::LayerNormOp, ds::RmsNormOp>(op)) {
      readNorm(op);
    } else if (std::string activation = describeActivation(op); !activation.empty()) {
      if (!layers.empty() && layers.back().activation.empty())
        layers.back().activation = activation;
    }
  }

  Layer &layerOfAttention(bool isSelf, bool isCross) {
    bool begins = layers.empty() || !layers.back().activation.empty() || (isSelf && layers.back().hasSelf) ||
                  (isCross && layers.back().hasCross);
    if (begins) {
      layers.emplace_back();
      for (Operation *norm : waiting)
        countNorm(layers.back(), norm);
      layers.back().beginsWithNorm = !waiting.empty();
      waiting.clear();
    }
    layers.back().hasSelf |= isSelf;
    layers.back().hasCross |= isCross;
    return layers.back();
  }

  static void countNorm(Layer &layer, Operation *norm) {
    ++(isa<ds::LayerNormOp>(norm) ? layer.layerNorms : layer.rmsNorms);
  }

  void readNorm(Operation *norm) {
    if (headNorms.contains(norm))
      return;
    if (!layers.empty() && layers.back().activation.empty())
      return countNorm(layers.back(), norm);
    Value input = norm->getOperand(0);
    if (!input.hasOneUse())
      return waiting.push_back(norm);
    // The norm of the embeddings belongs to no layer, nor does the one behind layers that begin with their own.
    bool isFinal = layers.empty() || (layers.back().beginsWithNorm && binaryOf(input, ds::BinaryKind::add));
    if (!isFinal)
      countNorm(layers.back(), norm);
  }

  void report() {
    count("layers", layers.size());
    if (layers.empty())
      return;
    count("recomposed", llvm::count_if(layers, [](const Layer &layer) { return layer.left.empty(); }));
    for (const auto &[number, layer] : llvm::enumerate(layers)) {
      SmallVector<std::string> parts(layer.attentions);
      auto addNorms = [&](StringRef name, unsigned times) {
        if (times > 0)
          parts.push_back(name.str() + (times > 1 ? " x" + std::to_string(times) : ""));
      };
      addNorms("layer norm", layer.layerNorms);
      addNorms("rms norm", layer.rmsNorms);
      if (!layer.activation.empty())
        parts.push_back(layer.activation);
      llvm::append_range(parts, layer.left);
      note("layer " + std::to_string(number) + ": " + llvm::join(parts, ", "));
    }
  }

  SmallVector<Layer> layers;
  SmallVector<Operation *> waiting; // norms in front of the next attention
  llvm::DenseSet<Operation *> headNorms;
};
} // namespace

} // namespace deepstride
