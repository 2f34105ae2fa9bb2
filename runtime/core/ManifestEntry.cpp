#include "runtime/core/ManifestEntry.h"

#include "runtime/comm/Communicator.h"
#include "runtime/comm/Wire.h"

#include <algorithm>

namespace ds {
namespace {

// Reads one entry. The order of the parts is that of their references: symbols first, then what is written in them.
class EntryReader {
public:
  EntryReader(const JsonReader &json, size_t constantCount, const std::vector<UnitInfo> &units)
      : json(json), constantCount(constantCount), units(units) {}

  EntryInfo run() {
    entry.name = json["name"].string();
    entry.group = json.has("group") ? json["group"].string() : entry.name;
    readSymbols();
    json["sizes"].forEach([&](const JsonReader &item) { entry.sizes.push_back(readExpr(item)); });
    json["inputs"].forEach([&](const JsonReader &item) { entry.inputs.push_back(readTensor(item, true)); });
    json["outputs"].forEach([&](const JsonReader &item) { entry.outputs.push_back(readTensor(item, false)); });
    checkElementSymbols();
    if (json.has("guards"))
      json["guards"].forEach([&](const JsonReader &item) {
        entry.guards.push_back({readExpr(item["condition"], false), item["holds"].boolean()});
      });
    json["constraints"].forEach([&](const JsonReader &item) { readConstraint(item); });
    json["states"].forEach([&](const JsonReader &item) { readState(item); });
    size_t launchCount = 0;
    json["launches"].forEach([&](const JsonReader &) { ++launchCount; });
    json["buffers"].forEach([&](const JsonReader &item) { readBuffer(item, launchCount); });
    json["launches"].forEach([&](const JsonReader &item) { readLaunch(item); });
    json["collectives"].forEach([&](const JsonReader &item) { readCollective(item); });
    checkBuffersOfSignature();
    return std::move(entry);
  }

private:
  SizeExpr readExpr(const JsonReader &item, bool mayUseComputed = true) {
    SizeExpr expr;
    if (item.isString()) {
      try {
        expr = SizeExpr::parse(item.string(), table);
      } catch (const Error &error) {
        item.refuse(error.what());
      }
    } else {
      expr = SizeExpr::constant(item.integer(0));
    }
    if (!mayUseComputed && entry.dependsOnComputed(expr))
      item.refuse("'", expr.text(), "' uses a computed symbol, expected what is known before the call");
    return expr;
  }

  SymbolicShape readShape(const JsonReader &item, bool mayUseComputed = true) {
    SymbolicShape shape;
    item.forEach([&](const JsonReader &dim) { shape.push_back(readExpr(dim, mayUseComputed)); });
    return shape;
  }

  void readSymbols() {
    json["symbols"].forEach([&](const JsonReader &item) {
      SymbolInfo symbol;
      symbol.name = item["name"].string();
      symbol.kind = readEnum<SymbolKind>(item["kind"], {{"dim", SymbolKind::Dim},
                                                        {"element", SymbolKind::Element},
                                                        {"computed", SymbolKind::Computed},
                                                        {"mesh", SymbolKind::Mesh}});
      if (symbol.kind == SymbolKind::Element) {
        symbol.input = static_cast<uint32_t>(item["input"].integer(0, UINT32_MAX));
        symbol.index = static_cast<uint64_t>(item["index"].integer(0));
      }
      if (!addSymbol(item, symbol))
        item["name"].refuse("symbol '", symbol.name, "' is defined twice");
      entry.symbols.push_back(std::move(symbol));
    });
  }

  // An element is named after its input and its place there.
  bool addSymbol(const JsonReader &item, const SymbolInfo &symbol) {
    auto index = static_cast<uint32_t>(entry.symbols.size());
    if (symbol.kind != SymbolKind::Element)
      return table.named.emplace(symbol.name, index).second;
    std::string place = "[" + std::to_string(symbol.index) + "]";
    size_t length = symbol.name.size() - std::min(symbol.name.size(), place.size());
    if (symbol.name.substr(length) != place)
      item["name"].refuse("found '", symbol.name, "', expected the name of an input and '", place, "'");
    return table.elements.emplace(std::pair(symbol.name.substr(0, length), symbol.index), index).second;
  }

