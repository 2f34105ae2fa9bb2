// Keys and values of attention that its kernel puts together from parts, head by head.
#ifndef DEEPSTRIDE_CODEGEN_KERNEL_JOINEDHEADS_H
#define DEEPSTRIDE_CODEGEN_KERNEL_JOINEDHEADS_H

#include "codegen/kernel/HeadRows.h"

namespace deepstride {

/// Heads of queries [from, to) of a group, that share keys and values: those that are the thread's.
struct HeadGroup {
  llvm::SmallVector<mlir::Value> at; // an index for each axis of the groups
  mlir::Value from, to;
  mlir::Value isOwner; // whether the thread has the first one; null where each group has one
};

/// Walks over the groups of which the thread has heads, where the grid is those. `repeat`: how many heads share a
/// group; null where each has its own.
void forEachHeadGroup(KernelBuilder &k, llvm::ArrayRef<SizeExpr> groups, mlir::Value repeat,
                      llvm::function_ref<void(const HeadGroup &)> body);

/// Neighbouring rows of a head: [from, to), or all.
struct RowRange {
  mlir::Value from = {}, to = {};
};

/// Keys or values of attention, [batch, group, tokens, features], that its kernel puts together from parts: cached rows
/// and new ones, some of them computed. A head's rows become a matrix: in the buffer of what the kernel yields, which
/// one thread writes, or in scratch. Nobody reads what another thread writes.
class JoinedHeads {
public:
  /// Rows of a head that lie in one place; `count` of them.
  struct Piece {
    Matrix rows;
    mlir::Value count;
  };

  /// None where the value lies in memory as a whole, or cannot be put together.
  static std::optional<JoinedHeads> of(KernelBuilder &k, mlir::Value value);

  /// Makes room for so many rows of a head at a time (none: all); `isShared`: threads may meet one head.
  void reserve(bool isShared, std::optional<SizeExpr> atOnce = {});
  /// Whether the value is what is put together, or a part of it.
  bool has(mlir::Value value) const { return llvm::is_contained(values, value); }
  /// Writes what is yielded of a head, where `isOwner` holds (null: always). Comes before its rows.
  void begin(mlir::Value batch, mlir::Value group, mlir::Value isOwner);
  /// Where rows, as many as there is room for, are behind `write`.
  Matrix rows(mlir::Value batch, mlir::Value group, mlir::Value isOwner, RowRange range = {});
  /// Puts rows together, if they are not in what is yielded.
  void write(mlir::Value batch, mlir::Value group, mlir::Value isOwner, RowRange range = {});

  /// The same, where rows that are read once are read where they are stored: only what is computed goes to scratch, and
  /// what has places that only a run knows.
  void reservePieces(bool isShared, std::optional<SizeExpr> atOnce = {});
  void beginPieces(mlir::Value batch, mlir::Value group, mlir::Value isOwner);
  llvm::SmallVector<Piece> pieces(mlir::Value batch, mlir::Value group, mlir::Value isOwner, RowRange range = {});
  /// Whether each of the pieces of a whole head needs scratch for at most so many rows, a known number.
  bool fitPieces(bool isShared, const SizeExpr &atOnce) const;

private:
  struct Part {
    RowSource rows;
    SizeExpr first, start, count; // rows [first, first + count) become rows from `start` on
    mlir::Value output = {};      // where the kernel yields the part, too
    mlir::Value scratch = {};     // of a piece that is computed
  };
  JoinedHeads(KernelBuilder &k, mlir::Type element, SizeVector shape)
      : k(&k), element(element), shape(std::move(shape)) {}
  /// A cache whose sequences have lengths of their own: where new rows go is read from memory.
  struct Places {
    mlir::Value lengths, rows, padding; // padding: a number behind the cache; null where nothing is
    SizeExpr past;
  };
  void writePlaced(llvm::ArrayRef<mlir::Value> head, bool isOwner, mlir::Value target, mlir::Value offset,
                   RowRange range);
  void fill(mlir::Value number, mlir::Value target, mlir::Value from, mlir::Value to);
  void writeParts(llvm::ArrayRef<Part> parts, llvm::ArrayRef<mlir::Value> head, bool isOwner, mlir::Value target,
                  mlir::Value offset, RowRange range);
  /// The place of a row, moved into the range.
  mlir::Value within(RowRange range, mlir::Value row);
  /// Where a part that is yielded has a head.
  mlir::Value ownPlace(const Part &part, llvm::ArrayRef<mlir::Value> head);

  /// All parts of rows without places, in the order of the rows.
  llvm::SmallVector<Part *> parts();

  KernelBuilder *k;
  mlir::Type element;
  SizeVector shape;
  std::vector<Part> kept, added; // what the yielded buffer holds already, where it is updated in place
  std::optional<Places> places;  // then `kept` is what the cache had, and `added` its new rows
  llvm::SmallVector<mlir::Value> values;
  mlir::Value output, scratch;
};

} // namespace deepstride

#endif
