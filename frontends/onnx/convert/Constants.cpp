// Initializers and other stored tensors: small ones become constants of the IR, larger ones weights, which stay in
// their file until packaging reads them.
#include "dialects/ds/Diagonals.h"
#include "dialects/ds/HostTensor.h"
#include "frontends/onnx/convert/Conversion.h"
#include "frontends/onnx/reader/FileAccess.h"

#include "mlir/IR/SymbolTable.h"

#include <cmath>
#include <limits>

using namespace mlir;

namespace deepstride::onnx {

static int64_t bytesOf(Type element) { return (element.getIntOrFloatBitWidth() + 7) / 8; }

static int64_t byteSize(RankedTensorType type) { return type.getNumElements() * bytesOf(type.getElementType()); }

Value Conversion::importTensor(TypedAttr value, StringRef name, bool isWeight) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type || !isSupportedElement(type.getElementType())) {
    emitError(builder.getLocation()) << "constant '" << name << "': element type "
                                     << describeElement(getElementTypeOrSelf(value.getType()))
                                     << " is not supported; legal are bool, integers and floats";
    failedNodes = true;
    return {};
  }
  auto elements = dyn_cast<DenseElementsAttr>(value);
  bool isLearned = options.storesFloats && isa<FloatType>(type.getElementType()) && type.getNumElements() > 1;
  if (!elements || isLearned || isWeight || byteSize(type) > ds::ConstantOp::byteLimit)
    return importWeight(value, type, name);
  Value result = builder.constant(elements);
  result.getDefiningOp()->setAttr(ds::valueNameAttr, builder.getBuilder().getStrArrayAttr({name}));
  return result;
}

/// Elements of 4 or 2 bits share bytes in the file, the first one in the lowest bits; a recipe takes them apart.
static Value unpackRange(OpBuilder &at, Location where, RangeAttr range, RankedTensorType type) {
  int64_t bits = type.getElementTypeBitWidth(), perByte = 8 / bits, length = range.getLength();
  Type byte = IntegerType::get(at.getContext(), 8, IntegerType::Unsigned);
  auto typeOf = [&](ArrayRef<int64_t> shape) { return RankedTensorType::get(shape, byte); };
  auto sizes = [&](ArrayRef<int64_t> shape) { return at.getI64ArrayAttr(shape); };
  auto number = [&](int64_t value) -> Value {
    return ds::ConstantOp::create(at, where, DenseElementsAttr::get(typeOf({}), APInt(8, value)));
  };
  Value packed = ds::SourceOp::create(at, where, typeOf({length, 1}), range.getFile(),
                                      static_cast<int64_t>(range.getOffset()), length);
  SmallVector<Value> columns;
  for (int64_t i = 0; i < perByte; ++i) {
    Type column = packed.getType();
    Value high = ds::BinaryOp::create(at, where, column, ds::BinaryKind::shift_right, packed, number(i * bits));
    columns.push_back(ds::BinaryOp::create(at, where, column, ds::BinaryKind::bit_and, high, number((1 << bits) - 1)));
  }
  int64_t count = type.getNumElements();
  Value all = ds::ConcatOp::create(at, where, typeOf({length, perByte}), 1, columns);
  all = ds::ReshapeOp::create(at, where, typeOf({length * perByte}), all, sizes({length * perByte}));
  all = ds::SliceOp::create(at, where, typeOf({count}), all, sizes({0}), sizes({count}), ArrayRef<int64_t>{1});
  all = ds::ReshapeOp::create(at, where, typeOf(type.getShape()), all, sizes(type.getShape()));
  if (isa<FloatType>(type.getElementType()))
    return ds::BitcastOp::create(at, where, type, all, type.getElementType());
  return ds::CastOp::create(at, where, type, all, type.getElementType());
}

/// Number `i` of stored elements; NaN where a double stands for more than one integer.
static double storedNumber(StringRef bytes, RankedTensorType type, int64_t i) {
  double number = readNumber(type.getElementType(), bytes.data() + i * bytesOf(type.getElementType())).real;
  bool isExact = !type.getElementType().isInteger() || std::abs(number) < 0x1p53; // 2^53 is also that of the next one
  return isExact ? number : std::numeric_limits<double>::quiet_NaN();
}