  void checkElementSymbols() {
    size_t at = 0;
    json["symbols"].forEach([&](const JsonReader &item) {
      const SymbolInfo &symbol = entry.symbols[at++];
      if (symbol.kind != SymbolKind::Element)
        return;
      item["input"].index(entry.inputs.size(), "inputs");
      if (!isInteger(entry.inputs[symbol.input].type))
        item["input"].refuse("input '", entry.inputs[symbol.input].name, "' is of type ",
                             typeName(entry.inputs[symbol.input].type), ", expected an integer type");
    });
  }

  TensorInfo readTensor(const JsonReader &item, bool isInput) {
    TensorInfo tensor;
    tensor.name = item["name"].string();
    tensor.type = readType(item["type"]);
    tensor.shape = readShape(item["shape"], !isInput);
    if (item.has("bound") && !item["bound"].isNull())
      tensor.bound = item["bound"].integer(1);
    for (const TensorInfo &other : isInput ? entry.inputs : entry.outputs)
      if (other.name == tensor.name)
        item["name"].refuse("'", tensor.name, "' is listed twice");
    return tensor;
  }

  void readConstraint(const JsonReader &item) {
    ConstraintInfo constraint;
    constraint.relation = readEnum<Relation>(
        item["relation"],
        {{"equal", Relation::Equal}, {"broadcast", Relation::Broadcast}, {"at-least", Relation::AtLeast}});
    constraint.lhs = readExpr(item["lhs"]);
    constraint.rhs = readExpr(item["rhs"]);
    constraint.where = item["where"].string();
    entry.constraints.push_back(std::move(constraint));
  }

  void readState(const JsonReader &item) {
    StateInfo state;
    state.name = item["name"].string();
    state.type = readType(item["type"]);
    state.shape = readShape(item["shape"], false);
    if (item.has("initial") && !item["initial"].isNull())
      state.initial = item["initial"].index(constantCount, "constants");
    if (item.has("statistic"))
      state.isStatistic = item["statistic"].boolean();
    if (item.has("part"))
      readPart(item, state);
    for (const StateInfo &other : entry.states)
      if (other.name == state.name)
        item["name"].refuse("'", state.name, "' is listed twice");
    entry.states.push_back(std::move(state));
  }

  static void checkMasters(const JsonReader &item, const StateInfo &state, const UnitInfo &unit) {
    bool isMaster = state.suffix == masterSuffix;
    if (isMaster && (!unit.rounded || state.part != StatePart::Shard))
      item["suffix"].refuse("found '", masterSuffix, "', expected it of a part 'shard' of a unit with 'rounded'");
    std::optional<ElementType> expected = isMaster               ? ElementType::F32
                                          : state.suffix.empty() ? unit.rounded
                                                                 : std::nullopt;
    if (expected && state.type != *expected)
      item["type"].refuse("found ", typeName(state.type), ", expected ", typeName(*expected), " as unit '", unit.name,
                          "' is rounded");
  }

  void readPart(const JsonReader &item, StateInfo &state) {
    state.part = readEnum<StatePart>(item["part"], {{"tensor", StatePart::Tensor},
                                                    {"view", StatePart::View},
                                                    {"shard", StatePart::Shard},
                                                    {"worker", StatePart::Worker}});
    state.unit = item["unit"].index(units.size(), "units");
    state.suffix = item["suffix"].string();
    const UnitInfo &unit = units[state.unit];
    checkMasters(item, state, unit);
    if (state.part != StatePart::Tensor) {
      if (state.shape.size() != 1)
        item["shape"].refuse("found ", state.shape.size(), " axes, expected one of a part of a unit");
      return;
    }
    for (const UnitTensor &tensor : unit.tensors)
      if (tensor.name + state.suffix == state.name) {
        bool isSame = tensor.shape.size() == state.shape.size();
        for (size_t axis = 0; isSame && axis < tensor.shape.size(); ++axis)
          isSame = state.shape[axis].isConstant() && state.shape[axis].evaluate({}) == tensor.shape[axis];
        if (!isSame)
          item["shape"].refuse("expected ", listText(tensor.shape), " as in unit '", unit.name, "'");
        return;
      }
    item["name"].refuse("'", state.name, "' is no tensor of unit '", unit.name, "'");
  }

