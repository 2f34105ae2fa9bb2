// Lists of axes, starts, ends and steps whose length only a run knows: as many as the operand has axes, they are spread
// over its axes by the program, and each element becomes a size that the program computes.
#ifndef DEEPSTRIDE_FRONTENDS_ONNX_CONVERT_RUNTIMELISTS_H
#define DEEPSTRIDE_FRONTENDS_ONNX_CONVERT_RUNTIMELISTS_H

#include "frontends/onnx/convert/Node.h"

namespace deepstride::onnx {

/// True for an operand of one axis whose length is not known when the model is compiled.
bool isOpenList(Node &n, unsigned input);

/// Which axis of an operand each element of a list is for.
class SpreadList {
public:
  /// `axes` is the list of axes; without one the elements of a list of that length are for the first axes. Each axis
  /// may be meant once, or with `mayRepeat` as often as the run likes.
  SpreadList(Node &n, mlir::Value axes, const SizeExpr &length, int64_t rank, bool mayRepeat);

  /// 1 for each axis that is meant, else 0.
  SizeVector flags();
  /// The element of a list that is for each axis, and `fallback` where there is none. Numbers beyond any size count as
  /// the nearest that is not.
  SizeVector elements(mlir::Value list, int64_t fallback);

private:
  Node &n;
  int64_t rank;
  SizeExpr length;
  mlir::Value hits, isMeant; // i1 [length, rank]; i1 [rank]
};

} // namespace deepstride::onnx

#endif
