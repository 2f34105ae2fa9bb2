// Look-up by operator and opset.
#include "frontends/onnx/convert/Registry.h"

namespace deepstride::onnx {

Pattern &PatternRegistry::add(llvm::StringRef name, int64_t since, unsigned requiredInputs, Convert convert,
                              llvm::StringRef domain) {
  auto [entry, isNew] = patterns[key(domain, name)].try_emplace(since, Pattern{requiredInputs, std::move(convert)});
  (void)isNew;
  assert(isNew && "one pattern per operator and opset");
  return entry->second;
}

const Pattern *PatternRegistry::lookUp(llvm::StringRef domain, llvm::StringRef name, int64_t version) const {
  auto found = patterns.find(key(domain, name));
  if (found == patterns.end())
    return nullptr;
  auto next = found->second.upper_bound(version);
  return next == found->second.begin() ? nullptr : &std::prev(next)->second;
}

std::optional<int64_t> PatternRegistry::oldest(llvm::StringRef domain, llvm::StringRef name) const {
  auto found = patterns.find(key(domain, name));
  if (found == patterns.end())
    return std::nullopt;
  return found->second.begin()->first;
}

const PatternRegistry &PatternRegistry::get() {
  static const PatternRegistry all = [] {
    PatternRegistry registry;
    for (auto add : {addActivations,
                     addAttention,
                     addEinsum,
                     addLosses,
                     addQuantization,
                     addControlFlow,
                     addConvolutions,
                     addElementwise,
                     addGenerators,
                     addGradient,
                     addIndexing,
                     addLayouts,
                     addLoops,
                     addRecurrent,
                     addSequences,
                     addNormalizations,
                     addPooling,
                     addProducts,
                     addReductions,
                     addResize,
                     addSlicing,
                     addMicrosoftAttention,
                     addMicrosoftGroupQuery,
                     addMicrosoftNormalizations,
                     addMicrosoftProducts,
                     addMicrosoftQuantization,
                     addRandom,
                     addTraining,
                     addLinearAttention,
                     addOverlaps,
                     addSampling,
                     addSelection,
                     addSignal})
      add(registry);
    return registry;
  }();
  return all;
}

} // namespace deepstride::onnx
