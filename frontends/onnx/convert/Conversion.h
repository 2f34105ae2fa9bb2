// The driver's state: which ds value stands for which onnx value, and what could not be converted.
#ifndef DEEPSTRIDE_FRONTENDS_ONNX_CONVERT_CONVERSION_H
#define DEEPSTRIDE_FRONTENDS_ONNX_CONVERT_CONVERSION_H

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

class Conversion : GraphContext {
public:
  Conversion(mlir::ModuleOp module, mlir::func::FuncOp main, const ConversionOptions &options);
  llvm::LogicalResult run();

private:
  // Conversion.cpp: nodes.
  void convertOps(mlir::Block &block);
  void convertNode(NodeOp node);
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
  llvm::LogicalResult applyShape(mlir::BlockArgument argument, llvm::ArrayRef<std::string> shape);
  /// Pins the lengths of inputs that list sizes, where their readers leave no choice.
  void deduceLengths();

  // Signature.cpp: arguments, results, dimension names.
  llvm::LogicalResult checkPins();
  llvm::LogicalResult convertArguments();
  llvm::LogicalResult convertArgument(mlir::BlockArgument argument);
  llvm::LogicalResult pinInputs();
  std::optional<SizeVector> sizesOfArgument(mlir::BlockArgument argument);
  SizeExpr sizeOfDim(llvm::StringRef name);
  std::string freshDimName(unsigned argument, size_t axis);
  llvm::LogicalResult convertReturn();
  void recordBounds();
  void dropSource();

  // Constants.cpp: initializers and constants.
  mlir::Value importTensor(mlir::TypedAttr value, llvm::StringRef name) override;
  mlir::Value importWeight(mlir::TypedAttr value, mlir::RankedTensorType type, llvm::StringRef name);
  void dropUnusedRecipes();

  mlir::ModuleOp module;
  mlir::func::FuncOp main;
  const ConversionOptions &options;
  SizeAnalysis analysis;
  DsBuilder builder;
  UnsupportedReport report;
  Tolerated tolerated;
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
  llvm::StringSet<> recipeNames;
  unsigned countSymbols = 0;
};

} // namespace deepstride::onnx

#endif
