// What a product costs on a machine: which micro-kernel multiplies fastest, and which tile wastes least.
#ifndef DEEPSTRIDE_PASSES_OPTIMIZATION_PRODUCTCOSTS_H
#define DEEPSTRIDE_PASSES_OPTIMIZATION_PRODUCTCOSTS_H

#include "dialects/ds/Schedule.h"

#include <map>

namespace deepstride {

/// A processor as products see it. Rates are multiply-adds of a kernel in the time of one f32 multiply-add, at best.
struct Machine {
  int64_t vectorBits = 512;
  std::map<ds::ProductKernel, double> rates;

  /// From "512,byte_dot,bfloat_dot=0.5": bits of a vector, then the kernels whose instructions there are beyond those
  /// that every processor has, each with its measured rate, else with what its instruction does on paper. On failure
  /// says why in `error`.
  static std::optional<Machine> parse(llvm::StringRef text, std::string &error);
  int64_t registers() const { return vectorBits >= 512 ? 32 : 16; }
};

/// What is known of a product when it is compiled.
struct ProductShape {
  ds::ProductTypes types;
  bool isPacked = false;             // the right operand, in the package
  std::optional<int64_t> columns;    // of the right operand
  bool hasZeroPoints = false;        // which are taken off codes
  int64_t group = 0;                 // steps of K that share a scale, or 0 for all
  std::optional<int64_t> depth = {}; // K
  bool sharesColumns = false;        // panels are as wide as each other, give or take a vector
};

/// The kernel that multiplies fastest, or none where no vector of the machine holds the types. `others` gets what else
/// multiplies them, slower.
std::optional<ds::ProductKernel> fastestKernel(const Machine &machine, const ProductShape &shape,
                                               llvm::SmallVectorImpl<ds::ProductKernel> &others);

/// Whether operands that lie in no package are multiplied in pairs of bf16 faster than in f32.
bool multipliesPairs(const Machine &machine);

struct Tile {
  int64_t rows, columns;
};
/// The tile that computes the product in the least time, counting what a last panel wastes.
Tile fastestTile(const Machine &machine, ds::ProductKernel kernel, const ProductShape &shape);

} // namespace deepstride

#endif
