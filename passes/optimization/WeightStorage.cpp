#include "passes/optimization/WeightStorage.h"

#include "passes/optimization/Calibration.h"
#include "passes/optimization/SensitiveWeights.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace deepstride {

/// Of codes of 8 bits: sensitive weights in wider groups, or whole columns, become these.
static constexpr int64_t finestGroup = 32;
/// Whole columns of 8 bits lose 1.4 to 1.6 times what groups of 32 lose, and more with outliers.
static constexpr double outlying = 1.8;
/// What lies on a grid of codes already loses no more, but what rounding of its scale does.
static constexpr double nothing = 1e-6;

/// The bytes of codes, scales and zero points of a weight.
static int64_t bytesOf(RankedTensorType type, const QuantizationScheme &how) {
  int64_t depth = type.getDimSize(0), columns = type.getDimSize(1);
  int64_t groups = how.group ? llvm::divideCeil(depth, how.group) : 1;
  return llvm::divideCeil(depth * how.bits, 8) * columns + groups * columns * (how.isAsymmetric ? 5 : 4);
}

WeightStorage::WeightStorage(ModuleOp module, WeightOptions options, PassReport &report)
    : module(module), options(std::move(options)), report(report), symbols(module),
      triangles(module->getAttrOfType<DictionaryAttr>(trianglesAttr)) {
  if (!this->options.isMixed)
    return;
  sensitive = sensitiveWeights(module, this->options.keep, /*keepsType=*/false);
  sensitiveAlike = sensitiveWeights(module, this->options.keep, /*keepsType=*/true);
}

const StoredWeight &WeightStorage::of(ds::LinearOp op, ds::WeightOp weight) {
  auto [found, isNew] = known.try_emplace(weight.getRecipeAttr());
  if (isNew)
    make(op, symbols.lookup<ds::RecipeOp>(weight.getRecipe()), cast<RankedTensorType>(weight.getType()), found->second);
  return found->second;
}

void WeightStorage::make(ds::LinearOp op, ds::RecipeOp recipe, RankedTensorType type, StoredWeight &stored) {
  int64_t depth = type.getDimSize(0), columns = type.getDimSize(1);
  auto perColumn = [&](int64_t group) { return group < depth ? group : 0; }; // a group of all rows is a column
  QuantizationScheme how{options.how.bits, perColumn(options.how.group), options.how.isAsymmetric};
  int64_t before = depth * columns * 4;
  if (int64_t after = bytesOf(type, how); after >= before) {
    stored.reason = llvm::formatv("codes and scales take {0} bytes, its elements {1}", after, before);
    return;
  }
  auto elements = evaluator.evaluate(recipe);
  if (failed(elements)) { // which was diagnosed
    stored.reason = "its elements cannot be read";
    broken = true;
    return;
  }
  ds::RecipeOp against = triangleOf(recipe, depth);
  FailureOr<HostTensor> triangle = failure();
  if (against && failed(triangle = evaluator.evaluate(against))) {
    stored.reason = "its triangle cannot be read";
    broken = true;
    return;
  }
  StringRef finer;
  auto error = quantizationError(*elements, how); // to nearest
  if (error && options.isMixed) {
    // Nothing is finer than short groups of codes of 8 bits but floats.
    bool areShort = how.bits == 8 && options.how.group > 0 && std::min(options.how.group, depth) <= finestGroup;
    if (areShort && makeFloats(op, recipe, type, *elements, *error, stored))
      return;
    QuantizationScheme fine{8, perColumn(how.bits == 8 || !how.group ? finestGroup : how.group), how.isAsymmetric};
    if (!areShort && bytesOf(type, fine) < before)
      finer = reasonForFiner(recipe, *elements, *error, how, fine);
    // Beside 4 bits all of 8 bits lose little: scales of groups pay for outliers only.
    QuantizationScheme columnwise{8, 0, how.isAsymmetric};
    if (!finer.empty() && how.bits < 8)
      if (auto whole = quantizationError(*elements, columnwise), parts = quantizationError(*elements, fine);
          whole && parts && whole->relative <= outlying * parts->relative)
        fine = columnwise;
    if (!finer.empty())
      how = fine;
  }
  if (error && (against || !finer.empty()))
    error = quantizationError(*elements, how, against ? &*triangle : nullptr);
  if (!error) {
    stored.reason = "it has elements that are not finite, or would not be as codes";
    return;
  }
  if (error->areScalesApart) {
    stored.reason = "the scales of its groups are too far apart to be summed in f32"; // all are finite, as it is
    return;
  }
  stored.group = how.group;
  int64_t groups = how.group ? llvm::divideCeil(depth, how.group) : 1, after = bytesOf(type, how);
  auto integer = [&](int64_t width) { return IntegerType::get(module.getContext(), static_cast<unsigned>(width)); };
  stored.codes =
      extend(recipe, ds::QuantizedPart::codes, type.clone(integer(how.bits)), how, "int" + Twine(how.bits), against);
  auto perGroup = RankedTensorType::get({groups, columns}, type.getElementType());
  stored.scales = extend(recipe, ds::QuantizedPart::scales, perGroup, how, "scales");
  if (how.isAsymmetric)
    stored.zeroPoints = extend(recipe, ds::QuantizedPart::zero_points, perGroup.clone(integer(8)), how, "zero_points");
  std::string ways = llvm::formatv("{0} bits", how.bits);
  if (!finer.empty() && how.group)
    ways += llvm::formatv(", in groups of {0}", how.group);
  if (!finer.empty())
    ways += llvm::formatv(", being {0}", finer);
  op.emitRemark() << llvm::formatv("weight '{0}' in {1}: {2} bytes become {3}, {4}", recipe.getSymName(), ways, before,
                                   after, describe(*error))
                         .str();
  count(recipe, before, after, !finer.empty(), *error);
  if (triangles)
    report.count(against ? "calibrated" : "to nearest");
  if (triangles && !against)
    op.emitRemark()
        << "weight '" << recipe.getSymName()
        << "' is rounded to nearest: calibration met no rows of its products, as of those inside branches and loops";
}

