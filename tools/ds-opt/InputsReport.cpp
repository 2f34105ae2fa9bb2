// What steers a program is read off its guards and the conditions of its branches, as expressions where the size
// analysis knows them, else by following operands back to the inputs.
#include "tools/ds-opt/InputsReport.h"

#include "dialects/ds/DsDialect.h"
#include "dialects/ds/Guards.h"
#include "dialects/ds/Inference.h"
#include "frontends/onnx/convert/Node.h"
#include "frontends/onnx/dialect/Onnx.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "tools/ds-opt/Message.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"

using namespace mlir;

namespace deepstride {

std::string InputsReport::Tensor::text() const {
  return element + (hasShape ? "[" + llvm::join(dims, ", ") + "]" : " of unknown shape");
}

InputsReport::Tensor InputsReport::tensorOf(Type type, StringAttr name, ArrayAttr dims, StringRef fallback) {
  Tensor tensor;
  tensor.name = name && !name.empty() ? name.str() : fallback.str();
  bool isTensor = isa<ShapedType>(type);
  tensor.element = onnx::describeElement(isTensor ? getElementTypeOrSelf(type) : type);
  if (tensor.element == "i1")
    tensor.element = "bool";
  auto ranked = dyn_cast<RankedTensorType>(type);
  tensor.hasShape = ranked != nullptr;
  if (!ranked)
    return tensor;
  for (auto [axis, size] : llvm::enumerate(ranked.getShape())) {
    Attribute dim = dims && axis < dims.size() ? dims[axis] : Attribute();
    if (auto text = dyn_cast_if_present<StringAttr>(dim); text && !text.empty())
      tensor.dims.push_back(text.str());
    else
      tensor.dims.push_back(ShapedType::isDynamic(size) ? "?" : std::to_string(size));
  }
  return tensor;
}

InputsReport::InputsReport(ModuleOp nodes) {
  auto main = nodes.lookupSymbol<func::FuncOp>("main");
  for (unsigned i = 0; i < main.getNumArguments(); ++i)
    inputs.push_back(tensorOf(main.getArgument(i).getType(), main.getArgAttrOfType<StringAttr>(i, onnx::sourceName),
                              main.getArgAttrOfType<ArrayAttr>(i, onnx::sourceDims), "arg" + std::to_string(i)));
  for (unsigned i = 0; i < main.getNumResults(); ++i)
    outputs.push_back(tensorOf(main.getResultTypes()[i], main.getResultAttrOfType<StringAttr>(i, onnx::sourceName),
                               main.getResultAttrOfType<ArrayAttr>(i, onnx::sourceDims), "output" + std::to_string(i)));
}

/// Numbers that something is compared with, inside of an expression.
static void collectCompared(const SizeExpr &size, std::set<int64_t> &numbers) {
  for (const auto &[monomial, coefficient] : size.polynomial())
    for (const SizeAtom &atom : monomial) {
      if (atom.kind() != SizeAtom::Kind::Call)
        continue;
      for (const SizeExpr &argument : atom.arguments()) {
        if (auto number = argument.constant(); number && *number >= 0 && atom.name() == "eq")
          numbers.insert(*number);
        collectCompared(argument, numbers);
      }
    }
}

void InputsReport::note(const SizeExpr &size, Kind kind) {
  std::set<int64_t> compared;
  collectCompared(size, compared);
  for (const SizeAtom &symbol : size.symbols()) {
    bool isDim = symbol.kind() == SizeAtom::Kind::Symbol;
    if (!isDim && symbol.kind() != SizeAtom::Kind::Element)
      continue;
    Effect &effect = (isDim ? ofDims : ofInputs)[symbol.name().str()];
    effect.*kind = true;
    effect.compared.insert(compared.begin(), compared.end());
  }
}

void InputsReport::follow(Value value, func::FuncOp function, Kind kind, llvm::DenseSet<Value> &seen) {
  SmallVector<Value> open{value};
  while (!open.empty()) {
    Value next = open.pop_back_val();
    if (!seen.insert(next).second)
      continue;
    if (auto argument = dyn_cast<BlockArgument>(next)) {
      if (argument.getOwner() == &function.getBody().front()) {
        if (auto name = function.getArgAttrOfType<StringAttr>(argument.getArgNumber(), ds::nameAttr))
          ofInputs[name.str()].*kind = true;
      } else {
        llvm::append_range(open, argument.getOwner()->getParentOp()->getOperands());
      }
      continue;
    }
    Operation *op = next.getDefiningOp();
    if (auto shape = dyn_cast<ds::ShapeOp>(op))
      if (auto sizes = sizesFromAttribute(shape.getValues()))
        for (const SizeExpr &size : *sizes)
          note(size, kind);
    llvm::append_range(open, op->getOperands());
  }
}

void InputsReport::studyFunction(func::FuncOp function) {
  if (auto guards = function->getAttrOfType<ArrayAttr>(ds::guardsAttr))
    for (auto guard : guards.getAsRange<DictionaryAttr>())
      if (auto condition = SizeExpr::parse(guard.getAs<StringAttr>(ds::conditionKey).getValue()))
        note(*condition, &Effect::branches);
  auto analysis = SizeAnalysis::run(function);
  if (failed(analysis))
    return; // whoever compiles says why
  llvm::DenseSet<Value> seen;
  auto dims = owners();
  function.walk([&](Operation *op) {
    if (auto branch = dyn_cast<scf::IfOp>(op)) {
      // Numbers that the program computes have symbols, too.
      auto condition = analysis->conditionOf(branch.getCondition());
      bool isOfCall = condition && llvm::all_of(condition->symbols(), [&](const SizeAtom &symbol) {
                        return symbol.kind() == SizeAtom::Kind::Element ||
                               (symbol.kind() == SizeAtom::Kind::Symbol && dims.count(symbol.name().str()));
                      });
      if (isOfCall)
        note(*condition, &Effect::branches);
      else
        follow(branch.getCondition(), function, &Effect::branches, seen);
    }
    if (isa<scf::WhileOp>(op)) {
      llvm::DenseSet<Value> ofLoops;
      for (Value operand : op->getOperands())
        if (getElementTypeOrSelf(operand.getType()).isInteger(1))
          follow(operand, function, &Effect::loops, ofLoops);
    }
    for (Value result : op->getResults())
      if (const TensorFacts *facts = analysis->lookup(result))
        for (const SizeExpr &size : facts->sizes)
          if (size.isOverElements())
            for (const SizeAtom &symbol : size.symbols())
              if (symbol.kind() == SizeAtom::Kind::Element)
                ofInputs[symbol.name().str()].shapes = true;
  });
}

void InputsReport::study(ModuleOp program) {
  bool isFirst = true;
  for (auto function : program.getOps<func::FuncOp>()) {
    if (!function->hasAttr(ds::entryAttr))
      continue;
    studyFunction(function);
    if (!std::exchange(isFirst, false))
      continue;
    for (Tensor &input : inputs)
      input.isPinned = true; // until it is found
    for (unsigned i = 0; i < function.getNumArguments(); ++i) {
      Tensor found = tensorOf(function.getArgument(i).getType(), function.getArgAttrOfType<StringAttr>(i, ds::nameAttr),
                              function.getArgAttrOfType<ArrayAttr>(i, ds::dimsAttr), "");
      for (Tensor &input : inputs)
        if (input.name == found.name)
          input = found;
    }
    outputs.clear();
    for (unsigned i = 0; i < function.getNumResults(); ++i)
      outputs.push_back(tensorOf(function.getResultTypes()[i],
                                 function.getResultAttrOfType<StringAttr>(i, ds::nameAttr),
                                 function.getResultAttrOfType<ArrayAttr>(i, ds::dimsAttr), ""));
  }
}

/// Dimensions by name, each with the inputs that have it.
std::map<std::string, std::vector<std::string>> InputsReport::owners() const {
  std::map<std::string, std::vector<std::string>> owners;
  for (const Tensor &input : inputs)
    for (const std::string &dim : input.dims)
      if (auto size = SizeExpr::parse(dim); size && !input.isPinned)
        for (const SizeAtom &symbol : size->symbols())
          if (auto &names = owners[symbol.name().str()]; names.empty() || names.back() != input.name)
            names.push_back(input.name);
  return owners;
}

std::string InputsReport::describe(const std::string &name, const Effect &effect, StringRef element, bool isPinnable) {
  std::vector<std::string> what;
  for (auto [isSo, word] :
       {std::pair(effect.branches, "branches"), std::pair(effect.loops, "loops"), std::pair(effect.shapes, "shapes")})
    if (isSo)
      what.push_back(word);
  if (what.empty())
    return "";
  std::string text = "steers " + llvm::join(what, " and ");
  if (!isPinnable)
    return text;
  std::vector<std::string> values;
  if (element == "bool")
    values = {"0", "1"};
  for (int64_t number : effect.compared)
    if (element != "bool")
      values.push_back(std::to_string(number));
  text += ": pin with ";
  constexpr size_t most = 4;
  if (values.empty() || values.size() > most)
    return text + "--dim " + name + (element.empty() ? "=SIZE" : "=VALUE");
  for (auto [index, value] : llvm::enumerate(values))
    text += (index ? " or " : "") + ("--dim " + name + "=" + value);
  return text;
}

/// Integer inputs of one rank that are apart in name at an axis are usually one batch, or one sequence.
void InputsReport::printJoins(llvm::raw_ostream &stream) const {
  auto owned = owners();
  const Tensor *first = nullptr;
  std::set<std::string> suggested;
  for (const Tensor &input : inputs) {
    if (input.isPinned || !StringRef(input.element).starts_with("i") || input.dims.empty())
      continue;
    if (!first || first->dims.size() != input.dims.size()) {
      first = first ? first : &input;
      continue;
    }
    for (auto [dim, other] : llvm::zip_equal(input.dims, first->dims))
      if (dim != other && owned.count(dim) && owned.count(other) && owned[dim].size() == 1 &&
          owned[other].front() == first->name)
        suggested.insert("--dim " + dim + "=" + other);
  }
  if (!suggested.empty())
    stream << asLine("perhaps one dimension under two names: " +
                     llvm::join(std::vector<std::string>(suggested.begin(), suggested.end()), " "));
}

void InputsReport::print(llvm::raw_ostream &stream) const {
  size_t width = 0, textWidth = 0;
  for (const auto *list : {&inputs, &outputs})
    for (const Tensor &tensor : *list) {
      width = std::max(width, tensor.name.size());
      if (list == &inputs)
        textWidth = std::max(textWidth, tensor.text().size());
    }
  auto owned = owners();
  for (const auto &entry : owned)
    width = std::max(width, entry.first.size());
  constexpr size_t widest = 40; // a name that is longer stands alone
  width = std::min(width, widest);
  auto line = [&](StringRef name, StringRef text, size_t space, StringRef remark) {
    std::string words;
    llvm::raw_string_ostream(words) << "  " << llvm::left_justify(name, width) << "  "
                                    << llvm::left_justify(text, remark.empty() ? 0 : space)
                                    << (remark.empty() ? "" : "  ") << remark;
    stream << asLine(words);
  };
  stream << "inputs:\n";
  for (const Tensor &input : inputs) {
    auto effect = ofInputs.find(input.name);
    bool isOne = input.hasShape && llvm::all_of(input.dims, [](StringRef dim) { return dim == "1"; });
    bool isInteger = input.element == "bool" || StringRef(input.element).contains('i'); // i64, ui8, si32
    line(input.name, input.text(), textWidth,
         input.isPinned             ? "pinned"
         : effect == ofInputs.end() ? std::string()
                                    : describe(input.name, effect->second, input.element, isOne && isInteger));
  }
  if (!owned.empty())
    stream << "dimensions:\n";
  for (const auto &[name, names] : owned) {
    auto effect = ofDims.find(name);
    line(name, "of " + llvm::join(names, ", "), textWidth,
         effect == ofDims.end() ? std::string() : describe(name, effect->second, "", true));
  }
  stream << "outputs:\n";
  for (const Tensor &output : outputs)
    line(output.name, output.text(), 0, "");
  printJoins(stream);
}

} // namespace deepstride
