// The border of the program: dimension names become size symbols or pinned values, arguments and results get the
// attributes of an entry, and the source dialect disappears.
#include "frontends/onnx/convert/Conversion.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace deepstride::onnx {

StringRef nameOf(func::FuncOp main, unsigned argument) {
  auto name = main.getArgAttrOfType<StringAttr>(argument, sourceName);
  return name ? name.getValue() : StringRef();
}

bool isOneInteger(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && tensor.hasStaticShape() && tensor.getNumElements() == 1 && tensor.getElementType().isInteger();
}

bool isNeverNegative(IntegerType type) { return type.isUnsigned() || type.getWidth() == 1; }

void Conversion::collectDimNames() {
  dimNames.clear();
  for (unsigned i = 0; i < main.getNumArguments(); ++i)
    if (auto dims = main.getArgAttrOfType<ArrayAttr>(i, sourceDims))
      for (Attribute dim : dims)
        if (auto name = dyn_cast<StringAttr>(dim); name && !name.empty())
          dimNames.insert(name.getValue());
}

/// A dimension that the file gives no name is one of its own, such as `ids_d0`.
std::string Conversion::freshDimName(unsigned argument, int64_t axis) {
  StringRef input = nameOf(main, argument);
  std::string name = (input.empty() ? "arg" + Twine(argument) : Twine(input)).str() + "_d" + std::to_string(axis);
  while (!dimNames.insert(name).second)
    name += "_";
  return name;
}

void Conversion::nameDims() {
  collectDimNames();
  Builder attributes(module.getContext());
  for (BlockArgument argument : main.getArguments()) {
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    if (!type)
      continue;
    auto known = main.getArgAttrOfType<ArrayAttr>(argument.getArgNumber(), sourceDims);
    SmallVector<Attribute> dims;
    for (auto [axis, size] : llvm::enumerate(type.getShape())) {
      auto name = known && axis < known.size() ? dyn_cast<StringAttr>(known[axis]) : StringAttr();
      if (!ShapedType::isDynamic(size))
        dims.push_back(attributes.getI64IntegerAttr(size));
      else if (name && !name.empty())
        dims.push_back(name);
      else
        dims.push_back(attributes.getStringAttr(freshDimName(argument.getArgNumber(), static_cast<int64_t>(axis))));
    }
    main.setArgAttr(argument.getArgNumber(), sourceDims, attributes.getArrayAttr(dims));
  }
}

void nameInputDimensions(ModuleOp module) {
  ConversionOptions options;
  StoredWeights weights;
  if (auto main = module.lookupSymbol<func::FuncOp>("main"))
    Conversion(module, main, options, weights).nameDims();
}

LogicalResult Conversion::checkPins() {
  for (BlockArgument argument : main.getArguments())
    if (StringRef name = nameOf(main, argument.getArgNumber()); !name.empty() && isOneInteger(argument.getType()))
      scalarInputs[name] = argument.getArgNumber();
  LogicalResult result = success();
  for (const auto &pin : options.dims) {
    pins[pin.getKey()] = pin.getValue();
    if (dimNames.contains(pin.getKey()) || scalarInputs.contains(pin.getKey()))
      continue;
    SmallVector<StringRef> legal(dimNames.keys());
    legal.append(scalarInputs.keys().begin(), scalarInputs.keys().end());
    llvm::sort(legal);
    result = emitError(main.getLoc()) << "--dim: expected the name of a dynamic dimension or of an input of one "
                                      << "integer or bool, found '" << pin.getKey()
                                      << "'; legal names: " << (legal.empty() ? "none" : llvm::join(legal, ", "));
  }
  for (const auto &pin : shapePins) {
    auto [known, isNew] = pins.try_emplace(pin.getKey(), pin.getValue());
    if (!isNew && !known->second.isConstant(pin.getValue()))
      result = emitError(main.getLoc()) << "--shape and --dim give dimension '" << pin.getKey() << "' two sizes, "
                                        << pin.getValue() << " and " << known->second.brief();
  }
  return result;
}

