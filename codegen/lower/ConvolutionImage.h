// What a convolution reads of its image: where windows start, rows of pixels in vectors, panels of what taps read.
#ifndef DEEPSTRIDE_CODEGEN_LOWER_CONVOLUTIONIMAGE_H
#define DEEPSTRIDE_CODEGEN_LOWER_CONVOLUTIONIMAGE_H

#include "codegen/tile/Gemm.h"

namespace deepstride {

/// The images of a convolution and how windows move over one.
class ConvolutionImage {
public:
  /// With `joinsAxes`, images whose windows are their pixels have one axis.
  ConvolutionImage(KernelBuilder &k, ds::ConvOp op, bool joinsAxes);

  /// Strides whose elements a vector's worth of pixels picks out of whole vectors.
  bool isVectorStride() const { return steps.back() <= 2; }
  /// Where the window of a pixel starts along an axis; below 0 in the padding.
  mlir::Value startOf(mlir::Value pixel, size_t axis);
  mlir::Value isInside(mlir::Value place, size_t axis);
  /// Whether `reach` elements from `place` on lie in a row of the image.
  mlir::Value isRowOf(mlir::Value place, mlir::Value reach);
  /// Consecutive pixels' elements as they are stored, the first at `place` of a row of the image. Unless `isWhole`,
  /// some may lie in the padding and are 0, all of them where `exists` is given and false.
  mlir::Value loadPixels(int64_t lanes, mlir::Value at, mlir::Value place, bool isWhole, mlir::Value exists = {});

  KernelBuilder &k;
  const bool isPointwise; // windows are the pixels, so that channels are rows of a matrix of them
  SizeVector input, weight, result;
  mlir::Type element;
  mlir::Value source, plane; // the images, and how far channels lie apart
  SizeVector pixels, taps;   // along the axes of an image
  llvm::SmallVector<int64_t> steps, pads, dilations;
  llvm::SmallVector<mlir::Value> sizes, strides; // of the image along these axes
};

/// Panels of pixels [first, first + count) of an image or, with `areJoined`, of all images, one behind the other: for
/// each tap of each channel a row of what it reads. Pixels that follow each other in a row of an image are a run, whose
/// elements are copied in vectors.
class PixelPanels {
public:
  /// Panels have `mostColumns` at most.
  PixelPanels(ConvolutionImage &image, int64_t mostColumns, bool areJoined);

  /// Finds the runs of a panel.
  void findRuns(mlir::Value first, mlir::Value count);
  /// Writes the panel whose runs were found, `width` columns wide, to a buffer of the image's elements. `base` is the
  /// first element of the group's first channel, of the first image where they are joined.
  void gather(mlir::Value base, mlir::Value buffer, mlir::Value width, int64_t lanes);

private:
  struct Run;
  mlir::Value field(mlir::Value record, int64_t number);
  void copyRows(const Run &run);

  ConvolutionImage &image;
  KernelBuilder &k;
  bool areJoined;
  int64_t recordSize;
  mlir::Value runs, runCount; // records of runs, and how many there are
};

} // namespace deepstride

#endif
