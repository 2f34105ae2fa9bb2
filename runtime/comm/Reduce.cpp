#include "runtime/comm/Reduce.h"

#include "runtime/core/Error.h"

#include <cmath>
#include <type_traits>

namespace ds {
namespace {

template <typename T> T plus(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    using Unsigned = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b));
  } else {
    return a + b;
  }
}

template <typename T> T larger(T a, T b) {
  if constexpr (std::is_floating_point_v<T>)
    if (std::isnan(a) || std::isnan(b))
      return std::isnan(a) ? a : b;
  return b > a ? b : a;
}

// Storage is what memory holds, T what is computed with.
template <typename Storage, typename T, typename Widen, typename Narrow>
void reduceAs(Reduction reduction, const std::vector<const void *> &parts, int64_t count, void *destination,
              Widen widen, Narrow narrow) {
  Storage *out = static_cast<Storage *>(destination);
  for (int64_t i = 0; i < count; ++i) {
    T value = widen(static_cast<const Storage *>(parts[0])[i]);
    for (size_t rank = 1; rank < parts.size(); ++rank) {
      T next = widen(static_cast<const Storage *>(parts[rank])[i]);
      value = reduction == Reduction::Max ? larger(value, next) : plus(value, next);
    }
    if (reduction == Reduction::Mean)
      value = static_cast<T>(value / static_cast<T>(parts.size()));
    out[i] = narrow(value);
  }
}

template <typename T>
void reducePlain(Reduction reduction, const std::vector<const void *> &parts, int64_t count, void *destination) {
  auto same = [](T value) { return value; };
  reduceAs<T, T>(reduction, parts, count, destination, same, same);
}

} // namespace

bool canReduce(ElementType type) {
  switch (type) {
  case ElementType::F64:
  case ElementType::F32:
  case ElementType::F16:
  case ElementType::BF16:
  case ElementType::I64:
  case ElementType::I32: return true;
  default: return false;
  }
}

void reduceParts(ElementType type, Reduction reduction, const std::vector<const void *> &parts, int64_t count,
                 void *destination) {
  switch (type) {
  case ElementType::F64: return reducePlain<double>(reduction, parts, count, destination);
  case ElementType::F32: return reducePlain<float>(reduction, parts, count, destination);
  case ElementType::I64: return reducePlain<int64_t>(reduction, parts, count, destination);
  case ElementType::I32: return reducePlain<int32_t>(reduction, parts, count, destination);
  case ElementType::F16: return reduceAs<uint16_t, float>(reduction, parts, count, destination, widenF16, narrowF16);
  case ElementType::BF16: return reduceAs<uint16_t, float>(reduction, parts, count, destination, widenBF16, narrowBF16);
  default: fail(ErrorCode::Collective, "cannot reduce elements of type ", typeName(type));
  }
}

} // namespace ds
