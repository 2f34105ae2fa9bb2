#include "runtime/core/Binding.h"

#include "runtime/core/Error.h"

#include <algorithm>

namespace ds {
namespace {

// Compilers fold arithmetic on dimensions because it cannot wrap; for that, dimensions have a bound.
constexpr int64_t largestDimension = int64_t(1) << 40;

// Who gave a dimension its value, for messages when another place disagrees.
struct Origin {
  bool known = false;
  std::string place;
};

std::string place(const TensorInfo &input, size_t axis) { return concat("input '", input.name, "' dimension ", axis); }

void checkSignature(const EntryInfo &entry, const std::vector<TensorView> &inputs) {
  if (inputs.size() != entry.inputs.size())
    fail(ErrorCode::InvalidArgument, "wrong number of inputs, found ", inputs.size(), ", expected ",
         entry.inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const TensorInfo &info = entry.inputs[i];
    if (inputs[i].type != info.type)
      fail(ErrorCode::ShapeMismatch, "input '", info.name, "': wrong type, found ", typeName(inputs[i].type),
           ", expected ", typeName(info.type));
    if (inputs[i].shape.size() != info.shape.size())
      fail(ErrorCode::ShapeMismatch, "input '", info.name, "': wrong rank, found ", listText(inputs[i].shape),
           ", expected ", shapeText(info.shape));
    if (!inputs[i].data && inputs[i].bytes() != 0)
      fail(ErrorCode::InvalidArgument, "input '", info.name, "': no data");
  }
}

void bindDimension(const std::string &name, int64_t value, const std::string &where, int64_t &slot, Origin &origin) {
  if (origin.known && slot != value)
    fail(ErrorCode::ShapeMismatch, where, ": '", name, "' differs, found ", value, ", expected ", slot, " (from ",
         origin.place, ")");
  slot = value;
  if (!origin.known)
    origin = {true, where};
}

} // namespace

std::string shapeText(const SymbolicShape &shape) {
  std::vector<std::string> dims;
  for (const SizeExpr &dim : shape)
    dims.push_back(dim.text());
  return listText(dims);
}

Shape evaluateShape(const SymbolicShape &shape, const std::vector<int64_t> &symbols) {
  Shape result;
  result.reserve(shape.size());
  for (const SizeExpr &dim : shape)
    result.push_back(dim.evaluate(symbols));
  return result;
}

bool isMeshIndex(const SymbolInfo &symbol) {
  const std::string end = ".index";
  return symbol.kind == SymbolKind::Mesh && symbol.name.size() > end.size() &&
         symbol.name.compare(symbol.name.size() - end.size(), end.size(), end) == 0;
}

bool isOfMesh(const EntryInfo &entry, const SizeExpr &expr) {
  const std::vector<uint32_t> &used = expr.symbols();
  return std::all_of(used.begin(), used.end(),
                     [&](uint32_t symbol) { return entry.symbols[symbol].kind == SymbolKind::Mesh; });
}

std::vector<int64_t> meshSymbols(const EntryInfo &entry, const Mesh &mesh) {
  std::vector<int64_t> values(entry.symbols.size(), 0);
  for (size_t i = 0; i < values.size(); ++i)
    if (entry.symbols[i].kind == SymbolKind::Mesh)
      values[i] = isMeshIndex(entry.symbols[i]) ? mesh.rank : mesh.ranks;
  return values;
}

std::vector<int64_t> bindPins(const EntryInfo &entry, const Pins &pins, std::vector<bool> &known) {
  std::vector<int64_t> values(entry.symbols.size(), 0);
  known.assign(entry.symbols.size(), false);
  for (size_t i = 0; i < values.size(); ++i)
    if (entry.symbols[i].kind == SymbolKind::Mesh) // a world of one, unless it is pinned
      values[i] = isMeshIndex(entry.symbols[i]) ? 0 : 1;
  for (const auto &[name, value] : pins) {
    auto found = std::find_if(entry.symbols.begin(), entry.symbols.end(), [&name = name](const SymbolInfo &symbol) {
      return (symbol.kind == SymbolKind::Dim || symbol.kind == SymbolKind::Mesh) && symbol.name == name;
    });
    if (found == entry.symbols.end()) {
      std::vector<std::string> legal;
      for (const SymbolInfo &symbol : entry.symbols)
        if (symbol.kind == SymbolKind::Dim || symbol.kind == SymbolKind::Mesh)
          legal.push_back(symbol.name);
      fail(ErrorCode::InvalidArgument, "no dimension '", name, "', expected one of ", listText(legal));
    }
    if (value < 0 || value > largestDimension)
      fail(ErrorCode::InvalidArgument, "dimension '", name, "': expected 0 to 2^40, found ", value);
    size_t index = static_cast<size_t>(found - entry.symbols.begin());
    if (found->kind == SymbolKind::Mesh && value < (isMeshIndex(*found) ? 0 : 1))
      fail(ErrorCode::InvalidArgument, "'", name, "': expected at least 1, found ", value);
    values[index] = value;
    known[index] = true;
  }
  return values;
}

std::vector<int64_t> bindSymbols(const EntryInfo &entry, const std::vector<TensorView> &inputs, const Pins &pins,
                                 const std::vector<bool> *wanted) {
  checkSignature(entry, inputs);
  std::vector<bool> pinned;
  std::vector<int64_t> values = bindPins(entry, pins, pinned);
  std::vector<Origin> origins(values.size());
  for (size_t i = 0; i < values.size(); ++i)
    if (pinned[i])
      origins[i] = {true, "the pinned dimension"};

  for (size_t i = 0; i < inputs.size(); ++i)
    for (size_t axis = 0; axis < inputs[i].shape.size(); ++axis) {
      uint32_t symbol = 0;
      if (inputs[i].shape[axis] < 0 || inputs[i].shape[axis] > largestDimension)
        fail(ErrorCode::ShapeMismatch, place(entry.inputs[i], axis), ": expected 0 to 2^40, found ",
             inputs[i].shape[axis]);
      if (entry.inputs[i].shape[axis].isSymbol(symbol) && entry.symbols[symbol].kind == SymbolKind::Dim)
        bindDimension(entry.symbols[symbol].name, inputs[i].shape[axis], place(entry.inputs[i], axis), values[symbol],
                      origins[symbol]);
    }

  for (size_t s = 0; s < values.size(); ++s) {
    const SymbolInfo &symbol = entry.symbols[s];
    if (wanted && !(*wanted)[s])
      continue;
    if (symbol.kind == SymbolKind::Dim && !origins[s].known)
      fail(ErrorCode::UnboundDimension, "dimension '", symbol.name, "' has no value: no input gives it, pin it");
    if (symbol.kind != SymbolKind::Element)
      continue;
    const TensorView &input = inputs[symbol.input];
    int64_t count = elementCount(input.shape);
    if (symbol.index >= static_cast<uint64_t>(count))
      fail(ErrorCode::ShapeMismatch, "input '", entry.inputs[symbol.input].name, "': too short, found ", count,
           " elements, expected more than ", symbol.index);
    values[s] = loadInteger(input.type, input.data, symbol.index);
  }

  for (size_t i = 0; i < inputs.size() && !wanted; ++i)
    for (size_t axis = 0; axis < inputs[i].shape.size(); ++axis) {
      const SizeExpr &expr = entry.inputs[i].shape[axis];
      int64_t expected = expr.evaluate(values);
      if (inputs[i].shape[axis] != expected)
        fail(ErrorCode::ShapeMismatch, place(entry.inputs[i], axis), ": wrong size, found ", inputs[i].shape[axis],
             ", expected ", expected, expr.isConstant() ? "" : " (" + expr.text() + ")");
    }
  return values;
}

void checkConstraint(const ConstraintInfo &constraint, const std::vector<int64_t> &symbols) {
  int64_t lhs = constraint.lhs.evaluate(symbols), rhs = constraint.rhs.evaluate(symbols);
  auto refuse = [&](const char *relation, const char *legal = "") {
    // Programs that were written by hand need not say where a requirement comes from.
    std::string place = constraint.where.empty() ? "" : constraint.where + ": ";
    fail(ErrorCode::ShapeMismatch, place, constraint.lhs.text(), " ", relation, " ", constraint.rhs.text(),
         " does not hold, found ", lhs, " and ", rhs, legal);
  };
  switch (constraint.relation) {
  case Relation::Equal:
    if (lhs != rhs)
      refuse("==");
    break;
  case Relation::Broadcast:
    if (lhs != rhs && lhs != 1 && rhs != 1)
      refuse("broadcast with", ", expected equal sizes or a 1");
    break;
  case Relation::AtLeast:
    if (lhs < rhs)
      refuse(">=");
    break;
  }
}

void checkConstraints(const EntryInfo &entry, const std::vector<int64_t> &symbols) {
  for (const ConstraintInfo &constraint : entry.constraints)
    if (!entry.dependsOnComputed(constraint.lhs) && !entry.dependsOnComputed(constraint.rhs))
      checkConstraint(constraint, symbols);
}

} // namespace ds
