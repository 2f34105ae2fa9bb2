// Element-wise reduction over ranks in rank order, so that the result's bits do not depend on who arrived first.
#ifndef DEEPSTRIDE_RUNTIME_COMM_REDUCE_H
#define DEEPSTRIDE_RUNTIME_COMM_REDUCE_H

#include "runtime/comm/Communicator.h"

#include <vector>

namespace ds {

// f64, f32, f16, bf16, i64, i32. Half-width floats accumulate in f32 and are rounded once. Integer sums wrap, integer
// means truncate toward zero. A NaN in any part makes the maximum NaN.
bool canReduce(ElementType type);
void reduceParts(ElementType type, Reduction reduction, const std::vector<const void *> &parts, int64_t count,
                 void *destination);

} // namespace ds
#endif
