// Names play no part in where blocks begin: only what reads a parameter first does.
#include "passes/training/Units.h"

#include "dialects/ds/DsDialect.h"
#include "llvm/ADT/SetVector.h"

#include <map>

using namespace mlir;

namespace deepstride {

SizeExpr Unit::shard() const {
  return SizeExpr::ceilDiv(SizeExpr(elements), dist::meshSize("data") * SizeExpr(block)) * SizeExpr(block);
}

Attribute Unit::layout(MLIRContext *context, size_t first, size_t last) const {
  int64_t begin = first == 0 ? 0 : offsets[first], end = last == offsets.size() ? -1 : offsets[last];
  return dist::LayoutAttr::get(context, ArrayRef(offsets).slice(first, last - first), elements, block, begin, end);
}

SmallVector<Bucket> cutUnit(const Unit &unit, int64_t most) {
  SmallVector<Bucket> buckets;
  auto beginOf = [&](size_t number) { return number < unit.offsets.size() ? unit.offsets[number] : unit.elements; };
  for (size_t last = unit.parameters.size(), first = last; last > 0; last = first) {
    first = last - 1;
    while (first > 0 && beginOf(last) - beginOf(first - 1) <= most)
      --first;
    size_t part = buckets.size() + 1;
    buckets.push_back(
        {&unit, first, last, unit.name + (first == 0 && part == 1 ? "" : ", part " + std::to_string(part))});
  }
  return buckets;
}

std::string Unit::stateName(StringRef suffix) const {
  return "zero/" + name + (suffix.empty() ? "" : "/" + suffix.str());
}

namespace {

/// The ops of a function by their place in the program.
struct Program {
  explicit Program(func::FuncOp model) {
    model.walk<WalkOrder::PreOrder>([&](Operation *op) { places.try_emplace(op, places.size()); });
  }
  llvm::DenseMap<Operation *, size_t> places;
};

/// What a value is made of: products, and the norms that they read.
size_t firstOf(Value value, const Program &program, size_t end) {
  llvm::SetVector<Value> seen;
  seen.insert(value);
  size_t first = end;
  constexpr size_t walkLimit = 200;
  for (size_t i = 0; i < seen.size() && i < walkLimit; ++i) {
    Operation *op = seen[i].getDefiningOp();
    if (!op)
      continue;
    if (isa<ds::LinearOp, ds::MatmulOp>(op)) {
      first = std::min(first, program.places.lookup(op));
      if (Operation *norm = op->getOperand(0).getDefiningOp(); isa_and_present<ds::LayerNormOp, ds::RmsNormOp>(norm)) {
        Value stream = norm->getOperand(0);
        bool isPassedBy = !stream.hasOneUse(); // the residual stream: the norm is the block's
        if (isPassedBy)
          first = std::min(first, program.places.lookup(norm));
      }
      continue;
    }
    seen.insert(op->operand_begin(), op->operand_end());
  }
  return first;
}

bool isSelfAttention(ds::AttentionOp attention) {
  // A query and a key of one projection's operand: both products read the same value.
  auto sourceOf = [](Value value) {
    llvm::SetVector<Value> seen;
    seen.insert(value);
    for (size_t i = 0; i < seen.size() && i < 200; ++i)
      if (Operation *op = seen[i].getDefiningOp()) {
        if (isa<ds::LinearOp, ds::MatmulOp>(op))
          return op->getOperand(0);
        seen.insert(op->operand_begin(), op->operand_end());
      }
    return Value();
  };
  Value query = sourceOf(attention.getQuery()), key = sourceOf(attention.getKey());
  return query == key;
}

/// Where blocks begin, in program order.
SmallVector<size_t> findCuts(func::FuncOp model, const Program &program, bool &areLayers) {
  SmallVector<size_t> cuts;
  model.walk<WalkOrder::PreOrder>([&](ds::AttentionOp attention) {
    if (!isSelfAttention(attention))
      return;
    size_t end = program.places.lookup(attention), first = end;
    for (Value value : {attention.getQuery(), attention.getKey(), attention.getValue()})
      first = std::min(first, firstOf(value, program, end));
    if (cuts.empty() || first > cuts.back())
      cuts.push_back(first);
  });
  areLayers = !cuts.empty();
  if (areLayers)
    return cuts;
  model.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (isa<ds::LinearOp, ds::MatmulOp, ds::ConvOp>(op))
      cuts.push_back(program.places.lookup(op));
  });
  return cuts;
}

} // namespace

