// Element types at the package's border, their names and sizes, and exact conversions of the half-width floats.
#ifndef DEEPSTRIDE_RUNTIME_CORE_ELEMENTTYPE_H
#define DEEPSTRIDE_RUNTIME_CORE_ELEMENTTYPE_H

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace ds {

// The order is that of ds_type in include/ds/runtime.h.
// Types of less than a byte take a byte per element in memory.
enum class ElementType : uint8_t {
  F64,
  F32,
  F16,
  BF16,
  I64,
  I32,
  I16,
  I8,
  U64,
  U32,
  U16,
  U8,
  I1,
  F8E4M3FN,
  F8E4M3FNUZ,
  F8E5M2,
  F8E5M2FNUZ,
  F8E8M0,
  F4E2M1,
  I4,
  U4,
  I2,
  U2
};
constexpr unsigned numElementTypes = 23;

const char *typeName(ElementType type);
std::optional<ElementType> typeFromName(const std::string &name);
// The type that NumPy files have for it: itself, f32 for floats and 8-bit integers for integers that NumPy lacks.
ElementType npyType(ElementType type);
size_t typeSize(ElementType type);
// Bits per element where a file packs them: 4 or 2 for the types narrower than a byte.
unsigned packedBits(ElementType type);
bool isFloat(ElementType type);
inline bool isInteger(ElementType type) { return !isFloat(type); } // i1 included
bool isSigned(ElementType type);

float widenF16(uint16_t bits);
float widenBF16(uint16_t bits);
uint16_t narrowF16(float value);  // round to nearest even
uint16_t narrowBF16(float value); // round to nearest even, NaN stays NaN

// One element as a double (64-bit integers are rounded) or as an integer (integer types only).
double loadDouble(ElementType type, const void *data, size_t index);
int64_t loadInteger(ElementType type, const void *data, size_t index);
void storeDouble(ElementType type, void *data, size_t index, double value); // integers: truncated and clamped

} // namespace ds
#endif
