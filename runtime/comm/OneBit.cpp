#include "runtime/comm/OneBit.h"

#include <algorithm>
#include <cmath>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace ds {
namespace {

// One element, and the eight of a byte.
template <typename T> unsigned encodeOne(T &value, T scale) {
  bool isPositive = value >= 0;
  value -= isPositive ? scale : -scale;
  return isPositive;
}

template <typename T> T decodeOne(unsigned bit, T scale) { return bit & 1 ? scale : -scale; }

#ifdef __SSE2__

// All ones where an element's bit is set.
__m128 maskOf(unsigned byte, float) {
  const __m128i bits = _mm_setr_epi32(1, 2, 4, 8);
  return _mm_castsi128_ps(_mm_cmpeq_epi32(_mm_and_si128(_mm_set1_epi32(static_cast<int>(byte)), bits), bits));
}
__m128d maskOf(unsigned byte, double) {
  const __m128i bits = _mm_setr_epi32(1, 1, 2, 2);
  return _mm_castsi128_pd(_mm_cmpeq_epi32(_mm_and_si128(_mm_set1_epi32(static_cast<int>(byte)), bits), bits));
}

__m128 withSign(__m128 isPositive, float scale) {
  return _mm_xor_ps(_mm_set1_ps(scale), _mm_andnot_ps(isPositive, _mm_set1_ps(-0.0f)));
}
__m128d withSign(__m128d isPositive, double scale) {
  return _mm_xor_pd(_mm_set1_pd(scale), _mm_andnot_pd(isPositive, _mm_set1_pd(-0.0)));
}

unsigned encodeVector(float *values, float scale) {
  __m128 value = _mm_loadu_ps(values), isPositive = _mm_cmpge_ps(value, _mm_setzero_ps());
  _mm_storeu_ps(values, _mm_sub_ps(value, withSign(isPositive, scale)));
  return static_cast<unsigned>(_mm_movemask_ps(isPositive));
}
unsigned encodeVector(double *values, double scale) {
  __m128d value = _mm_loadu_pd(values), isPositive = _mm_cmpge_pd(value, _mm_setzero_pd());
  _mm_storeu_pd(values, _mm_sub_pd(value, withSign(isPositive, scale)));
  return static_cast<unsigned>(_mm_movemask_pd(isPositive));
}

void store(float *values, __m128 vector) { _mm_storeu_ps(values, vector); }
void store(double *values, __m128d vector) { _mm_storeu_pd(values, vector); }
void addTo(float *values, __m128 vector) { _mm_storeu_ps(values, _mm_add_ps(_mm_loadu_ps(values), vector)); }
void addTo(double *values, __m128d vector) { _mm_storeu_pd(values, _mm_add_pd(_mm_loadu_pd(values), vector)); }

template <typename T> constexpr unsigned vectorLength = 16 / sizeof(T);

template <typename T> unsigned encodeByte(T *values, T scale) {
  unsigned byte = 0;
  for (unsigned i = 0; i < 8; i += vectorLength<T>)
    byte |= encodeVector(values + i, scale) << i;
  return byte;
}

template <typename T, typename Action> void visitByte(unsigned byte, T scale, Action action) {
  constexpr unsigned step = vectorLength<T>;
  for (unsigned i = 0; i < 8; i += step)
    action(i, withSign(maskOf(byte >> i, T()), scale));
}

template <typename T> void decodeByte(unsigned byte, T scale, T *values) {
  visitByte(byte, scale, [&](unsigned i, auto vector) { store(values + i, vector); });
}

template <typename T> void addByte(unsigned byte, T scale, T *values) {
  visitByte(byte, scale, [&](unsigned i, auto vector) { addTo(values + i, vector); });
}

#else

template <typename T> unsigned encodeByte(T *values, T scale) {
  unsigned byte = 0;
  for (unsigned i = 0; i < 8; ++i)
    byte |= encodeOne(values[i], scale) << i;
  return byte;
}

template <typename T> void decodeByte(unsigned byte, T scale, T *values) {
  for (unsigned i = 0; i < 8; ++i)
    values[i] = decodeOne(byte >> i, scale);
}

template <typename T> void addByte(unsigned byte, T scale, T *values) {
  for (unsigned i = 0; i < 8; ++i)
    values[i] += decodeOne(byte >> i, scale);
}

#endif

// Elements [0, count) whose first is the first-th of something in eights: one(i, place in its eight) for those before
// and behind whole eights, eight(i) for these.
template <typename One, typename Eight> void visitEights(int64_t first, int64_t count, One one, Eight eight) {
  int64_t i = 0;
  for (; i < count && (first + i) % 8 != 0; ++i)
    one(i, (first + i) % 8);
  for (; i + 8 <= count; i += 8)
    eight(i);
  for (; i < count; ++i)
    one(i, (first + i) % 8);
}

template <typename T> void addSquares(const T *values, int64_t count, int64_t position, SquareSum &squares) {
  double lanes[8];
  std::copy_n(squares.lanes, 8, lanes);
  auto square = [](T value) { return static_cast<double>(value) * static_cast<double>(value); };
  visitEights(
      position, count, [&](int64_t i, int64_t lane) { lanes[lane] += square(values[i]); },
      [&](int64_t i) {
        for (int64_t lane = 0; lane < 8; ++lane)
          lanes[lane] += square(values[i + lane]);
      });
  std::copy_n(lanes, 8, squares.lanes);
}

// So many at once that they are still in the cache when they are squared.
constexpr int64_t block = 512;

template <typename T>
void addToErrorAs(const void *values, void *error, int64_t count, int64_t position, SquareSum &squares) {
  const T *in = static_cast<const T *>(values);
  T *out = static_cast<T *>(error);
  for (int64_t first = 0; first < count; first += block) {
    int64_t last = std::min(count, first + block);
    for (int64_t i = first; i < last; ++i)
      out[i] = in[i] + out[i];
    addSquares(out + first, last - first, position + first, squares);
  }
}

template <typename T> void encodeAs(void *memory, int64_t count, T scale, uint8_t *bits, int64_t first) {
  T *values = static_cast<T *>(memory);
  visitEights(
      first, count,
      [&](int64_t i, int64_t bit) {
        bits[(first + i) / 8] = static_cast<uint8_t>(bits[(first + i) / 8] | encodeOne(values[i], scale) << bit);
      },
      [&](int64_t i) { bits[(first + i) / 8] = static_cast<uint8_t>(encodeByte(values + i, scale)); });
}

template <typename T> void decodeAs(const uint8_t *bits, int64_t first, int64_t count, T scale, T *values) {
  visitEights(
      first, count,
      [&](int64_t i, int64_t bit) { values[i] = decodeOne(unsigned(bits[(first + i) / 8]) >> bit, scale); },
      [&](int64_t i) { decodeByte(bits[(first + i) / 8], scale, values + i); });
}

template <typename T> void addAs(const uint8_t *bits, int64_t first, int64_t count, T scale, T *values) {
  visitEights(
      first, count,
      [&](int64_t i, int64_t bit) { values[i] += decodeOne(unsigned(bits[(first + i) / 8]) >> bit, scale); },
      [&](int64_t i) { addByte(bits[(first + i) / 8], scale, values + i); });
}

template <typename T>
void addMeanAs(const std::vector<const uint8_t *> &bits, const std::vector<float> &scales, int64_t first, int64_t count,
               void *error, int64_t position, SquareSum &squares) {
  T mean[block];
  for (int64_t done = 0; done < count; done += block) {
    int64_t length = std::min(block, count - done);
    decodeAs(bits[0], first + done, length, static_cast<T>(scales[0]), mean);
    for (size_t rank = 1; rank < bits.size(); ++rank)
      addAs(bits[rank], first + done, length, static_cast<T>(scales[rank]), mean);
    for (int64_t i = 0; i < length; ++i)
      mean[i] /= static_cast<T>(bits.size());
    addToErrorAs<T>(mean, static_cast<T *>(error) + done, length, position + done, squares);
  }
}

} // namespace