/// Makes floats of 16 bits of a sensitive weight that loses so much as codes, if it loses less that way.
bool WeightStorage::makeFloats(ds::LinearOp op, ds::RecipeOp recipe, RankedTensorType type, const HostTensor &elements,
                               const QuantizationError &coarse, StoredWeight &stored) {
  auto found = sensitive.find(FlatSymbolRefAttr::get(recipe));
  if (found == sensitive.end() || coarse.relative < nothing)
    return false;
  Builder types(module.getContext());
  auto narrow = options.areRounded ? cast<FloatType>(types.getBF16Type()) : cast<FloatType>(types.getF16Type());
  auto error = roundingError(elements, narrow);
  if (!error || error->relative >= coarse.relative)
    return false;
  stored.isLeft = options.areRounded;
  if (!stored.isLeft) {
    auto clone = cast<ds::RecipeOp>(recipe->clone());
    clone.setSymName((recipe.getSymName() + ".f16").str());
    auto yield = cast<ds::YieldOp>(clone.getBody().front().back());
    OpBuilder builder(yield);
    yield->setOperand(0, ds::CastOp::create(builder, recipe.getLoc(), type.clone(narrow), yield.getOperand(0),
                                            TypeAttr::get(narrow)));
    symbols.insert(clone, recipe->getIterator());
    stored.halves = clone;
  }
  int64_t before = type.getNumElements() * 4;
  op.emitRemark() << llvm::formatv("weight '{0}' in {1}, being {2}: {3} bytes become {4}, {5}", recipe.getSymName(),
                                   stored.isLeft ? "bf16, as its rows" : "f16", found->second, before, before / 2,
                                   describe(*error))
                         .str();
  count(recipe, before, before / 2, /*isFiner=*/true, *error);
  return true;
}

void WeightStorage::count(ds::RecipeOp recipe, int64_t before, int64_t after, bool isFiner,
                          const QuantizationError &error) {
  errors.push_back({recipe.getSymName().str(), error});
  report.count("weights quantized");
  if (options.isMixed)
    report.count("in finer steps", isFiner ? 1 : 0);
  report.count("bytes before", before);
  report.count("bytes after", after);
}

/// Why a weight that loses so much as one kind of codes becomes another; empty: it does not.
StringRef WeightStorage::reasonForFiner(ds::RecipeOp recipe, const HostTensor &elements, const QuantizationError &error,
                                        const QuantizationScheme &how, const QuantizationScheme &fine) {
  if (error.relative < nothing || (how.bits == fine.bits && how.group == fine.group))
    return "";
  const auto &reasons = how.bits == fine.bits ? sensitiveAlike : sensitive;
  auto found = reasons.find(FlatSymbolRefAttr::get(recipe));
  if (found != reasons.end())
    return found->second;
  if (how.bits < fine.bits)
    return "";
  auto less = quantizationError(elements, fine);
  return less && error.relative > outlying * less->relative ? "a weight with outliers" : "";
}

/// What the codes of a weight with so many rows are rounded against; null: to nearest.
ds::RecipeOp WeightStorage::triangleOf(ds::RecipeOp recipe, int64_t depth) {
  auto name = triangles ? triangles.getAs<FlatSymbolRefAttr>(recipe.getSymName()) : FlatSymbolRefAttr();
  auto triangle = name ? symbols.lookup<ds::RecipeOp>(name.getValue()) : ds::RecipeOp();
  auto type = RankedTensorType::get({depth, depth}, Float32Type::get(module.getContext()));
  return triangle && triangle.getYielded().getType() == type ? triangle : ds::RecipeOp();
}

ds::RecipeOp WeightStorage::extend(ds::RecipeOp recipe, ds::QuantizedPart part, RankedTensorType type,
                                   const QuantizationScheme &how, const Twine &suffix, ds::RecipeOp against) {
  auto clone = cast<ds::RecipeOp>(recipe->clone());
  clone.setSymName((recipe.getSymName() + "." + suffix).str());
  auto yield = cast<ds::YieldOp>(clone.getBody().front().back());
  OpBuilder builder(yield);
  Value triangle;
  if (against) {
    IRMapping map;
    for (Operation &inner : against.getBody().front().without_terminator())
      builder.clone(inner, map);
    triangle = map.lookup(against.getYielded());
  }
  yield->setOperand(0, ds::QuantizeWeightOp::create(builder, recipe.getLoc(), type, part, yield.getOperand(0), triangle,
                                                    how.bits, how.group, how.isAsymmetric));
  symbols.insert(clone, recipe->getIterator());
  return clone;
}

void WeightStorage::noteErrors() {
  constexpr size_t shown = 10;
  llvm::sort(errors, [](const auto &a, const auto &b) {
    return std::pair(-a.second.relative, a.first) < std::pair(-b.second.relative, b.first);
  });
  for (const auto &[name, error] : ArrayRef(errors).take_front(shown))
    report.note("  " + name + ": " + describe(error));
}

} // namespace deepstride
