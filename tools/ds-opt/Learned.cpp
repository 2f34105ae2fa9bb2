#include "tools/ds-opt/Learned.h"

#include "dialects/ds/DsDialect.h"
#include "dialects/ds/UnitAttrs.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace deepstride {

/// Calls `use` with the name and sizes of each tensor that is trained: a state of its own, or one in a unit of which
/// ranks hold parts.
template <typename Use> static void forEachLearned(ModuleOp module, Use use) {
  for (auto function : module.getOps<func::FuncOp>()) {
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      if (function.getArgAttr(i, ds::initialAttr))
        if (auto sizes = sizesFromAttribute(function.getArgAttrOfType<ArrayAttr>(i, ds::dimsAttr)))
          use(function.getArgAttrOfType<StringAttr>(i, ds::stateAttr).getValue(), *sizes);
    if (auto units = function->getAttrOfType<ArrayAttr>(ds::unitsAttr))
      for (auto unit : units.getAsRange<DictionaryAttr>())
        for (auto tensor : unit.getAs<ArrayAttr>("tensors").getAsRange<DictionaryAttr>())
          if (auto sizes = sizesFromAttribute(tensor.getAs<ArrayAttr>("shape")))
            use(tensor.getAs<StringAttr>("name").getValue(), *sizes);
  }
}

std::vector<onnx::LearnedTensor> learnedTensors(ModuleOp module) {
  std::vector<onnx::LearnedTensor> learned;
  llvm::StringSet<> names;
  forEachLearned(module, [&](StringRef name, const SizeVector &) {
    if (names.insert(name).second)
      learned.push_back({name.str(), name.str(), /*isTransposed=*/false});
  });
  if (auto tied = module->getAttrOfType<DictionaryAttr>(ds::tiedAttr))
    for (NamedAttribute entry : tied) {
      auto kept = cast<DictionaryAttr>(entry.getValue());
      std::string of = kept.getAs<StringAttr>("of").str();
      if (names.contains(of)) // otherwise neither is trained
        learned.push_back({entry.getName().str(), of, kept.getAs<BoolAttr>("transposed").getValue()});
    }
  return learned;
}

int64_t headFeatures(ModuleOp module) {
  int64_t features = 0;
  forEachLearned(module, [&](StringRef name, const SizeVector &sizes) {
    if (name == "head.weight")
      features = sizes.front().constant().value_or(0);
  });
  return features;
}

bool keepGraph(ModuleOp module, const DriverOptions &options, PackageWriter &package) {
  const std::string &model = options.origin();
  if (!options.training.isOn || !StringRef(model).ends_with(".onnx"))
    return true;
  auto graph = onnx::graphWithout(model, learnedTensors(module),
                                  {options.training.head, options.training.classes, headFeatures(module)});
  if (!graph) {
    emitError(module.getLoc()) << "what is trained could not be exported to ONNX: " << llvm::toString(graph.takeError())
                               << "; --train and --freeze choose what is trained";
    return false;
  }
  if (graph->excess.empty())
    return succeeded(package.addFile("graph-without-parameters.onnx", graph->bytes, module.getLoc()));
  emitWarning(module.getLoc()) << "what is trained can be exported to safetensors, but not to ONNX: " << graph->excess;
  return true;
}

} // namespace deepstride
