// The table of patterns: which function converts which operator, by domain, name and the opset that introduced the
// meaning it implements.
#ifndef DEEPSTRIDE_FRONTENDS_ONNX_CONVERT_REGISTRY_H
#define DEEPSTRIDE_FRONTENDS_ONNX_CONVERT_REGISTRY_H

#include "frontends/onnx/convert/Node.h"
#include "llvm/ADT/StringMap.h"

#include <functional>
#include <map>

namespace deepstride::onnx {

/// One value per output of the node; absent outputs may be null. Empty after a diagnostic.
using Convert = std::function<Values(Node &)>;

struct Pattern {
  unsigned requiredInputs; // the first inputs, which must be present
  Convert convert;
  bool takesSequences = false; // operands may be sequences and optionals (Sequences.h)
  /// Floats of 16 bits are computed with in f32 and rounded once, at the end: attributes and differences keep their
  /// digits and squares are in range. All float results have the type of operand 0.
  bool inFloat32 = false;
};

class PatternRegistry {
public:
  /// All patterns of all families.
  static const PatternRegistry &get();

  Pattern &add(llvm::StringRef name, int64_t since, unsigned requiredInputs, Convert convert,
               llvm::StringRef domain = "");
  /// The pattern with the greatest opset that is not newer than `version`.
  const Pattern *lookUp(llvm::StringRef domain, llvm::StringRef name, int64_t version) const;
  /// The oldest opset that has a pattern, if any has.
  std::optional<int64_t> oldest(llvm::StringRef domain, llvm::StringRef name) const;

private:
  static std::string key(llvm::StringRef domain, llvm::StringRef name) { return (domain + ":" + name).str(); }
  llvm::StringMap<std::map<int64_t, Pattern>> patterns;
};

/// How many inputs an operator of the standard takes at most; nothing where it takes any number or is no such operator.
std::optional<unsigned> mostInputs(llvm::StringRef domain, llvm::StringRef name, int64_t version);

/// The attributes, graphs among them, that an operator with a pattern has at an opset.
llvm::SmallVector<llvm::StringRef> attributeNames(llvm::StringRef domain, llvm::StringRef op, int64_t version);

// One function per family, each in the file of that name.
void addActivations(PatternRegistry &registry);
void addAttention(PatternRegistry &registry);
void addControlFlow(PatternRegistry &registry);
void addConvolutions(PatternRegistry &registry);
void addEinsum(PatternRegistry &registry);
void addElementwise(PatternRegistry &registry);
void addGenerators(PatternRegistry &registry);
void addGradient(PatternRegistry &registry);
void addIndexing(PatternRegistry &registry);
void addLayouts(PatternRegistry &registry);
void addLinearAttention(PatternRegistry &registry);
void addLoops(PatternRegistry &registry);
void addLosses(PatternRegistry &registry);
void addMicrosoftAttention(PatternRegistry &registry);
void addMicrosoftGroupQuery(PatternRegistry &registry);
void addMicrosoftNormalizations(PatternRegistry &registry);
void addMicrosoftProducts(PatternRegistry &registry);
void addMicrosoftQuantization(PatternRegistry &registry);
void addNormalizations(PatternRegistry &registry);
void addOverlaps(PatternRegistry &registry);
void addPooling(PatternRegistry &registry);
void addProducts(PatternRegistry &registry);
void addQuantization(PatternRegistry &registry);
void addRandom(PatternRegistry &registry);
void addRecurrent(PatternRegistry &registry);
void addReductions(PatternRegistry &registry);
void addResize(PatternRegistry &registry);
void addSampling(PatternRegistry &registry);
void addSelection(PatternRegistry &registry);
void addSequences(PatternRegistry &registry);
void addSignal(PatternRegistry &registry);
void addSlicing(PatternRegistry &registry);
void addTraining(PatternRegistry &registry);

} // namespace deepstride::onnx

#endif
