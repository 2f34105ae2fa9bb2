// Blocks of a model that MoQ tells apart: the layers that a path of module names leads to.
#ifndef DEEPSTRIDE_PASSES_TRAINING_BLOCKS_H
#define DEEPSTRIDE_PASSES_TRAINING_BLOCKS_H

#include "passes/training/Parameters.h"

#include "llvm/ADT/DenseMap.h"

namespace deepstride {

struct BlockSettings {
  std::string layerName; // "bert.encoder.layer"
  int64_t layers = 0;    // 0: all parameters are one block
};

struct Blocks {
  llvm::DenseMap<mlir::StringAttr, int64_t> of; // by parameter; those of no layer have the last number
  int64_t layers = 0;

  bool isInLayer(const Parameter &parameter) const { return of.lookup(parameter.name) < layers; }
};

/// A parameter belongs to layer i where its name, or that of a node that reads it, has LAYER.i in it, with '.' or '/'
/// between the parts. Fails after a diagnostic where a layer has no parameter.
llvm::FailureOr<Blocks> findBlocks(mlir::func::FuncOp model, const BlockSettings &settings);

} // namespace deepstride

#endif