/// Names that are one have one size: that of the one that is pinned, else the sum that an exporter wrote as a name,
/// else the one that stands for them.
LogicalResult Conversion::joinDims(ArrayRef<std::string> names) {
  auto fail = [&](const Twine &what) { return emitError(main.getLoc()) << "--dim: " << what; };
  StringRef sized, whole = names.back();
  for (StringRef name : names) {
    if (!dimNames.contains(name)) {
      SmallVector<StringRef> legal(dimNames.keys());
      llvm::sort(legal);
      return fail("expected names of two dynamic dimensions, found '" + name +
                  "'; legal names: " + (legal.empty() ? "none" : llvm::join(legal, ", ")));
    }
    if (!pins.contains(name))
      continue;
    if (!sized.empty() && pins[name] != pins[sized])
      return fail("'" + sized + "' and '" + name + "' are one dimension with two sizes, " + pins[sized].brief() +
                  " and " + pins[name].brief());
    sized = name;
  }
  auto isSum = [&](StringRef name) { return sizeOfDim(name) != SizeExpr::symbol(name); };
  if (sized.empty())
    for (StringRef name : names)
      if (isSum(name)) {
        if (isSum(whole) && sizeOfDim(whole) != sizeOfDim(name))
          return fail("'" + whole + "' and '" + name + "' are sums; expected at most one of the names to be one");
        whole = name;
      }
  SizeExpr size = sized.empty() ? sizeOfDim(whole) : pins[sized];
  for (StringRef name : names) {
    if (name != whole && size.dependsOn(name))
      return fail("expected two dimensions of which none is a part of the other, found '" + name + "' and '" + whole +
                  "'");
    if (name != whole || !sized.empty())
      pins[name] = size;
  }
  return success();
}

LogicalResult Conversion::joinDims() {
  auto hasSum = [](const std::vector<std::string> &names) {
    return llvm::any_of(names, [](StringRef name) { return name.contains(' ') || name.contains('+'); });
  };
  // Sums last: their parts may have new names by then.
  for (bool areSums : {false, true})
    for (const std::vector<std::string> &names : options.same.classes())
      if (hasSum(names) == areSums && failed(joinDims(names)))
        return failure();
  return success();
}

/// Exporters write sums such as `past + seq` as names. They are sums only where their parts are dimensions, too; else
/// `batch-size` is a name like any other.
SizeExpr Conversion::sizeOfDim(StringRef name) {
  if (auto pinned = pins.find(name); pinned != pins.end())
    return pinned->second;
  auto parsed = SizeExpr::parse(name, &pins), plain = SizeExpr::parse(name);
  bool isQuoted = name.contains('`'); // as no exporter writes a part
  bool isName = plain && plain->asAtom() && plain->asAtom()->kind() != SizeAtom::Kind::Call;
  if (!plain || plain->constant() || isName || isQuoted)
    return SizeExpr::symbol(name);
  for (const SizeAtom &symbol : plain->symbols())
    if (symbol.kind() != SizeAtom::Kind::Symbol || !dimNames.contains(symbol.name()))
      return SizeExpr::symbol(name);
  return *parsed;
}

std::optional<SizeVector> Conversion::sizesOfArgument(BlockArgument argument) {
  auto type = dyn_cast<RankedTensorType>(argument.getType());
  if (!type)
    return std::nullopt;
  auto dims = main.getArgAttrOfType<ArrayAttr>(argument.getArgNumber(), sourceDims);
  SizeVector sizes;
  for (auto [size, dim] : llvm::zip_equal(type.getShape(), dims))
    sizes.push_back(ShapedType::isDynamic(size) ? sizeOfDim(cast<StringAttr>(dim).getValue()) : SizeExpr(size));
  return sizes;
}