  void readBuffer(const JsonReader &item, size_t launchCount) {
    BufferInfo buffer;
    buffer.role = readEnum<BufferRole>(item["role"], {{"constant", BufferRole::Constant},
                                                      {"input", BufferRole::Input},
                                                      {"output", BufferRole::Output},
                                                      {"state", BufferRole::State},
                                                      {"workspace", BufferRole::Workspace}});
    switch (buffer.role) {
    case BufferRole::Constant: buffer.index = item["index"].index(constantCount, "constants"); break;
    case BufferRole::Input: buffer.index = item["index"].index(entry.inputs.size(), "inputs"); break;
    case BufferRole::Output: buffer.index = item["index"].index(entry.outputs.size(), "outputs"); break;
    case BufferRole::State: buffer.index = item["index"].index(entry.states.size(), "states"); break;
    case BufferRole::Workspace:
      buffer.bytes = item["bytes"].index(entry.sizes.size(), "sizes");
      // An entry without launches may still pass workspace to collectives.
      buffer.first = item["first"].index(std::max<size_t>(launchCount, 1), "launches");
      buffer.last = item["last"].index(std::max<size_t>(launchCount, 1), "launches");
      if (buffer.last < buffer.first)
        item["last"].refuse("interval ends before it starts, found ", buffer.last, ", expected at least ",
                            buffer.first);
    }
    entry.buffers.push_back(buffer);
  }

  NodeWork readWork(const JsonReader &item) {
    NodeWork work;
    for (auto [key, text] :
         {std::pair("node", &work.node), std::pair("parameter", &work.parameter), std::pair("part", &work.part)})
      if (item.has(key))
        *text = item[key].string();
    work.op = item["op"].string();
    work.role = readEnum<WorkRole>(item["role"], {{"forward", WorkRole::Forward},
                                                  {"backward", WorkRole::Backward},
                                                  {"recompute", WorkRole::Recompute},
                                                  {"update", WorkRole::Update}});
    for (auto [key, size] :
         {std::pair("macs", &work.macs), std::pair("flops", &work.flops), std::pair("bytes", &work.bytes)})
      *size = item.has(key) ? readExpr(item[key]) : SizeExpr::constant(0);
    if (item.has("may_be_less"))
      work.mayBeLess = item["may_be_less"].boolean();
    return work;
  }

  void readLaunch(const JsonReader &item) {
    LaunchInfo launch;
    launch.kernel = item["kernel"].string();
    launch.site = item["site"].string();
    launch.flops = item.has("flops") ? readExpr(item["flops"]) : SizeExpr::constant(0);
    launch.arithmetic = item.has("arithmetic") ? item["arithmetic"].string() : "f32";
    item["operands"].forEach(
        [&](const JsonReader &operand) { launch.operands.push_back(operand.index(entry.buffers.size(), "buffers")); });
    if (item.has("reads")) {
      item["reads"].forEach([&](const JsonReader &bytes) {
        launch.reads.push_back(bytes.isNull() ? std::nullopt : std::optional(readExpr(bytes)));
      });
      if (launch.reads.size() != launch.operands.size())
        item["reads"].refuse("found ", launch.reads.size(), ", expected one for each of ", launch.operands.size(),
                             " operands");
    }
    if (item.has("results"))
      item["results"].forEach([&](const JsonReader &value) {
        LaunchResult result;
        result.buffer = value["buffer"].index(entry.buffers.size(), "buffers");
        result.value = value["value"].string();
        result.type = readType(value["type"]);
        result.shape = readShape(value["shape"]);
        if (value.has("writes"))
          result.writes = readExpr(value["writes"]);
        if (const BufferInfo &buffer = entry.buffers[result.buffer]; buffer.role == BufferRole::State)
          launch.writtenStates.push_back(buffer.index);
        launch.results.push_back(std::move(result));
      });
    if (item.has("elementwise"))
      item["elementwise"].forEach([&](const JsonReader &buffer) {
        launch.elementwise.push_back(buffer.index(entry.buffers.size(), "buffers"));
      });
    if (item.has("scratch"))
      launch.scratch = item["scratch"].index(entry.sizes.size(), "sizes");
    if (item.has("work"))
      item["work"].forEach([&](const JsonReader &work) { launch.work.push_back(readWork(work)); });
    entry.launches.push_back(std::move(launch));
  }

