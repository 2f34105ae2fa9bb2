// The float types of eight and four bits: each element lies in the low bits of a byte of its own.
#ifndef DEEPSTRIDE_RUNTIME_CORE_NARROWFLOATS_H
#define DEEPSTRIDE_RUNTIME_CORE_NARROWFLOATS_H

#include "runtime/core/ElementType.h"

namespace ds {

bool isNarrowFloat(ElementType type);
double widenNarrow(ElementType type, uint8_t bits);
// To the nearest, ties to even; beyond the greatest finite value to that value. NaN becomes NaN, or -0 where the type
// has none.
uint8_t narrowFloat(ElementType type, double value);

} // namespace ds
#endif