SmallVector<Unit> findUnits(func::FuncOp model, const SizeAnalysis &analysis,
                            llvm::function_ref<bool(StringRef)> isApart, int64_t keptBelow, int64_t keptTogether) {
  Program program(model);
  bool areLayers = false;
  SmallVector<size_t> cuts = findCuts(model, program, areLayers);
  SmallVector<Parameter> parameters = parametersOf(model);
  // The number of the cut before the first reader; 0: before all.
  std::map<size_t, SmallVector<std::pair<size_t, unsigned>>> groups;
  for (auto [number, parameter] : llvm::enumerate(parameters)) {
    size_t first = program.places.size();
    for (Operation *user : parameter.value.getUsers())
      first = std::min(first, program.places.lookup(user));
    auto group = static_cast<size_t>(llvm::upper_bound(cuts, first) - cuts.begin());
    groups[group].emplace_back(first, static_cast<unsigned>(number));
  }
  // What follows the last block: it has as many parameters as the one before.
  auto last = groups.find(cuts.size()), previous = groups.find(cuts.size() - 1);
  if (areLayers && cuts.size() > 1 && last != groups.end() && previous != groups.end() &&
      last->second.size() > previous->second.size()) {
    llvm::sort(last->second);
    auto &head = groups[cuts.size() + 1];
    head.append(last->second.begin() + previous->second.size(), last->second.end());
    last->second.truncate(previous->second.size());
  }
  SmallVector<Unit> units;
  int64_t kept = 0;
  for (auto &[group, members] : groups) {
    std::string name = group == 0            ? "embeddings"
                       : group > cuts.size() ? "head"
                       : areLayers           ? "block " + std::to_string(group - 1)
                                             : "layer " + std::to_string(group - 1);
    llvm::sort(members);
    for (auto [place, number] : members) {
      const Parameter &parameter = parameters[number];
      const TensorFacts &facts = analysis.facts(parameter.value);
      int64_t count = product(facts.sizes).constant().value_or(0);
      bool staysWhole = count < keptBelow && kept + count <= keptTogether;
      kept += staysWhole ? count : 0;
      std::string own =
          name + (isApart(parameter.name.getValue()) ? " without decay" : "") + (staysWhole ? ", whole" : "");
      auto known =
          llvm::find_if(units, [&](const Unit &unit) { return unit.name == own && unit.element == facts.elementType; });
      if (known == units.end()) {
        Unit &fresh = units.emplace_back();
        fresh.name = own;
        fresh.element = facts.elementType;
        fresh.staysWhole = staysWhole;
        known = &units.back();
      }
      Unit &unit = *known;
      unit.parameters.push_back(number);
      unit.offsets.push_back(unit.elements);
      unit.elements += llvm::divideCeil(count, unitBlock) * unitBlock;
    }
  }
  std::map<std::string, int> sameNames; // of several element types
  for (Unit &unit : units)
    if (int count = sameNames[unit.name]++; count > 0)
      unit.name += " (" + std::to_string(count) + ")";
  return units;
}

ArrayAttr describeUnits(func::FuncOp model, const SizeAnalysis &analysis, ArrayRef<Unit> units) {
  Builder builder(model.getContext());
  SmallVector<Parameter> parameters = parametersOf(model);
  SmallVector<Attribute> list;
  for (const Unit &unit : units) {
    SmallVector<Attribute> tensors;
    for (auto [number, offset] : llvm::zip_equal(unit.parameters, unit.offsets)) {
      const Parameter &parameter = parameters[number];
      NamedAttrList fields;
      fields.set("name", parameter.name);
      fields.set("offset", builder.getI64IntegerAttr(offset));
      fields.set("shape", toAttribute(model.getContext(), analysis.facts(parameter.value).sizes));
      fields.set("initial", model.getArgAttr(parameter.value.getArgNumber(), ds::initialAttr));
      tensors.push_back(fields.getDictionary(model.getContext()));
    }
    NamedAttrList fields;
    fields.set("name", builder.getStringAttr(unit.name));
    fields.set("block", builder.getI64IntegerAttr(unit.block));
    fields.set("elements", builder.getI64IntegerAttr(unit.elements));
    if (unit.rounded)
      fields.set("rounded", TypeAttr::get(unit.rounded));
    fields.set("tensors", builder.getArrayAttr(tensors));
    list.push_back(fields.getDictionary(model.getContext()));
  }
  return builder.getArrayAttr(list);
}

} // namespace deepstride