float SquareSum::scale(int64_t count) const {
  if (count == 0)
    return 0;
  double sum = 0;
  for (double lane : lanes)
    sum += lane;
  return static_cast<float>(std::sqrt(sum / static_cast<double>(count)));
}

void addToError(ElementType type, const void *values, void *error, int64_t count, int64_t position,
                SquareSum &squares) {
  if (type == ElementType::F64)
    return addToErrorAs<double>(values, error, count, position, squares);
  addToErrorAs<float>(values, error, count, position, squares);
}

void encodeSigns(ElementType type, void *values, int64_t count, float scale, uint8_t *bits, int64_t first) {
  if (type == ElementType::F64)
    return encodeAs<double>(values, count, scale, bits, first);
  encodeAs<float>(values, count, scale, bits, first);
}

void decodeSigns(ElementType type, const uint8_t *bits, int64_t first, int64_t count, float scale, void *values) {
  if (type == ElementType::F64)
    return decodeAs<double>(bits, first, count, scale, static_cast<double *>(values));
  decodeAs<float>(bits, first, count, scale, static_cast<float *>(values));
}

void addMeanOfSigns(ElementType type, const std::vector<const uint8_t *> &bits, const std::vector<float> &scales,
                    int64_t first, int64_t count, void *error, int64_t position, SquareSum &squares) {
  if (type == ElementType::F64)
    return addMeanAs<double>(bits, scales, first, count, error, position, squares);
  addMeanAs<float>(bits, scales, first, count, error, position, squares);
}

} // namespace ds
