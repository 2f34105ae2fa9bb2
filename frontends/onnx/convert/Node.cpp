// Binding of operands and attributes, and the messages for what cannot be bound.
#include "frontends/onnx/convert/Node.h"

#include "dialects/ds/HostConstants.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace deepstride::onnx {

bool isNarrowFloat(Type type) {
  return isa_and_present<Float8E4M3FNType, Float8E4M3FNUZType, Float8E5M2Type, Float8E5M2FNUZType, Float8E8M0FNUType,
                         Float4E2M1FNType>(type);
}

bool isSupportedElement(Type type) {
  if (!type)
    return false;
  if (auto integer = dyn_cast<IntegerType>(type))
    return llvm::is_contained({2u, 4u, 8u, 16u, 32u, 64u}, integer.getWidth()) || type.isSignlessInteger(1);
  return type.isF16() || type.isBF16() || type.isF32() || type.isF64() || isNarrowFloat(type);
}

std::string describeElement(Type type) {
  if (!type)
    return "unknown";
  if (auto complex = dyn_cast<ComplexType>(type))
    return complex.getElementType().isF32() ? "complex64" : "complex128";
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return StringRef(text).starts_with("!onnx.") ? text.substr(6) : text;
}

std::string describe(const TensorFacts &facts) { return describeElement(facts.elementType) + brief(facts.sizes); }

InFlightDiagnostic Node::diagnose(const Twine &message) {
  refused = true;
  return emitError(op.getLoc()) << op.getOpType() << ": " << message;
}

Refused Node::refuse(const Twine &message) {
  diagnose(message);
  return {};
}

bool Node::reject(const Twine &message) {
  diagnose(message);
  return false;
}

bool Node::yields(unsigned output) {
  return output < op->getNumResults() && !isa<NoneType>(op->getResult(output).getType());
}

void Node::wrongAttribute(StringRef name, StringRef expected) {
  Attribute found = attribute(name);
  if (found)
    diagnose("attribute '" + name + "': expected " + expected + ", found ") << found;
  else
    diagnose("attribute '" + name + "': expected " + expected + ", found none");
}

int64_t Node::integer(StringRef name, int64_t fallback) {
  Attribute found = attribute(name);
  if (!found)
    return fallback;
  if (auto value = dyn_cast<IntegerAttr>(found))
    return value.getInt();
  wrongAttribute(name, "an integer");
  return fallback;
}

double Node::real(StringRef name, double fallback) {
  Attribute found = attribute(name);
  if (!found)
    return fallback;
  if (auto value = dyn_cast<FloatAttr>(found))
    return value.getValueAsDouble();
  wrongAttribute(name, "a float");
  return fallback;
}

std::string Node::text(StringRef name, StringRef fallback, ArrayRef<StringRef> legal) {
  Attribute found = attribute(name);
  if (!found)
    return fallback.str();
  auto value = dyn_cast<StringAttr>(found);
  if (value && (legal.empty() || llvm::is_contained(legal, value.getValue())))
    return value.str();
  wrongAttribute(name, legal.empty() ? "a string" : "one of " + llvm::join(legal, ", "));
  return fallback.str();
}

std::optional<SmallVector<int64_t>> Node::integers(StringRef name) {
  Attribute found = attribute(name);
  if (!found)
    return std::nullopt;
  if (auto value = dyn_cast<DenseI64ArrayAttr>(found))
    return SmallVector<int64_t>(value.asArrayRef());
  wrongAttribute(name, "a list of integers");
  return std::nullopt;
}

std::optional<int64_t> Node::requiredInteger(StringRef name) {
  if (auto value = dyn_cast_if_present<IntegerAttr>(attribute(name)))
    return value.getInt();
  wrongAttribute(name, "an integer");
  return std::nullopt;
}

std::optional<SmallVector<int64_t>> Node::requiredIntegers(StringRef name) {
  if (!attribute(name))
    wrongAttribute(name, "a list of integers");
  return integers(name);
}

std::optional<SizeVector> Node::sizesOf(unsigned input, StringRef role) {
  if (auto sizes = b.sizesIn(in(input)))
    return sizes;
  TensorFacts facts = b.facts(in(input));
  if (facts.rank() == 1 && !facts.sizes[0].constant())
    return refuse("input " + Twine(input) + " ('" + role + "', " + describe(facts) +
                  "): expected a known number of elements, found " + facts.sizes[0].brief() +
                  "; pin it with --dim, or with --shape where it is an input");
  if (Operation *obstacle = findObstacle(in(input), b.getAnalysis())) {
    InFlightDiagnostic error = diagnose("input " + Twine(input) + " ('" + role + "', " + describe(facts) +
                                        ") is computed from constants, but not when the model is compiled");
    Diagnostic &note = error.attachNote(obstacle->getLoc());
    if (isa<ds::WeightOp>(obstacle))
      note << "a constant of more than " << ds::ConstantOp::byteLimit << " bytes is read when the model is packaged";
    else
      note << "'" << obstacle->getName() << "' is not evaluated with these operands";
    return std::nullopt;
  }
  diagnose("input " + Twine(input) + " ('" + role + "', " + describe(facts) +
           ") is computed from data while the model runs")
          .attachNote()
      << "legal are constants, shapes of tensors and arithmetic on them, and int64 graph inputs of at most 16 elements "
         "in one axis; pin dynamic dimensions with --dim where that makes it one of these";
  return std::nullopt;
}