LogicalResult Conversion::convertArgument(BlockArgument argument) {
  unsigned index = argument.getArgNumber();
  StringRef name = nameOf(main, index);
  std::string label = name.empty() ? "arg" + std::to_string(index) : name.str();
  Type element = getElementTypeOrSelf(argument.getType());
  auto sizes = sizesOfArgument(argument);
  if (isSupportedElement(element) && !sizes)
    return emitError(argument.getLoc()) << "input '" << label << "': expected a type with a shape (dimensions may be "
                                        << "dynamic), found none; give it one in the model, or with --shape " << label
                                        << "=1,3,224,224 or --shape " << label << "=batch,seq";
  if (!sizes || !isSupportedElement(element))
    return emitError(argument.getLoc()) << "input '" << label << "': element type "
                                        << describeElement(isa<ShapedType>(argument.getType()) ? element
                                                                                               : argument.getType())
                                        << " is not supported; legal are bool, integers and floats";
  MLIRContext *context = module.getContext();
  main.setArgAttr(index, ds::nameAttr, StringAttr::get(context, label));
  main.setArgAttr(index, ds::dimsAttr, toAttribute(context, *sizes));
  argument.setType(TensorFacts{element, *sizes, std::nullopt}.type());
  converted[argument] = argument;
  return success();
}

LogicalResult Conversion::convertArguments() {
  LogicalResult result = success();
  for (BlockArgument argument : main.getArguments())
    if (failed(convertArgument(argument)))
      result = failure();
  main.setFunctionType(
      FunctionType::get(module.getContext(), main.getBody().getArgumentTypes(), main.getFunctionType().getResults()));
  if (failed(result))
    return failure();
  // The size analysis seeds arguments by its own rules: it knows which small integer inputs have symbolic elements.
  for (BlockArgument argument : main.getArguments())
    analysis.set(argument, *SizeAnalysis::factsOfArgument(main, argument.getArgNumber()));
  return success();
}

/// An input of one integer or bool that --dim names becomes a constant: conditions on it, such as a sampling rate or
/// whether a decoder has a cache, fold. The program no longer has the input.
LogicalResult Conversion::pinInputs() {
  for (const auto &[name, index] : scalarInputs) {
    auto pin = options.dims.find(name);
    if (pin == options.dims.end() || dimNames.contains(name))
      continue;
    if (failed(replaceInput(index, name, pin->getValue())))
      return failure();
    pinnedInputs.set(index);
  }
  return success();
}

/// Has the nodes see a constant in the place of an input of one integer or bool.
LogicalResult Conversion::replaceInput(unsigned index, StringRef name, int64_t value) {
  auto type = cast<RankedTensorType>(main.getArgument(index).getType());
  auto element = cast<IntegerType>(type.getElementType());
  unsigned width = element.getWidth();
  if (isNeverNegative(element) ? !llvm::isUIntN(width, static_cast<uint64_t>(value)) : !llvm::isIntN(width, value))
    return emitError(main.getLoc()) << "--dim: expected a value of type " << describeElement(element) << " for input '"
                                    << name << "', found " << value;
  APInt number(width, static_cast<uint64_t>(value), /*isSigned=*/!isNeverNegative(element));
  converted[main.getArgument(index)] = builder.constant(DenseElementsAttr::get(type, number));
  return success();
}

LogicalResult Conversion::convertReturn() {
  auto ret = cast<func::ReturnOp>(main.getBody().front().getTerminator());
  MLIRContext *context = module.getContext();
  for (OpOperand &operand : ret->getOpOperands()) {
    Value value = converted.lookup(operand.get());
    unsigned index = operand.getOperandNumber();
    auto name = main.getResultAttrOfType<StringAttr>(index, sourceName);
    if (!value || !isa<RankedTensorType>(value.getType()))
      return emitError(main.getLoc()) << "output '" << (name ? name.getValue() : "?") << "': type "
                                      << describeElement(operand.get().getType()) << " is not supported";
    operand.set(value);
    main.setResultAttr(index, ds::nameAttr, name ? name : StringAttr::get(context, "output" + Twine(index)));
    main.setResultAttr(index, ds::dimsAttr, toAttribute(context, analysis.facts(value).sizes));
  }
  main.setFunctionType(FunctionType::get(context, main.getBody().getArgumentTypes(), ret.getOperandTypes()));
  return success();
}

