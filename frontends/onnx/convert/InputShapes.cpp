// What is known of the shapes of inputs beside what their types state: what the user says with --shape, and how long
// lists of sizes are that steer shapes. The result is as if the model had stated it.
#include "frontends/onnx/convert/Conversion.h"

#include "frontends/onnx/dialect/StatedTypes.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace deepstride::onnx {

/// The name of a dynamic dimension; empty where the file gives none.
static StringRef statedDim(func::FuncOp main, unsigned index, unsigned axis) {
  auto dims = main.getArgAttrOfType<ArrayAttr>(index, sourceDims);
  auto name = dims && axis < dims.size() ? dyn_cast<StringAttr>(dims[axis]) : StringAttr();
  return name ? name.getValue() : StringRef();
}

static std::optional<int64_t> rankOf(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type ? std::optional(type.getRank()) : std::nullopt;
}

/// The length of a stored or static vector.
static std::optional<int64_t> lengthOf(NodeOp node, unsigned input) {
  if (input >= node.getInputs().size())
    return std::nullopt;
  auto type = dyn_cast<RankedTensorType>(node.getInputs()[input].getType());
  return type && type.getRank() == 1 && !type.isDynamicDim(0) ? std::optional(type.getDimSize(0)) : std::nullopt;
}

static bool isPresent(NodeOp node, unsigned input) {
  return input < node.getInputs().size() && !isa<NoneType>(node.getInputs()[input].getType());
}

/// How many elements the standard asks of an operand that lists sizes, from the ranks that the model states.
static std::optional<int64_t> lengthAskedFor(NodeOp node, unsigned input) {
  StringRef op = node.getDomain().empty() ? node.getOpType() : StringRef();
  auto x = rankOf(node.getInputs()[0]), y = rankOf(node.getResults()[0]);
  auto listed = [&](StringRef attribute) -> std::optional<int64_t> {
    auto axes = dyn_cast_if_present<DenseI64ArrayAttr>(node.getAttrs().get(attribute));
    return axes ? std::optional<int64_t>(axes.size()) : x;
  };
  if (op == "ConstantOfShape" && input == 0)
    return y;
  if (op == "Reshape" && input == 1)
    return y;
  if (op == "Expand" && input == 1) // a shorter shape is legal up to the operand's rank
    return x && y && *y > *x ? y : std::nullopt;
  if (op == "Tile" && input == 1)
    return x;
  if (op == "Unsqueeze" && input == 1)
    return x && y ? std::optional(*y - *x) : std::nullopt;
  if (op == "Squeeze" && input == 1)
    return x && y ? std::optional(*x - *y) : std::nullopt;
  auto keeps = dyn_cast_if_present<IntegerAttr>(node.getAttrs().get("keepdims"));
  if (op.starts_with("Reduce") && input == 1 && keeps && keeps.getInt() == 0) // no axes may be none, or all of them
    return x && y && *x > *y && *y > 0 ? std::optional(*x - *y) : std::nullopt;
  if (op == "Split" && input == 1)
    return node.getNumResults();
  if (op == "TopK" && input == 1)
    return 1;
  if (op == "CenterCropPad" && input == 1)
    return listed("axes");
  if (op == "Resize" && (input == 2 || input == 3))
    return listed("axes");
  if (op == "Pad" && input == 1) {
    auto axes = isPresent(node, 3) ? lengthOf(node, 3) : x;
    return axes ? std::optional(2 * *axes) : std::nullopt;
  }
  if (op == "Slice" && input >= 1)
    for (unsigned other = 1; other <= 4; ++other)
      if (auto length = lengthOf(node, other))
        return length;
  return std::nullopt;
}

/// All lengths that the readers of a vector ask for, through nodes that keep it a vector of that length.
static void collectLengths(Value vector, llvm::SmallSetVector<int64_t, 2> &lengths, unsigned depth = 0) {
  constexpr unsigned depthLimit = 8;
  for (OpOperand &use : vector.getUses()) {
    auto node = dyn_cast<NodeOp>(use.getOwner());
    if (!node || node->getNumResults() == 0)
      continue;
    bool keepsShape = node.getDomain().empty() && (node.getOpType() == "Cast" || node.getOpType() == "Identity");
    if (keepsShape && depth < depthLimit)
      collectLengths(node.getResults()[0], lengths, depth + 1);
    else if (auto length = lengthAskedFor(node, use.getOperandNumber()); length && *length >= 0)
      lengths.insert(*length);
  }
}

LogicalResult Conversion::applyShape(BlockArgument argument, ArrayRef<std::string> shape) {
  unsigned index = argument.getArgNumber();
  StringRef name = nameOf(main, index);
  Builder attributes(module.getContext());
  auto refuse = [&](const Twine &what) {
    return emitError(argument.getLoc()) << "--shape: input '" << name << "': " << what;
  };
  auto tensor = dyn_cast<TensorType>(argument.getType());
  if (!tensor)
    return refuse("expected a tensor, found " + describeElement(argument.getType()));
  auto ranked = dyn_cast<RankedTensorType>(tensor);
  if (ranked && ranked.getRank() != static_cast<int64_t>(shape.size()))
    return refuse("expected " + Twine(ranked.getRank()) + " axes, as the model states, found " + Twine(shape.size()));
  SmallVector<int64_t> sizes;
  SmallVector<Attribute> dims;
  for (auto [axis, text] : llvm::enumerate(shape)) {
    int64_t size;
    bool isNumber = !StringRef(text).getAsInteger(10, size);
    if (isNumber ? size < 0 || size > int64_t(1) << 40 : text.empty())
      return refuse("expected sizes of at least 0 or names, found '" + text + "'");
    bool isStatic = ranked && !ranked.isDynamicDim(axis);
    StringRef stated = ranked && !isStatic ? statedDim(main, index, axis) : StringRef();
    if (isStatic ? !isNumber || size != ranked.getDimSize(axis) : !isNumber && !stated.empty() && stated != text)
      return refuse("axis " + Twine(axis) + ": expected " +
                    (isStatic ? Twine(ranked.getDimSize(axis)) : "a size or '" + stated + "'") +
                    ", as the model states, found '" + text + "'");
    bool isPin = isNumber && !stated.empty(); // of all dimensions of that name
    if (isPin && !shapePins.try_emplace(stated, size).second && shapePins[stated] != size)
      return refuse("dimension '" + stated + "' has two sizes, " + Twine(shapePins[stated]) + " and " + Twine(size));
    sizes.push_back(isNumber && !isPin ? size : ShapedType::kDynamic);
    if (isNumber && !isPin)
      dims.push_back(attributes.getI64IntegerAttr(size));
    else
      dims.push_back(attributes.getStringAttr(isPin ? stated : StringRef(text)));
  }
  argument.setType(RankedTensorType::get(sizes, tensor.getElementType()));
  main.setArgAttr(index, sourceDims, attributes.getArrayAttr(dims));
  return success();
}

