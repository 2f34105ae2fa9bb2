// The driver's state: which ds value stands for which onnx value, and what could not be converted.
#ifndef DEEPSTRIDE_FRONTENDS_ONNX_CONVERT_CONVERSION_H
#define DEEPSTRIDE_FRONTENDS_ONNX_CONVERT_CONVERSION_H

#include "frontends/onnx/convert/Assumptions.h"
#include "frontends/onnx/convert/Passes.h"
#include "frontends/onnx/convert/Registry.h"
#include "frontends/onnx/convert/Report.h"
#include "frontends/onnx/dialect/Tolerated.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringSet.h"

namespace deepstride::onnx {
using ::deepstride::onnx::InitializerOp;
using ::deepstride::onnx::NoneOp;
using ::deepstride::onnx::RangeAttr;

/// The recipes of stored tensors; the outcomes of one model share them.
struct StoredWeights {
  llvm::StringSet<> names;
  llvm::DenseMap<std::pair<mlir::Attribute, mlir::Attribute>, mlir::FlatSymbolRefAttr> known; // by value and name
};

/// Converts one function of nodes in place, under assumptions about sizes and small inputs. What is tolerated in the
/// file is said at once, or noted in `toleratedInAll` where the file is converted more than once.
class Conversion : GraphContext {
public:
  Conversion(mlir::ModuleOp module, mlir::func::FuncOp main, const ConversionOptions &options, StoredWeights &weights,
             Tolerated *toleratedInAll = nullptr, Assumptions assumptions = {});
  llvm::LogicalResult run();
  /// Gives dimensions that the file gives no name one of their own.
  void nameDims();
  /// Where `run` failed because branches need it known: the condition whose outcomes must be converted one by one.
  const std::optional<SizeExpr> &splitCondition() const { return split; }
  /// True where operators without a conversion were met.
  bool isUnsupported() const { return !report.empty(); }

private:
  // Conversion.cpp: nodes.
  void convertOps(mlir::Block &block);
  void convertNode(NodeOp node);
  mlir::Type widen(llvm::MutableArrayRef<mlir::Value> operands);
  bool checkAttributeNames(NodeOp node);
  bool bindOperands(NodeOp node, const Pattern &pattern, llvm::SmallVectorImpl<mlir::Value> &operands);
  void checkStatedType(NodeOp node, unsigned index, mlir::Value value);
  void nameResults(NodeOp node, llvm::ArrayRef<mlir::Value> results);
  std::string describeOperands(NodeOp node);
  std::optional<Values> convertBody(mlir::Region &body) override;
  void bind(mlir::Value argument, mlir::Value value) override { converted[argument] = value; }
  bool attempt(llvm::function_ref<bool()> convert) override;
  mlir::Value convertAgain(llvm::ArrayRef<NodeOp> nodes, llvm::ArrayRef<std::pair<mlir::Value, mlir::Value>> bindings,
                           mlir::Value result, bool isSame) override;
  std::string newCountSymbol() override;

  // InputShapes.cpp: shapes that the types of inputs do not state.
  llvm::LogicalResult applyShapes();
  llvm::LogicalResult checkGivenLengths();
  llvm::LogicalResult applyShape(mlir::BlockArgument argument, llvm::ArrayRef<std::string> shape);
  /// Makes inputs that list sizes as long as their readers ask for, where those leave no choice. Fails where a pin says
  /// otherwise that can be meant for nothing else.
  llvm::LogicalResult deduceLengths();
  bool namesOtherAxes(llvm::StringRef name, const llvm::BitVector &lists) const;
  // Outcomes.cpp: what is assumed, and what would have to be.
  std::optional<bool> assumed(mlir::Value condition) override;
  bool splitBy(mlir::Value condition) override;
  std::optional<SizeExpr> valueOf(mlir::Value scalar, unsigned depth = 0);
  std::optional<SizeExpr> knownBeforeCall(mlir::Value condition);
  void boundInputs();
  llvm::LogicalResult assumeInputs();

  // Signature.cpp: arguments, results, dimension names.
  void collectDimNames();
  llvm::LogicalResult checkPins();
  llvm::LogicalResult joinDims();
  llvm::LogicalResult joinDims(llvm::ArrayRef<std::string> names);
  llvm::LogicalResult convertArguments();
  llvm::LogicalResult convertArgument(mlir::BlockArgument argument);
  llvm::LogicalResult pinInputs();
  llvm::LogicalResult replaceInput(unsigned index, llvm::StringRef name, int64_t value);
  std::optional<SizeVector> sizesOfArgument(mlir::BlockArgument argument);
  SizeExpr sizeOfDim(llvm::StringRef name);
  std::string freshDimName(unsigned argument, int64_t axis);
  llvm::LogicalResult convertReturn();
  void recordBounds();
  void dropSource();

  // Constants.cpp: initializers and constants.
  mlir::Value importTensor(mlir::TypedAttr value, llvm::StringRef name, bool isWeight) override;
  mlir::Value importWeight(mlir::TypedAttr value, mlir::RankedTensorType type, llvm::StringRef name);
  mlir::FlatSymbolRefAttr storeWeight(mlir::TypedAttr value, mlir::RankedTensorType type, llvm::StringRef name);

  mlir::ModuleOp module;
  mlir::func::FuncOp main;
  const ConversionOptions &options;
  SizeAnalysis analysis;
  DsBuilder builder;
  UnsupportedReport report;
  Tolerated tolerated, *toleratedInAll;
  llvm::DenseSet<mlir::Value> contradicted; // whose stated shapes are noted
  bool failedNodes = false;
  bool isElsewhere = false; // converting the function of a Gradient at other values than the graph's
  llvm::DenseMap<mlir::Value, mlir::Value> converted;   // values that could not be converted are missing
  llvm::DenseMap<mlir::Value, mlir::Type> refusedTypes; // why some of those are missing
  llvm::StringSet<> dimNames;
  llvm::StringMap<unsigned> scalarInputs; // inputs of one integer, by name: --dim may pin them, too
  llvm::BitVector pinnedInputs;
  llvm::StringMap<SizeExpr> pins;
  llvm::StringMap<int64_t> shapePins; // dimensions that --shape gives sizes
  StoredWeights &weights;
  Assumptions assumptions;
  std::optional<SizeExpr> split;
  llvm::StringSet<> callSymbols; // dimensions and elements of inputs: known before a call
  unsigned countSymbols = 0;
};

/// The name of an argument of `@main`; empty where it has none.
llvm::StringRef nameOf(mlir::func::FuncOp main, unsigned argument);
/// A tensor of one integer or bool: as an input it can be pinned, or steer branches.
bool isOneInteger(mlir::Type type);
/// Unsigned integers and bools.
bool isNeverNegative(mlir::IntegerType type);

/// Recipes that no function names go.
void dropUnusedRecipes(mlir::ModuleOp module);

/// Whether a layer learns the tensor of one element that the initializer holds; not so a tensor without axes.
bool isLearnedScalar(InitializerOp initializer);

/// Whether a Constant node only holds the ones or zeros of a norm that has no scale or bias: PyTorch's exporters write
/// them, as ONNX's norms have both.
bool isPlaceholder(NodeOp constant);

} // namespace deepstride::onnx

#endif
