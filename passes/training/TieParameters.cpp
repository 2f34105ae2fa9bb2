// ds-tie-parameters: a weight that a model stores twice, the second time perhaps transposed, becomes one. PyTorch's
// exporters write the shared table of a language model once for the embedding and once more for the head. Works on a
// module before ds-promote-parameters, while weights are recipes.
//
//   %a = ds.weight @wte : tensor<61x32xf32>          %a = ds.weight @wte : tensor<61x32xf32>
//   %b = ds.weight @head : tensor<32x61xf32>   =>    %b = ds.transpose %a [1, 0]
#include "dialects/ds/RecipeEvaluator.h"
#include "passes/Report.h"
#include "passes/training/Passes.h"
#include "passes/training/Roles.h"

#include <cstring>

using namespace mlir;

namespace deepstride {

#define GEN_PASS_DEF_TIEPARAMETERS
#include "passes/training/Passes.h.inc"

namespace {

/// Sums that do not depend on the order of elements, by which most tensors differ from each other.
struct Fingerprint {
  uint64_t sum = 0, mixed = 0;
  bool isUniform = true; // all elements have the same bits: such tensors merely start equal
  bool operator==(const Fingerprint &other) const { return sum == other.sum && mixed == other.mixed; }
};

Fingerprint fingerprintOf(const HostTensor &tensor) {
  Fingerprint result;
  int64_t width = tensor.elementBytes();
  for (int64_t i = 0; i < tensor.count(); ++i) {
    uint64_t bits = 0;
    std::memcpy(&bits, tensor.data + i * width, static_cast<size_t>(width));
    result.sum += bits;
    result.mixed += (bits ^ (bits >> 7)) * 0x9e3779b97f4a7c15;
    result.isUniform &= std::memcmp(tensor.data, tensor.data + i * width, static_cast<size_t>(width)) == 0;
  }
  return result;
}

bool isSame(const HostTensor &a, const HostTensor &b) {
  return a.shape == b.shape && std::memcmp(a.data, b.data, static_cast<size_t>(a.bytes())) == 0;
}

bool isTransposed(const HostTensor &a, const HostTensor &b) {
  if (a.shape.size() != 2 || b.shape.size() != 2 || a.shape[0] != b.shape[1] || a.shape[1] != b.shape[0])
    return false;
  auto width = static_cast<size_t>(a.elementBytes());
  int64_t rows = a.shape[0], columns = a.shape[1];
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < columns; ++column)
      if (std::memcmp(a.data + static_cast<size_t>(row * columns + column) * width,
                      b.data + static_cast<size_t>(column * rows + row) * width, width) != 0)
        return false;
  return true;
}

enum class Sameness { None, Same, Transposed };

struct Candidate {
  ds::RecipeOp recipe;
  SmallVector<ds::WeightOp> uses;
  Fingerprint fingerprint;
  bool isStored() {
    return recipe.walk([](ds::SourceOp) { return WalkResult::interrupt(); }).wasInterrupted();
  }
  /// From the same bytes of the same file, in the same way.
  bool isStoredLike(Candidate &other) {
    return OperationEquivalence::isRegionEquivalentTo(&recipe->getRegion(0), &other.recipe->getRegion(0),
                                                      OperationEquivalence::IgnoreLocations);
  }
  bool isTable() const { // where rows are chosen from, whose layout is the embedding's
    return llvm::any_of(uses, [](ds::WeightOp use) {
      return llvm::any_of(use->getUses(), [](OpOperand &operand) {
        return isa<ds::GatherOp>(operand.getOwner()) && operand.getOperandNumber() == 0;
      });
    });
  }
};

struct TieParameters : impl::TieParametersBase<TieParameters>, PassReport {
  using Base::Base;

  void runOnOperation() override {
    count("tied", 0);
    SmallVector<Candidate> candidates = find();
    RecipeEvaluator evaluator;
    llvm::SmallDenseSet<unsigned> gone;
    NamedAttrList tied;
    for (unsigned i = 0; i < candidates.size(); ++i) {
      if (failed(look(candidates[i], evaluator)))
        return signalPassFailure();
      if (candidates[i].fingerprint.isUniform) {
        warnOfShared(candidates[i]);
        continue;
      }
      for (unsigned j = 0; j < i; ++j) {
        if (gone.contains(j))
          continue;
        auto same = compare(candidates[j], candidates[i], evaluator);
        if (failed(same))
          return signalPassFailure();
        if (*same == Sameness::None)
          continue;
        bool keepsFirst = candidates[j].isTable() || !candidates[i].isTable();
        unsigned kept = keepsFirst ? j : i, other = keepsFirst ? i : j;
        if (unties)
          return; // there is one
        tie(candidates[other], candidates[kept], *same == Sameness::Transposed, tied);
        gone.insert(other);
        if (gone.contains(i))
          break;
      }
    }
    if (unties && !places) { // by places alone, nobody knows
      getOperation().emitError() << "--untie: expected a weight that the model stores twice, found none";
      return signalPassFailure();
    }
    if (!tied.empty())
      getOperation()->setAttr(ds::tiedAttr, tied.getDictionary(&getContext()));
  }

  /// By places, what is in a file stays unread.
  bool isUnread(Candidate &candidate) const { return places && candidate.isStored(); }