void Conversion::dropSource() {
  Block &block = main.getBody().front();
  // Uses come after definitions, so one sweep from the end removes everything that nothing needs.
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (isa<NodeOp, InitializerOp, NoneOp>(op) || isOpTriviallyDead(&op)) {
      op.dropAllUses();
      op.erase();
    }
  // Sequences were lists of tensors, whose users have the tensors.
  main.walk([](UnrealizedConversionCastOp list) {
    if (list.use_empty())
      list.erase();
  });
  for (unsigned i = 0; i < main.getNumArguments(); ++i) {
    main.removeArgAttr(i, sourceName);
    main.removeArgAttr(i, sourceDims);
  }
  for (unsigned i = 0; i < main.getNumResults(); ++i) {
    main.removeResultAttr(i, StringAttr::get(module.getContext(), sourceName));
    main.removeResultAttr(i, StringAttr::get(module.getContext(), sourceDims));
  }
  for (NamedAttribute attribute : llvm::to_vector(module->getAttrs()))
    if (attribute.getName().strref().starts_with("onnx."))
      module->removeAttr(attribute.getName());
  if (pinnedInputs.any() && failed(main.eraseArguments(pinnedInputs)))
    llvm_unreachable("a function that is no declaration can lose arguments");
  main->setAttr(ds::entryAttr, UnitAttr::get(module.getContext()));
}

/// Follows indices to the inputs they come from unchanged, where the exclusive bound of their axis holds, too.
static void bound(Value indices, int64_t limit, func::FuncOp main, unsigned depth = 0) {
  constexpr unsigned depthLimit = 32;
  if (depth > depthLimit)
    return;
  if (auto argument = dyn_cast<BlockArgument>(indices)) {
    if (argument.getOwner() != &main.getBody().front())
      return;
    auto known = main.getArgAttrOfType<IntegerAttr>(argument.getArgNumber(), ds::boundAttr);
    int64_t least = known ? std::min(known.getInt(), limit) : limit;
    main.setArgAttr(argument.getArgNumber(), ds::boundAttr,
                    IntegerAttr::get(IntegerType::get(main.getContext(), 64), least));
    return;
  }
  Operation *op = indices.getDefiningOp();
  if (isa<ds::CastOp, ds::ReshapeOp, ds::TransposeOp, ds::SliceOp, ds::BroadcastOp>(op))
    return bound(op->getOperand(0), limit, main, depth + 1);
  if (isa<ds::ConcatOp, ds::SelectOp>(op))
    for (Value operand : llvm::drop_begin(op->getOperands(), isa<ds::SelectOp>(op) ? 1 : 0))
      bound(operand, limit, main, depth + 1);
}

void Conversion::recordBounds() {
  main.walk([&](Operation *op) {
    auto limitBy = [&](Value indices, Value data, int64_t axis) {
      auto type = cast<RankedTensorType>(data.getType());
      if (axis < type.getRank() && !type.isDynamicDim(axis))
        bound(indices, type.getDimSize(axis), main);
    };
    if (auto gather = dyn_cast<ds::GatherOp>(op))
      limitBy(gather.getIndices(), gather.getInput(), gather.getAxis());
    if (auto gather = dyn_cast<ds::GatherElementsOp>(op))
      limitBy(gather.getIndices(), gather.getInput(), gather.getAxis());
    if (auto scatter = dyn_cast<ds::ScatterElementsOp>(op))
      limitBy(scatter.getIndices(), scatter.getInput(), scatter.getAxis());
    auto limitByTuple = [&](Value indices, Value data, int64_t first) {
      auto type = cast<RankedTensorType>(indices.getType());
      for (int64_t i = 0; i < type.getShape().back(); ++i)
        limitBy(indices, data, first + i);
    };
    if (auto gather = dyn_cast<ds::GatherNdOp>(op))
      limitByTuple(gather.getIndices(), gather.getInput(), gather.getBatchDims());
    if (auto scatter = dyn_cast<ds::ScatterNdOp>(op))
      limitByTuple(scatter.getIndices(), scatter.getInput(), 0);
  });
}

} // namespace deepstride::onnx