/// The bytes of a file, and what they hold where that is the triangle of a mask: passes see no bytes.
static Value createSource(OpBuilder &at, Location where, RangeAttr range, RankedTensorType type) {
  auto source = ds::SourceOp::create(at, where, type, range.getFile(), static_cast<int64_t>(range.getOffset()),
                                     static_cast<int64_t>(range.getLength()));
  constexpr int64_t largest = int64_t(64) << 20;
  bool isMatrix = type.getRank() >= 2 && type.getNumElements() > 0 && byteSize(type) <= largest &&
                  type.getDimSize(type.getRank() - 2) * type.getShape().back() == type.getNumElements();
  if (!isMatrix)
    return source;
  auto file = openNamedFile(range.getFile().str());
  auto read = [&](int64_t rows) -> std::string {
    auto bytes = file->read(range.getOffset(), rows * type.getShape().back() * bytesOf(type.getElementType()));
    return bytes ? *bytes : (consumeError(bytes.takeError()), std::string());
  };
  if (!file) {
    consumeError(file.takeError()); // packaging says it
    return source;
  }
  if (file->isHole(range.getOffset(), byteSize(type)))
    return source; // zeros: a model of shapes without weights
  // Of other matrices the first row tells already that they hold more than two numbers.
  std::string first = read(1);
  llvm::SmallVector<double> numbers;
  for (int64_t i = 0; i < type.getShape().back() && !first.empty() && numbers.size() < 3; ++i)
    if (double number = storedNumber(first, type, i); !llvm::is_contained(numbers, number))
      numbers.push_back(number);
  std::string all = numbers.empty() || numbers.size() > 2 ? "" : read(type.getNumElements() / type.getShape().back());
  if (all.empty())
    return source;
  if (auto found = ds::findDiagonals(type, [&](int64_t i) { return storedNumber(all, type, i); }))
    source->setDiscardableAttr(ds::diagonalsAttr, ds::toAttribute(at.getContext(), *found));
  return source;
}

Value Conversion::importWeight(TypedAttr value, RankedTensorType type, StringRef name) {
  FlatSymbolRefAttr &symbol = weights.known[{value, StringAttr::get(module.getContext(), name)}];
  if (!symbol)
    symbol = storeWeight(value, type, name);
  Value result = builder.weight(symbol, type);
  result.getDefiningOp()->setAttr(ds::valueNameAttr, builder.getBuilder().getStrArrayAttr({name}));
  return result;
}

/// The recipe of a tensor, before the functions.
FlatSymbolRefAttr Conversion::storeWeight(TypedAttr value, RankedTensorType type, StringRef name) {
  std::string unique = name.empty() ? "weight" : name.str();
  for (unsigned suffix = 0; !weights.names.insert(unique).second;)
    unique = name.str() + "_" + std::to_string(suffix++);
  OpBuilder at(main);
  Location where = builder.getLocation();
  auto recipe = ds::RecipeOp::create(at, where, unique);
  at.createBlock(&recipe.getBody());
  Value stored;
  auto range = dyn_cast<RangeAttr>(value);
  if (range && type.getElementTypeBitWidth() < 8 && !type.getElementType().isInteger(1))
    stored = unpackRange(at, where, range, type);
  else if (range)
    stored = createSource(at, where, range, type);
  else // elements of varint fields are no range of the file
    stored = ds::ConstantOp::create(at, where, cast<ElementsAttr>(value));
  ds::YieldOp::create(at, where, ValueRange{stored});
  return FlatSymbolRefAttr::get(module.getContext(), unique);
}

void dropUnusedRecipes(ModuleOp module) {
  llvm::StringSet<> used;
  module.walk([&](ds::WeightOp weight) { used.insert(weight.getRecipe()); });
  for (auto recipe : llvm::make_early_inc_range(module.getOps<ds::RecipeOp>()))
    if (!used.contains(recipe.getSymName()))
      recipe.erase();
}

} // namespace deepstride::onnx
