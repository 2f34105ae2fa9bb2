// One onnx.node as its pattern sees it: operands that are already ds values, attributes and shape-like operands with
// their types checked. What is missing or ill-typed becomes a diagnostic that names the node, what was found and what
// would be legal; a pattern then only returns what `refuse` gives it.
#ifndef DEEPSTRIDE_FRONTENDS_ONNX_CONVERT_NODE_H
#define DEEPSTRIDE_FRONTENDS_ONNX_CONVERT_NODE_H

#include "dialects/ds/DsBuilder.h"
#include "frontends/onnx/dialect/Onnx.h"

namespace deepstride::onnx {
using ::deepstride::onnx::NodeOp;

/// What a pattern returns after a diagnostic; stands for any result. It is no bool: an optional number could be made of
/// that.
struct Refused {
  operator mlir::Value() const { return {}; }
  operator Values() const { return {}; }
  // The first two are no specializations and bind to rvalues, to win over an optional's constructor from what its
  // element can be made of; other elements for which that is so do not compile.
  operator std::optional<mlir::Value>() && { return std::nullopt; }
  operator std::optional<Values>() && { return std::nullopt; }
  template <typename T> operator std::optional<T>() && { return std::nullopt; }
};

/// What patterns with subgraphs and weights need of the conversion as a whole.
class GraphContext {
public:
  virtual ~GraphContext() = default;
  /// A constant, or a weight where the value is large, may be learned, or `isWeight`; null after a diagnostic.
  virtual mlir::Value importTensor(mlir::TypedAttr value, llvm::StringRef name, bool isWeight = false) = 0;
  /// Converts the ops of a subgraph at the builder's insertion point and returns its outputs; nothing where one of
  /// them could not be converted.
  virtual std::optional<Values> convertBody(mlir::Region &body) = 0;
  /// What an argument of a subgraph stands for when its body is converted next.
  virtual void bind(mlir::Value argument, mlir::Value value) = 0;
  /// Runs a conversion that may fail: if it does, its diagnostics and the ops that it made are gone.
  virtual bool attempt(llvm::function_ref<bool()> convert) = 0;
  /// Converts nodes once more with other values in the place of some, and gives what then stands for `result`; null
  /// where that could not be converted. Afterwards every value stands for what it stood for before. Ops get the names
  /// of ONNX values only where `isSame` says that they compute the same.
  virtual mlir::Value convertAgain(llvm::ArrayRef<NodeOp> nodes,
                                   llvm::ArrayRef<std::pair<mlir::Value, mlir::Value>> bindings, mlir::Value result,
                                   bool isSame) = 0;
  /// A symbol for a size that the compiled code computes; unique in the entry.
  virtual std::string newCountSymbol() = 0;
  /// What the outcome that is being converted says of a condition, one bool; nothing where it leaves it open.
  virtual std::optional<bool> assumed(mlir::Value condition) = 0;
  /// For branches that no code can choose between: has the model converted once for each outcome of the condition, or
  /// of the first one around it (`enclosing`) that is known before a call. What is being converted is dropped then.
  /// False where the condition is not known before a call.
  virtual bool splitBy(mlir::Value condition) = 0;

  llvm::SmallVector<mlir::Value> enclosing; // conditions of the run-time branches that are being converted
  bool trains = false;                      // what is converted is to be trained
  unsigned loopDepth = 0;                   // of the loop whose body is being converted
  unsigned gradientDepth = 0;               // of the function of a Gradient that is being converted
  int64_t convertedAgain = 0;               // nodes of functions of Gradients, all of them together
};

class Node {
public:
  Node(NodeOp op, llvm::ArrayRef<mlir::Value> inputs, DsBuilder &builder, GraphContext &context)
      : b(builder), context(context), op(op), inputs(inputs) {}

  DsBuilder &b;
  GraphContext &context;

  llvm::StringRef name() { return op.getOpType(); }
  int64_t version() { return op.getVersion(); }
  NodeOp operation() { return op; }

  unsigned inputCount() const { return inputs.size(); }
  bool has(unsigned index) const { return index < inputs.size() && inputs[index]; }
  mlir::Value in(unsigned index) const { return index < inputs.size() ? inputs[index] : mlir::Value(); }
  /// True where the node has that output and it is not left out.
  bool yields(unsigned output);
  unsigned outputCount() { return op->getNumResults(); }

  // Attributes; an attribute of another type is diagnosed and the fallback returned.
  int64_t integer(llvm::StringRef name, int64_t fallback);
  bool flag(llvm::StringRef name, bool fallback) { return integer(name, fallback) != 0; }
  double real(llvm::StringRef name, double fallback);
  std::string text(llvm::StringRef name, llvm::StringRef fallback, llvm::ArrayRef<llvm::StringRef> legal = {});
  std::optional<llvm::SmallVector<int64_t>> integers(llvm::StringRef name);
  std::optional<int64_t> requiredInteger(llvm::StringRef name);
  std::optional<llvm::SmallVector<int64_t>> requiredIntegers(llvm::StringRef name);
  mlir::Attribute attribute(llvm::StringRef name) { return op.getAttrs().get(name); }

  // Shape-like operands: their elements must be known as expressions, or as numbers, when the model is compiled.
  std::optional<SizeVector> sizesOf(unsigned input, llvm::StringRef role);
  std::optional<SizeExpr> sizeOf(unsigned input, llvm::StringRef role);
  std::optional<llvm::SmallVector<int64_t>> numbersOf(unsigned input, llvm::StringRef role);
  std::optional<int64_t> numberOf(unsigned input, llvm::StringRef role);
  /// Nothing (and no diagnostic) where the operand is no constant of the IR.
  std::optional<llvm::SmallVector<double>> realsOf(unsigned input);

  /// The axis counted from the front; diagnosed where it is outside of `rank`.
  std::optional<int64_t> axis(int64_t value, int64_t rank);
  std::optional<llvm::SmallVector<int64_t>> axes(llvm::ArrayRef<int64_t> values, int64_t rank);
  bool requireRank(unsigned input, int64_t least, int64_t most = 64);
  bool requireFloat(unsigned input);

  /// The element type of an ONNX `to` or `dtype` code; diagnosed where ds has none.
  mlir::Type elementType(int64_t code);

  Refused refuse(const llvm::Twine &message);
  /// The same for checks: always false.
  bool reject(const llvm::Twine &message);
  bool isRefused() const { return refused; }
  /// After a conversion that failed without trace (GraphContext::attempt), before the next.
  void forgive() { refused = false; }

private:
  mlir::InFlightDiagnostic diagnose(const llvm::Twine &message);
  void wrongAttribute(llvm::StringRef name, llvm::StringRef expected);

  NodeOp op;
  llvm::ArrayRef<mlir::Value> inputs;
  bool refused = false;
};

/// True for the float types of eight and four bits.
bool isNarrowFloat(mlir::Type type);
/// x in another type as ONNX's Cast has it: 'saturate' and 'round_mode' of the node say how narrow floats overflow and
/// how float8e8m0 rounds.
mlir::Value convertElements(Node &n, mlir::Value x, mlir::Type type);
/// True where tensors of this element type can be compiled.
bool isSupportedElement(mlir::Type type);
/// `f32[batch, seq, 384]`
std::string describe(const TensorFacts &facts);
std::string describeElement(mlir::Type type);

} // namespace deepstride::onnx

#endif
