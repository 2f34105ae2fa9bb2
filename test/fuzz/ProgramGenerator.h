// Random programs of ds ops whose places, counts and indices come from the inputs of a run.
#ifndef DEEPSTRIDE_TEST_FUZZ_PROGRAMGENERATOR_H
#define DEEPSTRIDE_TEST_FUZZ_PROGRAMGENERATOR_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <cstdint>
#include <random>

namespace deepstride::fuzz {

/// Choices that the bytes of an input make, one after the other; after its end they follow from all of its bytes.
class Choices {
public:
  Choices(const uint8_t *data, size_t size);

  /// One of 0, ..., count - 1; count is positive.
  unsigned below(unsigned count);
  bool oneIn(unsigned count) { return below(count) == 0; }
  template <typename List> auto among(const List &list) { return list[below(static_cast<unsigned>(list.size()))]; }

private:
  const uint8_t *next, *end;
  std::minstd_rand random;
};

/// An entry `main` with at most 24 ops, branches and loops after its inputs; branches and loops hold at most 4 of
/// these, and lie at most in one other. A loop has at most 4 iterations.
///   x f32 [n, m], y f32 [n, 3], v f32 [m], w f32 [4, m, 2], c i1 [n, m], i i64 [k], j i32 [k, 2], h f16 [m, 4],
///   at i64 [6], whose elements are symbols of sizes, and now and then the states cache and memo f32 [5, 4].
/// Ops that inference refuses are left out; what stands in the module is verified by whoever compiles it. The context
/// has ds, func, scf, arith and tensor loaded, and hears the refusals.
mlir::OwningOpRef<mlir::ModuleOp> generateProgram(mlir::MLIRContext &context, Choices &choices);

} // namespace deepstride::fuzz

#endif