  LogicalResult look(Candidate &candidate, RecipeEvaluator &evaluator) {
    if (isUnread(candidate)) {
      candidate.fingerprint.isUniform = false;
      return success();
    }
    auto value = evaluator.evaluate(candidate.recipe);
    if (succeeded(value))
      candidate.fingerprint = fingerprintOf(*value);
    return success(succeeded(value));
  }

  FailureOr<Sameness> compare(Candidate &first, Candidate &second, RecipeEvaluator &evaluator) {
    if (isUnread(first) || isUnread(second))
      return first.isStoredLike(second) ? Sameness::Same : Sameness::None;
    if (first.fingerprint.isUniform || !(first.fingerprint == second.fingerprint))
      return Sameness::None;
    auto a = evaluator.evaluate(first.recipe), b = evaluator.evaluate(second.recipe);
    if (failed(a) || failed(b))
      return failure();
    return isSame(*a, *b) ? Sameness::Same : isTransposed(*a, *b) ? Sameness::Transposed : Sameness::None;
  }

  /// Exporters for inference store tensors of a fresh model once that merely start equal: biases of 0, scales of 1.
  void warnOfShared(Candidate &candidate) {
    llvm::SmallPtrSet<const void *, 4> layers;
    for (ds::WeightOp use : candidate.uses)
      for (OpOperand &operand : use->getUses())
        if (!roleAt(operand).empty())
          layers.insert(layerOf(operand));
    if (layers.size() > 1)
      candidate.uses.front()->emitWarning()
          << "'" << candidate.recipe.getSymName() << "' holds one number and is a parameter in " << layers.size()
          << " places: they are trained as one; exporters for training store parameters that start equal apart";
  }

  /// What tells layers apart that read one tensor: the weight beside a bias, whose layer may be applied several times,
  /// else the ONNX node.
  static const void *layerOf(OpOperand &bias) {
    for (Value other : bias.getOwner()->getOperands())
      if (Operation *product = other == bias.get() ? nullptr : other.getDefiningOp())
        for (Value operand : product->getOperands())
          if (auto weight = operand.getDefiningOp<ds::WeightOp>())
            return weight.getRecipeAttr().getAsOpaquePointer();
    return bias.getOwner()->getLoc().getAsOpaquePointer();
  }

  /// The weights of the entries in the order of their first readers, but for running statistics, which move each on its
  /// own.
  SmallVector<Candidate> find() {
    SmallVector<Candidate> candidates;
    llvm::DenseMap<Attribute, unsigned> known;
    llvm::SmallDenseSet<Attribute> running;
    getOperation().walk([&](ds::WeightOp weight) {
      if (isRunning(weight))
        running.insert(weight.getRecipeAttr());
    });
    for (auto function : getOperation().getOps<func::FuncOp>())
      function.walk([&](ds::WeightOp weight) {
        auto type = cast<RankedTensorType>(weight.getType());
        auto element = dyn_cast<FloatType>(type.getElementType());
        if (!element || element.getWidth() < 32 || type.getNumElements() < 2 ||
            running.contains(weight.getRecipeAttr()))
          return;
        auto [place, isNew] = known.try_emplace(weight.getRecipeAttr(), candidates.size());
        if (isNew)
          candidates.push_back({getOperation().lookupSymbol<ds::RecipeOp>(weight.getRecipe()), {}, {}});
        candidates[place->second].uses.push_back(weight);
      });
    return candidates;
  }

  void tie(Candidate &other, Candidate &kept, bool transposes, NamedAttrList &tied) {
    OpBuilder builder(&getContext());
    count("tied");
    StringRef name = other.recipe.getSymName(), keptName = kept.recipe.getSymName();
    other.uses.front()->emitRemark() << "'" << name << "' is '" << keptName << "'" << (transposes ? ", transposed" : "")
                                     << ": one parameter; --untie trains two";
    auto entryOf = [&](bool isTransposed) {
      return builder.getDictionaryAttr({builder.getNamedAttr("of", builder.getStringAttr(keptName)),
                                        builder.getNamedAttr("transposed", builder.getBoolAttr(isTransposed))});
    };
    // An entry names what is trained: what was tied to this weight belongs to the one that it is tied to itself.
    for (NamedAttribute earlier : SmallVector<NamedAttribute>(tied.getAttrs())) {
      auto entry = cast<DictionaryAttr>(earlier.getValue());
      if (entry.getAs<StringAttr>("of").getValue() == name)
        tied.set(earlier.getName(), entryOf(entry.getAs<BoolAttr>("transposed").getValue() != transposes));
    }
    tied.set(name, entryOf(transposes));
    SmallVector<ds::WeightOp> moved;
    for (ds::WeightOp use : other.uses) {
      builder.setInsertionPoint(use);
      Type type = kept.uses.front().getType();
      auto weight = ds::WeightOp::create(builder, use.getLoc(), type, kept.uses.front().getRecipeAttr());
      Value value = weight;
      if (transposes)
        value = ds::TransposeOp::create(builder, use.getLoc(), use.getType(), weight, ArrayRef<int64_t>{1, 0});
      use.getResult().replaceAllUsesWith(value);
      use.erase();
      moved.push_back(weight);
    }
    kept.uses.append(moved);
    other.uses.clear();
    other.recipe.erase();
  }
};
} // namespace

} // namespace deepstride
