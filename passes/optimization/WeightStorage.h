// What ds-quantize-weights stores for the weight of a product: codes of 8 or 4 bits with scales, or floats of 16.
#ifndef DEEPSTRIDE_PASSES_OPTIMIZATION_WEIGHTSTORAGE_H
#define DEEPSTRIDE_PASSES_OPTIMIZATION_WEIGHTSTORAGE_H

#include "passes/Report.h"

#include "dialects/ds/DsDialect.h"
#include "dialects/ds/HostQuantization.h"
#include "dialects/ds/RecipeEvaluator.h"

namespace deepstride {

struct WeightOptions {
  QuantizationScheme how;
  std::string keep;
  bool isMixed = false;
  bool areRounded = false; // to bf16, by ds-round-products, where they are left as they are
};

/// The recipes of what stands for a weight, or the reason why it is kept.
struct StoredWeight {
  ds::RecipeOp halves;
  bool isLeft = false; // to ds-round-products
  ds::RecipeOp codes, scales, zeroPoints;
  int64_t group = 0;
  std::string reason;
};

class WeightStorage {
public:
  WeightStorage(mlir::ModuleOp module, WeightOptions options, PassReport &report);

  /// What the weight of a product, of f32, becomes: made when it is asked for first, with a remark at that product.
  const StoredWeight &of(ds::LinearOp op, ds::WeightOp weight);
  /// Whether a weight could not be read, which was diagnosed.
  bool isBroken() const { return broken; }
  /// Whether any weight has become something else.
  bool hasAny() const { return !errors.empty(); }
  /// Reports the ten weights that lost most, the worst first.
  void noteErrors();

private:
  void make(ds::LinearOp op, ds::RecipeOp recipe, mlir::RankedTensorType type, StoredWeight &stored);
  bool makeFloats(ds::LinearOp op, ds::RecipeOp recipe, mlir::RankedTensorType type, const HostTensor &elements,
                  const QuantizationError &coarse, StoredWeight &stored);
  llvm::StringRef reasonForFiner(ds::RecipeOp recipe, const HostTensor &elements, const QuantizationError &error,
                                 const QuantizationScheme &how, const QuantizationScheme &fine);
  ds::RecipeOp triangleOf(ds::RecipeOp recipe, int64_t depth);
  ds::RecipeOp extend(ds::RecipeOp recipe, ds::QuantizedPart part, mlir::RankedTensorType type,
                      const QuantizationScheme &how, const llvm::Twine &suffix, ds::RecipeOp against = {});
  void count(ds::RecipeOp recipe, int64_t before, int64_t after, bool isFiner, const QuantizationError &error);

  mlir::ModuleOp module;
  const WeightOptions options;
  PassReport &report;
  mlir::SymbolTable symbols;
  // Recipes that get finer steps, each with the reason: where that keeps codes what they are, and where not.
  llvm::DenseMap<mlir::Attribute, llvm::StringRef> sensitiveAlike, sensitive;
  mlir::DictionaryAttr triangles; // null without calibration
  RecipeEvaluator evaluator;
  llvm::DenseMap<mlir::Attribute, StoredWeight> known; // by recipe
  std::vector<std::pair<std::string, QuantizationError>> errors;
  bool broken = false;
};

} // namespace deepstride

#endif