  void readCollective(const JsonReader &item) {
    CollectiveInfo collective;
    collective.kind = readEnum<CollectiveKind>(item["op"], {{"all_reduce", CollectiveKind::AllReduce},
                                                            {"reduce_scatter", CollectiveKind::ReduceScatter},
                                                            {"all_gather", CollectiveKind::AllGather},
                                                            {"all_to_all", CollectiveKind::AllToAll},
                                                            {"broadcast", CollectiveKind::Broadcast},
                                                            {"send_recv", CollectiveKind::SendRecv}});
    collective.op = item["op"].string();
    collective.site = item["site"].string();
    collective.axis = item["axis"].string();
    collective.type = collective.wire = readType(item["type"]);
    if (collective.kind == CollectiveKind::AllReduce || collective.kind == CollectiveKind::ReduceScatter)
      collective.reduction = readEnum<ReductionKind>(
          item["reduction"], {{"sum", ReductionKind::Sum}, {"mean", ReductionKind::Mean}, {"max", ReductionKind::Max}});
    if (item.has("condition"))
      collective.condition = item["condition"].index(entry.buffers.size(), "buffers");
    collective.sent = readExpr(item["sent"]);
    collective.received = readExpr(item["received"]);
    item["parts"].forEach([&](const JsonReader &part) { collective.parts.push_back(readCollectivePart(part)); });
    if (item.has("codec"))
      readCodec(item, collective);
    for (const CollectivePartInfo &part : collective.parts)
      if (bool hasErrors = collective.codec == CodecKind::OneBit;
          part.workerError.has_value() != hasErrors || part.serverError.has_value() != hasErrors)
        item["parts"].refuse("expected 'worker_error' and 'server_error' in each part with the codec one_bit, and in ",
                             "no other");
    if (item.has("wire"))
      readWire(item, collective);
    checkRows(item, collective);
    if (item.has("deferred"))
      readDeferred(item, collective);
    readTurn(item, collective);
    checkWritten(item, collective);
    bool hasNone = collective.kind == CollectiveKind::AllReduce || collective.kind == CollectiveKind::Broadcast;
    for (const CollectivePartInfo &part : collective.parts)
      if (part.own.has_value() ? hasNone : !hasNone && collective.kind != CollectiveKind::ReduceScatter)
        item["parts"].refuse("expected 'own' in each part of all_gather, all_to_all and send_recv, and in none of "
                             "all_reduce and broadcast");
    entry.collectives.push_back(std::move(collective));
  }

  // What a package and its callers own is not written over.
  void checkWritten(const JsonReader &item, const CollectiveInfo &collective) {
    auto check = [&](uint32_t buffer) {
      if (BufferRole role = entry.buffers[buffer].role; role == BufferRole::Constant || role == BufferRole::Input)
        item["parts"].refuse("writes into buffer ", buffer, ", expected none of a constant or an input");
    };
    bool writesWhole = collective.kind == CollectiveKind::AllReduce || collective.kind == CollectiveKind::AllGather ||
                       collective.kind == CollectiveKind::Broadcast;
    for (const CollectivePartInfo &part : collective.parts) {
      if (part.own && collective.kind != CollectiveKind::AllGather)
        check(*part.own);
      for (const CollectivePiece &piece : part.whole)
        if (writesWhole || !part.own)
          check(piece.buffer);
      for (std::optional<uint32_t> error : {part.workerError, part.serverError})
        if (error)
          check(*error);
    }
  }

  void readDeferred(const JsonReader &item, CollectiveInfo &collective) {
    collective.isDeferred = item["deferred"].boolean();
    auto isState = [&](uint32_t buffer) { return entry.buffers[buffer].role == BufferRole::State; };
    bool areStates = collective.kind == CollectiveKind::AllGather;
    for (const CollectivePartInfo &part : collective.parts) {
      areStates = areStates && part.own && isState(*part.own);
      for (const CollectivePiece &piece : part.whole)
        areStates = areStates && isState(piece.buffer);
    }
    if (collective.isDeferred && !areStates)
      item["deferred"].refuse("expected an all_gather of states into states");
  }

  // To which rank a send_recv goes.
  void readTurn(const JsonReader &item, CollectiveInfo &collective) {
    bool isTurn = collective.kind == CollectiveKind::SendRecv;
    if (item.has("by") != isTurn || (item.has("rotate") && !isTurn))
      item["op"].refuse("expected 'by' of send_recv, and of no other, found ", collective.op);
    if (!isTurn)
      return;
    collective.by = item["by"].integer(-int64_t(mostRanks), mostRanks);
    if (collective.by == 0)
      item["by"].refuse("expected another rank, found 0");
    collective.rotates = item.has("rotate") && item["rotate"].boolean();
  }

