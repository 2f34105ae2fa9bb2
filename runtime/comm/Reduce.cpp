#include "runtime/comm/Reduce.h"

#include "runtime/core/Error.h"

#include <algorithm>
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

// Storage is what memory holds, T what is computed with. Block by block, so that the sums of a block stay in registers
// and cache while the parts are walked through one by one.
template <typename Storage, typename T, typename Widen, typename Narrow>
void reduceAs(Reduction reduction, const std::vector<const void *> &parts, int64_t count, void *destination,
              Widen widen, Narrow narrow) {
  constexpr int64_t block = 512;
  T values[block];
  for (int64_t first = 0; first < count; first += block) {
    int64_t length = std::min(block, count - first);
    const Storage *own = static_cast<const Storage *>(parts[0]) + first;
    for (int64_t i = 0; i < length; ++i)
      values[i] = widen(own[i]);
    for (size_t rank = 1; rank < parts.size(); ++rank) {
      const Storage *next = static_cast<const Storage *>(parts[rank]) + first;
      if (reduction == Reduction::Max)
        for (int64_t i = 0; i < length; ++i)
          values[i] = larger(values[i], static_cast<T>(widen(next[i])));
      else
        for (int64_t i = 0; i < length; ++i)
          values[i] = plus(values[i], static_cast<T>(widen(next[i])));
    }
    Storage *out = static_cast<Storage *>(destination) + first;
    for (int64_t i = 0; i < length; ++i)
      out[i] =
          narrow(reduction == Reduction::Mean ? static_cast<T>(values[i] / static_cast<T>(parts.size())) : values[i]);
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