std::optional<SizeExpr> Node::sizeOf(unsigned input, StringRef role) {
  auto found = sizesOf(input, role);
  if (!found)
    return std::nullopt;
  if (found->size() == 1)
    return found->front();
  return refuse("input " + Twine(input) + " ('" + role + "'): expected one element, found " + Twine(found->size()));
}

std::optional<SmallVector<int64_t>> Node::numbersOf(unsigned input, StringRef role) {
  auto found = sizesOf(input, role);
  if (!found)
    return std::nullopt;
  SmallVector<int64_t> numbers;
  for (const SizeExpr &size : *found) {
    auto number = size.constant();
    if (!number)
      return refuse("input " + Twine(input) + " ('" + role + "'): expected constants, found " + size.brief() +
                    ", which is known only when the model runs; pin its dimensions with --dim");
    numbers.push_back(*number);
  }
  return numbers;
}

std::optional<int64_t> Node::numberOf(unsigned input, StringRef role) {
  auto found = numbersOf(input, role);
  if (!found)
    return std::nullopt;
  if (found->size() == 1)
    return found->front();
  return refuse("input " + Twine(input) + " ('" + role + "'): expected one element, found " + Twine(found->size()));
}

std::optional<SmallVector<double>> Node::realsOf(unsigned input) {
  auto elements = b.elementsIn(in(input));
  if (!elements)
    return std::nullopt;
  SmallVector<double> reals;
  for (int64_t i = 0, count = elements->count(); i < count; ++i)
    reals.push_back(readNumber(elements->element, elements->data + i * elements->elementBytes()).real);
  return reals;
}

std::optional<int64_t> Node::axis(int64_t value, int64_t rank) {
  if (value >= -rank && value < rank)
    return value < 0 ? value + rank : value;
  return refuse("expected an axis from " + Twine(-rank) + " to " + Twine(rank - 1) + ", found " + Twine(value));
}

std::optional<SmallVector<int64_t>> Node::axes(ArrayRef<int64_t> values, int64_t rank) {
  SmallVector<int64_t> result;
  for (int64_t value : values) {
    auto axis = this->axis(value, rank);
    if (!axis)
      return std::nullopt;
    if (llvm::is_contained(result, *axis))
      return refuse("expected each axis once, found axis " + Twine(value) + " again");
    result.push_back(*axis);
  }
  return result;
}

bool Node::requireRank(unsigned input, int64_t least, int64_t most) {
  int64_t rank = b.rank(in(input));
  if (rank >= least && rank <= most)
    return true;
  return reject("input " + Twine(input) + ": expected " + (least == most ? Twine(least) : "at least " + Twine(least)) +
                " axes, found " + describe(b.facts(in(input))));
}

bool Node::requireFloat(unsigned input) {
  if (isa_and_present<FloatType>(b.element(in(input))))
    return true;
  return reject("input " + Twine(input) + ": expected a float type, found " + describe(b.facts(in(input))));
}

Type Node::elementType(int64_t code) {
  MLIRContext *context = b.getContext();
  auto integer = [&](unsigned width, bool isSigned) {
    return IntegerType::get(context, width, isSigned ? IntegerType::Signless : IntegerType::Unsigned);
  };
  switch (code) { // TensorProto.DataType
  case 1: return Float32Type::get(context);
  case 2: return integer(8, false);
  case 3: return integer(8, true);
  case 4: return integer(16, false);
  case 5: return integer(16, true);
  case 6: return integer(32, true);
  case 7: return integer(64, true);
  case 9: return integer(1, true);
  case 10: return Float16Type::get(context);
  case 11: return Float64Type::get(context);
  case 12: return integer(32, false);
  case 13: return integer(64, false);
  case 16: return BFloat16Type::get(context);
  case 17: return Float8E4M3FNType::get(context);
  case 18: return Float8E4M3FNUZType::get(context);
  case 19: return Float8E5M2Type::get(context);
  case 20: return Float8E5M2FNUZType::get(context);
  case 21: return integer(4, false);
  case 22: return integer(4, true);
  case 23: return Float4E2M1FNType::get(context);
  case 24: return Float8E8M0FNUType::get(context);
  case 25: return integer(2, false);
  case 26: return integer(2, true);
  }
  StringRef name = code == 0    ? "undefined"
                   : code == 8  ? "string"
                   : code == 14 ? "complex64"
                   : code == 15 ? "complex128"
                                : "unknown";
  refuse("expected a bool, integer or float element type, found " + name + " (" + Twine(code) + ")");
  return {};
}

} // namespace deepstride::onnx