/// Lists of sizes are as long as their readers ask for.
LogicalResult Conversion::checkGivenLengths() {
  LogicalResult result = success();
  for (BlockArgument argument : main.getArguments()) {
    StringRef name = nameOf(main, argument.getArgNumber());
    auto shape = options.shapes.find(name);
    int64_t given;
    if (shape == options.shapes.end() || shape->second.size() != 1 ||
        StringRef(shape->second.front()).getAsInteger(10, given))
      continue;
    llvm::SmallSetVector<int64_t, 2> lengths;
    collectLengths(argument, lengths);
    if (lengths.size() == 1 && lengths.front() != given)
      result = emitError(argument.getLoc()) << "--shape: input '" << name << "': expected " << lengths.front()
                                            << " elements, as many as its readers ask for, found " << given;
  }
  return result;
}

LogicalResult Conversion::applyShapes() {
  SmallVector<StringRef> names;
  for (unsigned i = 0; i < main.getNumArguments(); ++i)
    names.push_back(nameOf(main, i));
  LogicalResult result = success();
  for (BlockArgument argument : main.getArguments()) // in the order of the file, so that messages have one
    if (auto shape = options.shapes.find(names[argument.getArgNumber()]); shape != options.shapes.end())
      if (failed(applyShape(argument, shape->second)))
        result = failure();
  SmallVector<StringRef> unknown;
  for (const auto &shape : options.shapes)
    if (!llvm::is_contained(names, shape.getKey()))
      unknown.push_back(shape.getKey());
  llvm::sort(unknown);
  llvm::sort(names);
  for (StringRef name : unknown)
    result = emitError(main.getLoc()) << "--shape: expected the name of an input, found '" << name
                                      << "'; inputs: " << (names.empty() ? "none" : llvm::join(names, ", "));
  return failed(result) ? result : checkGivenLengths();
}

/// Whether some axis other than those of `lists` has that name, or is a sum with it.
bool Conversion::namesOtherAxes(StringRef name, const llvm::BitVector &lists) const {
  func::FuncOp function = main;
  for (BlockArgument argument : function.getArguments()) {
    auto dims = function.getArgAttrOfType<ArrayAttr>(argument.getArgNumber(), sourceDims);
    if (!dims || lists.test(argument.getArgNumber()))
      continue;
    for (Attribute dim : dims) {
      auto text = dyn_cast<StringAttr>(dim);
      auto size = text ? SizeExpr::parse(text.getValue()) : std::nullopt;
      if (text && (text.getValue() == name || (size && size->dependsOn(name))))
        return true;
    }
  }
  return false;
}

LogicalResult Conversion::deduceLengths() {
  llvm::BitVector lists(main.getNumArguments());
  SmallVector<std::pair<BlockArgument, int64_t>> deduced;
  for (BlockArgument argument : main.getArguments()) {
    unsigned index = argument.getArgNumber();
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    if (!type || type.getRank() != 1 || !type.isDynamicDim(0))
      continue;
    llvm::SmallSetVector<int64_t, 2> lengths;
    collectLengths(argument, lengths);
    if (lengths.size() != 1)
      continue;
    lists.set(index);
    deduced.push_back({argument, lengths.front()});
  }
  // A pinned name is that of data where data has it, and where a list that is so long has it.
  auto isMeantFor = [&](StringRef name, int64_t pin) {
    return namesOtherAxes(name, lists) || llvm::any_of(deduced, [&](const auto &list) {
             return list.second == pin && statedDim(main, list.first.getArgNumber(), 0) == name;
           });
  };
  for (auto [argument, length] : deduced) {
    unsigned index = argument.getArgNumber();
    StringRef name = statedDim(main, index, 0);
    auto pin = pins.find(name);
    if (auto pinned = pin == pins.end() ? std::nullopt : pin->second.constant();
        pinned && *pinned != length && !isMeantFor(name, *pinned))
      return emitError(argument.getLoc()) << (options.dims.count(name) ? "--dim" : "--shape") << ": input '"
                                          << nameOf(main, index) << "': expected '" << name << "' to be " << length
                                          << ", as many elements as its readers ask for, found " << *pinned;
  }
  for (auto [argument, length] : deduced) {
    // Of this axis alone: data may have axes of the same name, by chance or by mistake.
    argument.setType(RankedTensorType::get({length}, getElementTypeOrSelf(argument.getType())));
    main.setArgAttr(argument.getArgNumber(), sourceDims, Builder(module.getContext()).getI64ArrayAttr({length}));
  }
  collectDimNames();
  return success();
}

} // namespace deepstride::onnx