  void readCodec(const JsonReader &item, CollectiveInfo &collective) {
    collective.codec =
        readEnum<CodecKind>(item["codec"], {{"one_bit", CodecKind::OneBit}, {"sparse_rows", CodecKind::SparseRows}});
    if (collective.codec == CodecKind::SparseRows)
      return;
    bool isFloat = collective.type == ElementType::F32 || collective.type == ElementType::F64;
    if (collective.kind != CollectiveKind::AllReduce || collective.reduction != ReductionKind::Mean || !isFloat)
      item["codec"].refuse("expected the mean of an all_reduce of f32 or f64, found ", collective.op, " of ",
                           typeName(collective.type));
  }

  void readWire(const JsonReader &item, CollectiveInfo &collective) {
    collective.wire = readType(item["wire"]);
    bool isReduction = collective.kind == CollectiveKind::AllReduce || collective.kind == CollectiveKind::ReduceScatter;
    if (!isReduction || collective.codec == CodecKind::OneBit)
      item["wire"].refuse("expected none but of a reduction without the codec one_bit, found ",
                          typeName(collective.wire));
    if (collective.wire == collective.type || !canTravelAs(collective.type, collective.wire))
      item["wire"].refuse("expected a narrower float than ", typeName(collective.type), ", found ",
                          typeName(collective.wire));
  }

  void checkRows(const JsonReader &item, const CollectiveInfo &collective) {
    bool hasRows = collective.codec == CodecKind::SparseRows;
    for (const CollectivePartInfo &part : collective.parts)
      if ((part.rowLength > 0) != hasRows)
        item["parts"].refuse("expected 'row_length' in the part with the codec sparse_rows, and in no other");
    if (hasRows && (collective.kind == CollectiveKind::AllGather || collective.reduction == ReductionKind::Max))
      item["codec"].refuse("expected the sum or mean of an all_reduce or a reduce_scatter, found ", collective.op);
    if (hasRows && (collective.parts.size() != 1 || collective.parts[0].whole.size() != 1 || collective.parts[0].own))
      item["parts"].refuse("expected one tensor with the codec sparse_rows, in its place");
  }

  CollectivePartInfo readCollectivePart(const JsonReader &item) {
    CollectivePartInfo part;
    part.shard = readExpr(item["shard"]);
    part.begin = readExpr(item["begin"]);
    part.end = readExpr(item["end"]);
    item["whole"].forEach([&](const JsonReader &place) {
      CollectivePiece piece;
      piece.buffer = place["buffer"].index(entry.buffers.size(), "buffers");
      if (place.has("source"))
        piece.source = place["source"].index(entry.buffers.size(), "buffers");
      piece.offset = readExpr(place["offset"]);
      piece.count = readExpr(place["count"]);
      part.whole.push_back(std::move(piece));
    });
    if (item.has("own"))
      part.own = item["own"].index(entry.buffers.size(), "buffers");
    for (auto [key, error] :
         {std::pair("worker_error", &part.workerError), std::pair("server_error", &part.serverError)})
      if (item.has(key))
        *error = item[key].index(entry.buffers.size(), "buffers");
    if (item.has("row_length"))
      part.rowLength = item["row_length"].integer(1);
    return part;
  }

  // The code can only reach what has a buffer: an output or state without one would never be written.
  void checkBuffersOfSignature() {
    auto require = [&](BufferRole role, size_t index, const char *list, const std::string &name) {
      for (const BufferInfo &buffer : entry.buffers)
        if (buffer.role == role && buffer.index == index)
          return;
      json[list].refuse("'", name, "' has no buffer");
    };
    for (size_t i = 0; i < entry.outputs.size(); ++i)
      require(BufferRole::Output, i, "outputs", entry.outputs[i].name);
    for (size_t i = 0; i < entry.states.size(); ++i)
      require(BufferRole::State, i, "states", entry.states[i].name);
  }

  const JsonReader json;
  size_t constantCount;
  const std::vector<UnitInfo> &units;
  SymbolTable table;
  EntryInfo entry;
};

} // namespace

EntryInfo readEntry(const JsonReader &json, size_t constants, const std::vector<UnitInfo> &units) {
  return EntryReader(json, constants, units).run();
}

bool EntryInfo::dependsOnComputed(const SizeExpr &expr) const {
  return std::any_of(expr.symbols().begin(), expr.symbols().end(),
                     [&](uint32_t symbol) { return symbols[symbol].kind == SymbolKind::Computed; });
}

} // namespace ds
