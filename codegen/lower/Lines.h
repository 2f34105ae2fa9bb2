// What kernels share that go along one axis in order: the lines of a tensor, and which of two elements comes first.
#ifndef DEEPSTRIDE_CODEGEN_LOWER_LINES_H
#define DEEPSTRIDE_CODEGEN_LOWER_LINES_H

#include "codegen/lower/KernelBuilder.h"

namespace deepstride {

/// Lines along one axis of a dense tensor; one grid item is one line.
struct Lines {
  Lines(KernelBuilder &k, llvm::ArrayRef<SizeExpr> shape, int64_t axis)
      : k(k), inner(product(shape.drop_front(axis + 1))), length(shape[axis]),
        count(product(shape.take_front(axis)) * inner) {}

  void forEach(llvm::function_ref<void(mlir::Value outer, mlir::Value within)> body) {
    k.setGrid(count, 4);
    mlir::Value innerSize = k.index(inner);
    k.loop(k.begin, k.end, k.constant(1), [&](mlir::Value line) {
      body(mlir::arith::DivUIOp::create(k.b, k.loc, line, innerSize),
           mlir::arith::RemUIOp::create(k.b, k.loc, line, innerSize));
    });
  }
  /// Element `i` of the line, in a tensor whose axis has `size` elements.
  mlir::Value at(mlir::Value outer, mlir::Value within, mlir::Value i, const SizeExpr &size) {
    return k.add(k.mul(k.add(k.mul(outer, k.index(size)), i), k.index(inner)), within);
  }

  KernelBuilder &k;
  SizeExpr inner, length, count;
};

/// Where NaN stands in an order of floats.
enum class NanPlace { First, Last };

/// Whether x comes strictly before y when sorting by greatest (or least); of vectors, lane by lane.
mlir::Value precedes(KernelBuilder &k, mlir::Value x, mlir::Value y, mlir::Type element, bool greatest,
                     NanPlace nan = NanPlace::First);

/// A signed integer as wide as x that is less where x comes before when sorting by the least, and equal where x is; not
/// the least one, where x is a float.
mlir::Value orderedKey(KernelBuilder &k, mlir::Value x, mlir::Type element, NanPlace nan);

} // namespace deepstride

#endif
