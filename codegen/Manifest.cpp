// Tables to JSON; every field is described in docs/package-format.md.
#include "codegen/Manifest.h"

namespace deepstride {

using llvm::json::Array;
using llvm::json::Object;
using llvm::json::Value;

static Array shapeOf(const SizeVector &shape) {
  Array result;
  for (const SizeExpr &size : shape)
    result.push_back(size.str());
  return result;
}

static Array tensors(const std::vector<EntryPlan::Tensor> &list, const llvm::StringMap<unsigned> *constantIds,
                     const llvm::StringMap<unsigned> *unitIds = nullptr) {
  Array result;
  for (const EntryPlan::Tensor &tensor : list) {
    Object fields{{"name", tensor.name}, {"type", tensor.type}, {"shape", shapeOf(tensor.shape)}};
    if (tensor.bound)
      fields["bound"] = *tensor.bound;
    if (constantIds)
      fields["initial"] = tensor.initial.empty() ? Value(nullptr) : Value(constantIds->lookup(tensor.initial));
    if (tensor.isStatistic)
      fields["statistic"] = true;
    if (unitIds && !tensor.unit.empty()) {
      fields["unit"] = unitIds->lookup(tensor.unit);
      fields["part"] = tensor.part;
      fields["suffix"] = tensor.suffix;
    }
    result.push_back(std::move(fields));
  }
  return result;
}

static Array buffers(const EntryPlan &plan, const llvm::StringMap<unsigned> &constantIds) {
  Array result;
  for (const EntryPlan::Buffer &buffer : plan.buffers) {
    Object fields{{"role", buffer.role}};
    if (buffer.role == "constant")
      fields["index"] = constantIds.lookup(buffer.recipe);
    else if (buffer.role == "workspace") {
      fields["bytes"] = buffer.bytes;
      fields["first"] = buffer.first;
      fields["last"] = buffer.last;
    } else {
      fields["index"] = buffer.index;
    }
    result.push_back(std::move(fields));
  }
  return result;
}

static Array workOf(const EntryPlan::Launch &launch) {
  Array result;
  for (const EntryPlan::Work &work : launch.work) {
    Object fields{{"op", work.op}, {"role", work.role}};
    for (auto [key, size] :
         {std::pair("macs", &work.macs), std::pair("flops", &work.flops), std::pair("bytes", &work.bytes)})
      if (!size->isConstant(0))
        fields[key] = size->str();
    for (auto [key, name] :
         {std::pair("node", &work.node), std::pair("parameter", &work.parameter), std::pair("part", &work.part)})
      if (!name->empty())
        fields[key] = *name;
    if (work.mayBeLess)
      fields["may_be_less"] = true;
    result.push_back(std::move(fields));
  }
  return result;
}

static Array launches(const EntryPlan &plan, llvm::StringRef arithmetic) {
  Array result;
  for (const EntryPlan::Launch &launch : plan.launches) {
    Array results;
    for (const EntryPlan::Result &value : launch.results) {
      Object fields{
          {"buffer", value.buffer}, {"value", value.value}, {"type", value.type}, {"shape", shapeOf(value.shape)}};
      if (value.writes)
        fields["writes"] = value.writes->str();
      results.push_back(std::move(fields));
    }
    Array operands, reads;
    for (uint32_t buffer : llvm::ArrayRef(launch.buffers).drop_back(launch.results.size()))
      operands.push_back(buffer);
    for (const std::optional<SizeExpr> &bytes : launch.reads)
      reads.push_back(bytes ? Value(bytes->str()) : Value(nullptr));
    Object fields{{"kernel", launch.kernel},
                  {"operands", std::move(operands)},
                  {"site", launch.site},
                  {"flops", launch.flops.str()},
                  {"arithmetic", launch.arithmetic.empty() ? arithmetic.str() : launch.arithmetic},
                  {"results", std::move(results)},
                  {"work", workOf(launch)}};
    if (!reads.empty())
      fields["reads"] = std::move(reads);
    if (!launch.elementwise.empty())
      fields["elementwise"] = Array(launch.elementwise);
    if (launch.scratch != UINT32_MAX)
      fields["scratch"] = launch.scratch;
    result.push_back(std::move(fields));
  }
  return result;
}

static Array collectives(const EntryPlan &plan) {
  Array result;
  for (const EntryPlan::Collective &collective : plan.collectives) {
    Array parts;
    for (const EntryPlan::CollectivePart &part : collective.parts) {
      Array whole;
      for (const EntryPlan::Piece &piece : part.whole) {
        Object fields{{"buffer", piece.buffer}, {"offset", piece.offset.str()}, {"count", piece.count.str()}};
        if (piece.source >= 0)
          fields["source"] = piece.source;
        whole.push_back(std::move(fields));
      }
      Object fields{{"shard", part.shard.str()},
                    {"begin", part.begin.str()},
                    {"end", part.end.str()},
                    {"whole", std::move(whole)}};
      if (part.own >= 0)
        fields["own"] = part.own;
      if (part.workerError >= 0) {
        fields["worker_error"] = part.workerError;
        fields["server_error"] = part.serverError;
      }
      if (part.rowLength > 0)
        fields["row_length"] = part.rowLength;
      parts.push_back(std::move(fields));
    }
    Object fields{{"op", collective.op},      {"site", collective.site},       {"axis", collective.axis},
                  {"type", collective.type},  {"sent", collective.sent.str()}, {"received", collective.received.str()},
                  {"parts", std::move(parts)}};
    if (collective.condition >= 0)
      fields["condition"] = collective.condition;
    if (collective.isDeferred)
      fields["deferred"] = true;
    if (collective.by != 0)
      fields["by"] = collective.by;
    if (collective.rotates)
      fields["rotate"] = true;
    if (!collective.reduction.empty())
      fields["reduction"] = collective.reduction;
    if (!collective.codec.empty())
      fields["codec"] = collective.codec;
    if (!collective.wire.empty())
      fields["wire"] = collective.wire;
    result.push_back(std::move(fields));
  }
  return result;
}

Array unitsManifest(mlir::ArrayAttr units, const llvm::StringMap<unsigned> &constantIds,
                    llvm::StringMap<unsigned> &unitIds) {
  Array result;
  for (auto unit : units.getAsRange<mlir::DictionaryAttr>()) {
    auto number = [](mlir::DictionaryAttr fields, llvm::StringRef key) {
      return fields.getAs<mlir::IntegerAttr>(key).getInt();
    };
    Array list;
    for (auto tensor : unit.getAs<mlir::ArrayAttr>("tensors").getAsRange<mlir::DictionaryAttr>()) {
      Array shape;
      SizeVector sizes = *sizesFromAttribute(tensor.getAs<mlir::ArrayAttr>("shape"));
      for (const SizeExpr &size : sizes)
        shape.push_back(size.constant().value_or(0));
      list.push_back(
          Object{{"name", tensor.getAs<mlir::StringAttr>("name").getValue()},
                 {"offset", number(tensor, "offset")},
                 {"shape", std::move(shape)},
                 {"initial", constantIds.lookup(tensor.getAs<mlir::FlatSymbolRefAttr>("initial").getValue())}});
    }
    llvm::StringRef name = unit.getAs<mlir::StringAttr>("name").getValue();
    unitIds[name] = static_cast<unsigned>(result.size());
    Object fields{{"name", name},
                  {"block", number(unit, "block")},
                  {"elements", number(unit, "elements")},
                  {"tensors", std::move(list)}};
    if (auto rounded = unit.getAs<mlir::TypeAttr>("rounded"))
      fields["rounded"] = manifestType(rounded.getValue());
    result.push_back(std::move(fields));
  }
  return result;
}

Object entryManifest(const EntryPlan &plan, const llvm::StringMap<unsigned> &constantIds,
                     const llvm::StringMap<unsigned> &unitIds, llvm::StringRef arithmetic) {
  Array symbols, sizes, constraints;
  for (const EntryPlan::Symbol &symbol : plan.symbols) {
    Object fields{{"name", symbol.name}, {"kind", symbol.kind}};
    if (symbol.kind == "element") {
      fields["input"] = symbol.input;
      fields["index"] = symbol.index;
    }
    symbols.push_back(std::move(fields));
  }
  for (const std::string &text : plan.sizes)
    sizes.push_back(text);
  for (const EntryPlan::Constraint &constraint : plan.constraints)
    constraints.push_back(Object{{"relation", constraint.relation},
                                 {"lhs", constraint.lhs},
                                 {"rhs", constraint.rhs},
                                 {"where", constraint.where}});
  Object entry{{"name", plan.name},
               {"symbols", std::move(symbols)},
               {"sizes", std::move(sizes)},
               {"constraints", std::move(constraints)},
               {"inputs", tensors(plan.inputs, nullptr)},
               {"outputs", tensors(plan.outputs, nullptr)},
               {"states", tensors(plan.states, &constantIds, &unitIds)},
               {"buffers", buffers(plan, constantIds)},
               {"launches", launches(plan, arithmetic)},
               {"collectives", collectives(plan)}};
  if (!plan.group.empty())
    entry["group"] = plan.group;
  if (!plan.guards.empty()) {
    Array guards;
    for (const EntryPlan::Guard &guard : plan.guards)
      guards.push_back(Object{{"condition", guard.condition.str()}, {"holds", guard.holds}});
    entry["guards"] = std::move(guards);
  }
  return entry;
}

Object variantManifest(const CpuTarget &target, llvm::StringRef codeFile, llvm::ArrayRef<StoredConstant> constants,
                       Array units, Array entries) {
  Array list;
  for (const StoredConstant &constant : constants) {
    Array shape;
    for (int64_t size : constant.shape)
      shape.push_back(size);
    list.push_back(Object{{"name", constant.name},
                          {"offset", constant.offset},
                          {"bytes", constant.bytes},
                          {"type", constant.type},
                          {"shape", std::move(shape)},
                          {"layout", constant.layout}});
  }
  Array features;
  for (const std::string &feature : target.features)
    features.push_back(feature);
  return Object{{"mcpu", target.name},          {"features", std::move(features)},
                {"code", codeFile.str()},       {"vector_bits", target.vectorBits},
                {"constants", std::move(list)}, {"units", std::move(units)},
                {"entries", std::move(entries)}};
}

} // namespace deepstride
