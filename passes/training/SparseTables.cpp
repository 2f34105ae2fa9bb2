#include "passes/training/SparseTables.h"

#include "dialects/ds/DsDialect.h"

using namespace mlir;

namespace deepstride {
namespace {

struct Readers {
  bool hasGather = false;
  Operation *other = nullptr; // one whose gradient may have any row
};

/// What hands a value out has no part in the gradient.
void findReaders(Value value, Readers &readers) {
  for (Operation *user : value.getUsers()) {
    auto gather = dyn_cast<ds::GatherOp>(user);
    if (gather && gather.getInput() == value && gather.getAxis() == 0)
      readers.hasGather = true;
    else if (auto cast = dyn_cast<ds::CastOp>(user))
      findReaders(cast.getResult(), readers);
    else if (!isa<func::ReturnOp>(user) && !readers.other)
      readers.other = user;
  }
}

int64_t elementsOf(const SizeAnalysis &analysis, const Parameter &parameter) {
  return product(analysis.facts(parameter.value).sizes).constant().value_or(0);
}

void append(Unit &unit, unsigned parameter, int64_t elements) {
  unit.parameters.push_back(parameter);
  unit.offsets.push_back(unit.elements);
  unit.elements += llvm::divideCeil(elements, unit.block) * unit.block;
}

} // namespace

llvm::DenseSet<unsigned> findSparseTables(func::FuncOp micro, const SizeAnalysis &analysis, int64_t stage) {
  llvm::DenseSet<unsigned> tables;
  bool hasCandidates = false;
  for (auto [number, parameter] : llvm::enumerate(parametersOf(micro))) {
    Readers readers;
    findReaders(parameter.value, readers);
    if (!readers.hasGather)
      continue;
    hasCandidates = true;
    auto refuse = [&micro, name = parameter.name.getValue()]() {
      return micro.emitWarning() << "sparse_gradients: the gradient of '" << name << "' travels as a whole: ";
    };
    if (stage > 1)
      refuse() << "at zero_optimization.stage " << stage << " ranks own parts of it";
    else if (readers.other)
      refuse() << "'" << readers.other->getName() << "' reads the table, too, and may touch all rows";
    else if (elementsOf(analysis, parameter) == 0)
      refuse() << "its rows have no constant size, or no elements";
    else
      tables.insert(static_cast<unsigned>(number));
  }
  if (!hasCandidates)
    micro.emitWarning() << "sparse_gradients: no rows are taken from a parameter";
  return tables;
}

SmallVector<Unit> setTablesApart(func::FuncOp micro, const SizeAnalysis &analysis, ArrayRef<Unit> units,
                                 const llvm::DenseSet<unsigned> &tables) {
  SmallVector<Parameter> parameters = parametersOf(micro);
  SmallVector<Unit> result, apart;
  for (const Unit &unit : units) {
    Unit rest = unit;
    rest.parameters.clear();
    rest.offsets.clear();
    rest.elements = 0;
    Unit empty = rest;
    for (unsigned number : unit.parameters) {
      int64_t elements = elementsOf(analysis, parameters[number]);
      if (!tables.contains(number)) {
        append(rest, number, elements);
        continue;
      }
      Unit &own = apart.emplace_back(empty);
      own.name = parameters[number].name.str();
      if (llvm::any_of(units, [&](const Unit &other) { return other.name == own.name; }))
        own.name += " (table)";
      own.isSparse = true;
      append(own, number, elements);
    }
    if (!rest.parameters.empty())
      result.push_back(std::move(rest));
  }
  llvm::append_range(result, apart);
  return result;
}

} // namespace deepstride
