// From the last row to the first: a row of L is a row of what is left of H over the root of its diagonal, and is
// subtracted, times itself, from the rows above. Blocks of rows do that to the rest at once, in parallel over rows,
// each of which is summed in one order.
#include "tools/ds-opt/Triangle.h"

#include "llvm/Support/Parallel.h"

#include <algorithm>
#include <cmath>

namespace deepstride {

namespace {

class Factorization {
public:
  Factorization(std::vector<double> &matrix, int64_t size, double least) : matrix(matrix), size(size), least(least) {}

  void run() {
    constexpr int64_t block = 64;
    for (int64_t end = size; end > 0;) {
      int64_t begin = std::max<int64_t>(0, end - block);
      for (int64_t pivot = end; pivot-- > begin;) {
        // The rest is at least as large as what was added to the diagonal, but for rounding.
        double *row = at(pivot), diagonal = std::sqrt(std::max(row[pivot], least));
        std::fill(row + pivot + 1, row + size, 0.0);
        row[pivot] = diagonal;
        for (int64_t column = 0; column < pivot; ++column)
          row[column] /= diagonal;
        for (int64_t other = begin; other < pivot; ++other)
          subtract(other, pivot, pivot + 1);
      }
      llvm::parallelFor(0, static_cast<size_t>(begin),
                        [&](size_t other) { subtract(static_cast<int64_t>(other), begin, end); });
      end = begin;
    }
  }

private:
  double *at(int64_t row) { return matrix.data() + row * size; }

  /// Takes what rows from `begin` to `end` account for off a row above them, up to its diagonal.
  void subtract(int64_t row, int64_t begin, int64_t end) {
    typedef double Lanes __attribute__((vector_size(64), aligned(8), may_alias));
    constexpr int64_t width = 8;
    int64_t columns = row + 1;
    for (int64_t first = 0; first < columns; first += width) {
      if (columns - first < width) {
        for (int64_t column = first; column < columns; ++column)
          for (int64_t pivot = end; pivot-- > begin;)
            at(row)[column] -= at(pivot)[row] * at(pivot)[column];
        break;
      }
      auto &lanes = *reinterpret_cast<Lanes *>(at(row) + first);
      Lanes sum = lanes;
      for (int64_t pivot = end; pivot-- > begin;)
        sum -= at(pivot)[row] * *reinterpret_cast<const Lanes *>(at(pivot) + first);
      lanes = sum;
    }
  }

  std::vector<double> &matrix;
  const int64_t size;
  const double least;
};

} // namespace

bool makeTriangle(std::vector<double> &sums, int64_t size) {
  constexpr double damping = 0.01;
  if (!std::all_of(sums.begin(), sums.end(), [](double sum) { return std::isfinite(sum); }))
    return false;
  double mean = 0;
  for (int64_t i = 0; i < size; ++i)
    mean += sums[i * size + i] / static_cast<double>(size);
  double added = mean > 0 ? damping * mean : 1;
  for (int64_t i = 0; i < size; ++i)
    sums[i * size + i] += added;
  Factorization(sums, size, added).run();
  return true;
}

} // namespace deepstride
