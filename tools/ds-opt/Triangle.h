// What weights are rounded against (ds.quantize_weight), from the rows that they are multiplied by.
#ifndef DEEPSTRIDE_TOOLS_DSOPT_TRIANGLE_H
#define DEEPSTRIDE_TOOLS_DSOPT_TRIANGLE_H

#include <cstdint>
#include <vector>

namespace deepstride {

/// `sums`: the sum H of x x^T over rows x of `size` elements, row by row. Becomes the lower triangle L with
/// L^T L = H + d I, where d is a hundredth of H's mean diagonal, and zeros above. Where H is zero, L is the identity.
/// False where an element is not finite.
bool makeTriangle(std::vector<double> &sums, int64_t size);

} // namespace deepstride

#endif
