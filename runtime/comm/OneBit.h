// The 1-bit code of floats (f32 or f64): a bit per element that is set where the element is at least zero, and one
// scale for all of them, which travels as f32. What it stands for is the scale with that sign; what it leaves out stays
// behind where the element was. Bits lie in bytes from the lowest up.
#ifndef DEEPSTRIDE_RUNTIME_COMM_ONEBIT_H
#define DEEPSTRIDE_RUNTIME_COMM_ONEBIT_H

#include "runtime/core/ElementType.h"

#include <cstdint>
#include <vector>

namespace ds {

// A sum of squares whose bits depend on values and their positions alone, not on how they come in runs.
struct SquareSum {
  double lanes[8] = {}; // by position, modulo

  // The root of the mean over `count` elements, rounded; 0 for none.
  float scale(int64_t count) const;
};

// error += values, which begin at a position of their space; and the squares of that.
void addToError(ElementType type, const void *values, void *error, int64_t count, int64_t position, SquareSum &squares);

// Bits [first, first + count) from as many values, each of which becomes what its bit leaves out. The bits must be 0.
void encodeSigns(ElementType type, void *values, int64_t count, float scale, uint8_t *bits, int64_t first);

void decodeSigns(ElementType type, const uint8_t *bits, int64_t first, int64_t count, float scale, void *values);

// error += the mean of what the bits of all ranks stand for, added up in rank order; and the squares of that.
void addMeanOfSigns(ElementType type, const std::vector<const uint8_t *> &bits, const std::vector<float> &scales,
                    int64_t first, int64_t count, void *error, int64_t position, SquareSum &squares);

} // namespace ds
#endif
