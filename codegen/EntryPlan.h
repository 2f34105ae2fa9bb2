// An entry function after the memory phase as numbered tables: what the manifest lists and the entry code refers to.
#ifndef DEEPSTRIDE_CODEGEN_ENTRYPLAN_H
#define DEEPSTRIDE_CODEGEN_ENTRYPLAN_H

#include "dialects/ds/DsDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringMap.h"

namespace deepstride {

/// What lowering recorded about one kernel, over d0, d1, ...
struct KernelFacts {
  SizeExpr grid, flops;
  std::string arithmetic; // empty: that of the package
  std::optional<SizeExpr> scratch;
  int64_t grain = 1;
  // Bytes of each operand and of each result, none: all of it; empty where that is so everywhere.
  std::vector<std::optional<SizeExpr>> reads, writes;
  // Of operands, then of results: whether item i of the grid touches element i of it alone; empty: of none.
  std::vector<bool> isElementwise;
};
using KernelTable = llvm::StringMap<KernelFacts>;

struct EntryPlan {
  struct Tensor {
    std::string name, type;
    SizeVector shape;
    std::optional<int64_t> bound;
    std::string initial;            // recipe of a state's first value, or empty
    bool isStatistic = false;       // of a state
    std::string unit, part, suffix; // of a state of a unit (dialects/ds/UnitAttrs.h)
  };
  struct Symbol {
    std::string name, kind;
    int64_t input = -1, index = -1;
  };
  struct Buffer {
    std::string role, recipe;
    int64_t index = -1, bytes = -1, first = 0, last = 0;
  };
  struct Result {
    int64_t buffer;
    std::string value, type;
    SizeVector shape;
    std::optional<SizeExpr> writes; // bytes, where it is not all of it
  };
  /// What a launch does for one node, parameter or part of the program.
  struct Work {
    std::string node, parameter, part, op, role;
    SizeExpr macs, flops, bytes;
    bool mayBeLess = false;
  };
  struct Launch {
    std::string kernel, site;
    llvm::SmallVector<uint32_t> buffers, sizes;
    llvm::SmallVector<uint32_t> elementwise; // buffers of states, of which item i of the grid touches element i alone
    uint32_t grid = 0, scratch = UINT32_MAX, grain = 1;
    SizeExpr flops;
    std::string arithmetic;
    std::vector<std::optional<SizeExpr>> reads; // bytes of each operand, none: all of it; empty: of all operands
    std::vector<Result> results;
    std::vector<Work> work;
  };
  /// A tensor in the flat space of a collective, or in its part of one.
  struct Piece {
    int64_t buffer, source = -1; // source: what is read, where it is another one
    SizeExpr offset, count;      // elements
  };
  struct CollectivePart {
    SizeExpr shard, begin, end; // elements
    std::vector<Piece> whole;
    int64_t own = -1;                           // the buffer of the elements that this rank owns
    int64_t workerError = -1, serverError = -1; // buffers of what a codec leaves out
    int64_t rowLength = 0;                      // elements, of a table that travels by rows
  };
  struct Collective {
    std::string op, site, axis, type, reduction; // reduction: empty where nothing is combined
    std::string codec;                           // empty: values travel as they are
    std::string wire;                            // the narrower float that travels, or empty
    std::vector<CollectivePart> parts;
    int64_t by = 0;          // of send_recv: to which rank from this one
    bool rotates = false;    // of send_recv: the first rank is behind the last one
    int64_t condition = -1;  // the buffer of what must hold so that anything is sent
    bool isDeferred = false; // goes on after the entry, until a state of it is used
    SizeExpr sent, received; // bytes
  };
  struct Constraint {
    std::string relation, lhs, rhs, where;
  };

  struct Guard {
    SizeExpr condition;
    bool holds; // the condition is not 0
  };

  std::string name;
  std::string group;         // of guarded entries: the name under which they are called; else empty
  std::vector<Guard> guards; // all must be met for a call of this one
  std::vector<Symbol> symbols;
  std::vector<std::string> sizes;
  std::vector<Tensor> inputs, outputs, states;
  std::vector<Buffer> buffers;
  std::vector<Launch> launches; // by the launch's "index"
  std::vector<Collective> collectives;
  std::vector<Constraint> constraints;
  llvm::DenseMap<mlir::Operation *, uint32_t> collectiveIds; // of starts

  /// The number of a size expression in `sizes`, which it joins if it is new.
  uint32_t sizeId(const SizeExpr &size);
  /// The number of an expression that is in `sizes`.
  uint32_t knownSizeId(const SizeExpr &size) const { return sizeIds.lookup(size.str()); }
  int64_t symbolId(llvm::StringRef symbolName) const;

private:
  llvm::StringMap<uint32_t> sizeIds;
};

/// Of the buffers of a launch, operands and then results, those of which item i of the grid touches element i alone,
/// wherever they stand.
llvm::SmallVector<uint32_t> elementwiseBuffers(llvm::ArrayRef<uint32_t> buffers,
                                               const std::vector<bool> &isElementwise);

/// "/encoder/MatMul" of a location: the ONNX node's name.
std::string siteOf(mlir::Location location);
/// The manifest's name of an element type; empty for types that packages do not know.
std::string manifestType(mlir::Type element);

mlir::FailureOr<EntryPlan> planEntry(mlir::func::FuncOp function, const KernelTable &kernels);

} // namespace deepstride

#endif
