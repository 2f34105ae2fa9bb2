// Elements between memory and message: copied, or rounded once to a narrower float and widened again.
#ifndef DEEPSTRIDE_RUNTIME_COMM_WIRE_H
#define DEEPSTRIDE_RUNTIME_COMM_WIRE_H

#include "runtime/core/ElementType.h"

namespace ds {

bool canTravelAs(ElementType type, ElementType wire);
void packElements(ElementType type, ElementType wire, const void *source, void *message, int64_t count);
void unpackElements(ElementType wire, ElementType type, const void *message, void *destination, int64_t count);

} // namespace ds
#endif
