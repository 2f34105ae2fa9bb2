// Loops that do nothing but one kind of arithmetic, each compiled for the instructions it needs and called only where
// the processor has them. Enough independent accumulators hide the latency. Compiled with optimization in every build.
#include "runtime/device/cpu/Ceilings.h"
#include "runtime/device/cpu/CpuFeatures.h"

#include <cstring>

#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace ds {
namespace {

volatile float floatSource = 1e-9f; // the compiler cannot know the operands
volatile int intSource = 1;
volatile float floatSink;
volatile int intSink;

double peakGeneric(long rounds) {
  float factor = floatSource, sums[32] = {};
  for (long i = 0; i < rounds; ++i)
    for (float &sum : sums)
      sum = sum * factor + factor;
  float total = 0;
  for (float sum : sums)
    total += sum;
  floatSink = total;
  return static_cast<double>(rounds) * 32 * 2;
}

// Several streams through equal parts of the memory: how many it takes to keep a core's requests in flight differs by
// processor, so several are offered; `asks`: in advance, by prefetches, without which some processors read faster.
template <int streams> uint64_t readGeneric(const uint8_t *data, size_t bytes) {
  uint64_t sums[8] = {};
  size_t part = bytes / streams;
  for (size_t i = 0; i + 64 <= part; i += 64)
    for (int stream = 0; stream < streams; ++stream) {
      uint64_t words[8];
      std::memcpy(words, data + static_cast<size_t>(stream) * part + i, 64);
      for (int k = 0; k < 8; ++k)
        sums[k] += words[k];
    }
  uint64_t total = 0;
  for (uint64_t sum : sums)
    total += sum;
  return total;
}

#ifdef __x86_64__

__attribute__((target("avx2,fma"))) double peakF32Avx2(long rounds) {
  constexpr int count = 12;
  __m256 a = _mm256_set1_ps(floatSource), b = _mm256_set1_ps(floatSource), sums[count];
  for (__m256 &sum : sums)
    sum = _mm256_setzero_ps();
  for (long i = 0; i < rounds; ++i)
#pragma clang loop unroll(full)
    for (int k = 0; k < count; ++k)
      sums[k] = _mm256_fmadd_ps(a, b, sums[k]);
  for (int k = 1; k < count; ++k)
    sums[0] = _mm256_add_ps(sums[0], sums[k]);
  floatSink = _mm256_cvtss_f32(sums[0]);
  return static_cast<double>(rounds) * count * 8 * 2;
}

__attribute__((target("avx512f"))) double peakF32Avx512(long rounds) {
  constexpr int count = 24;
  __m512 a = _mm512_set1_ps(floatSource), b = _mm512_set1_ps(floatSource), sums[count];
  for (__m512 &sum : sums)
    sum = _mm512_setzero_ps();
  for (long i = 0; i < rounds; ++i)
#pragma clang loop unroll(full)
    for (int k = 0; k < count; ++k)
      sums[k] = _mm512_fmadd_ps(a, b, sums[k]);
  for (int k = 1; k < count; ++k)
    sums[0] = _mm512_add_ps(sums[0], sums[k]);
  floatSink = _mm512_cvtss_f32(sums[0]);
  return static_cast<double>(rounds) * count * 16 * 2;
}

__attribute__((target("avx512f,avx512bf16"))) double peakBf16(long rounds) {
  constexpr int count = 24;
  __m512 start = _mm512_set1_ps(floatSource), sums[count];
  __m512bh a = _mm512_cvtne2ps_pbh(start, start), b = a;
  for (__m512 &sum : sums)
    sum = _mm512_setzero_ps();
  for (long i = 0; i < rounds; ++i)
#pragma clang loop unroll(full)
    for (int k = 0; k < count; ++k)
      sums[k] = _mm512_dpbf16_ps(sums[k], a, b);
  for (int k = 1; k < count; ++k)
    sums[0] = _mm512_add_ps(sums[0], sums[k]);
  floatSink = _mm512_cvtss_f32(sums[0]);
  return static_cast<double>(rounds) * count * 32 * 2;
}

// `step` adds to `sum`, one of `count` registers of so many bits, products of `a` and `b`; `operations` are those of
// one.
#define DS_INTEGER_PEAK(name, features, bits, count, step, operations)                                                 \
  __attribute__((target(features))) double name(long rounds) {                                                         \
    [[maybe_unused]] __m##bits##i a = _mm##bits##_set1_epi32(intSource), b = a, sums[count];                           \
    for (__m##bits##i &sum : sums)                                                                                     \
      sum = _mm##bits##_setzero_si##bits();                                                                            \
    for (long i = 0; i < rounds; ++i)                                                                                  \
      _Pragma("clang loop unroll(full)") for (__m##bits##i &sum : sums) sum = step;                                    \
    for (int k = 1; k < (count); ++k)                                                                                  \
      sums[0] = _mm##bits##_add_epi32(sums[0], sums[k]);                                                               \
    intSink = _mm##bits##_cvtsi##bits##_si32(sums[0]);                                                                 \
    return static_cast<double>(rounds) * (count) * (operations);                                                       \
  }
DS_INTEGER_PEAK(peakInt8Avx512, "avx512f,avx512vnni", 512, 24, _mm512_dpbusd_epi32(sum, a, b), 64 * 2)
DS_INTEGER_PEAK(peakInt8Avx2, "avx2,avxvnni", 256, 12, _mm256_dpbusd_avx_epi32(sum, a, b), 32 * 2)
// 16-bit integers in pairs: what products of bytes take where the processor has no instruction for four of these. What
// vpmaddwd gives depends on the sum, or compilers would multiply once.
DS_INTEGER_PEAK(peakInt16Vnni, "avx512f,avx512vnni", 512, 24, _mm512_dpwssd_epi32(sum, a, b), 32 * 2)
DS_INTEGER_PEAK(peakInt16Avx512, "avx512f,avx512bw", 512, 24, _mm512_add_epi32(sum, _mm512_madd_epi16(a, sum)), 32 * 2)
DS_INTEGER_PEAK(peakInt16Avx2, "avx2", 256, 12, _mm256_add_epi32(sum, _mm256_madd_epi16(a, sum)), 16 * 2)
// Bytes that are added up in 16 bits, fours of them, before they become 32: products of bytes without that instruction.
DS_INTEGER_PEAK(peakInt8PairsAvx512, "avx512f,avx512bw", 512, 24,
                _mm512_add_epi32(sum, _mm512_madd_epi16(_mm512_add_epi16(_mm512_maddubs_epi16(a, sum),
                                                                         _mm512_maddubs_epi16(sum, b)),
                                                        a)),
                128 * 2)
DS_INTEGER_PEAK(peakInt8PairsAvx2, "avx2", 256, 12,
                _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_add_epi16(_mm256_maddubs_epi16(a, sum),
                                                                         _mm256_maddubs_epi16(sum, b)),
                                                        a)),
                64 * 2)
#undef DS_INTEGER_PEAK

// All eight tile registers: four accumulators, two tiles of each operand, 16 rows of 64 bytes.
struct alignas(64) TileConfig {
  uint8_t palette = 1, startRow = 0, reserved[14] = {};
  uint16_t rowBytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

#define DS_AMX_PEAK(name, feature, multiply, operations)                                                               \
  __attribute__((target("amx-tile," feature))) double name(long rounds) {                                              \
    alignas(64) static const uint8_t operand[16 * 64] = {};                                                            \
    TileConfig config;                                                                                                 \
    _tile_loadconfig(&config);                                                                                         \
    _tile_zero(0);                                                                                                     \
    _tile_zero(1);                                                                                                     \
    _tile_zero(2);                                                                                                     \
    _tile_zero(3);                                                                                                     \
    _tile_loadd(4, operand, 64);                                                                                       \
    _tile_loadd(5, operand, 64);                                                                                       \
    _tile_loadd(6, operand, 64);                                                                                       \
    _tile_loadd(7, operand, 64);                                                                                       \
    for (long i = 0; i < rounds; ++i) {                                                                                \
      multiply(0, 4, 6);                                                                                               \
      multiply(1, 4, 7);                                                                                               \
      multiply(2, 5, 6);                                                                                               \
      multiply(3, 5, 7);                                                                                               \
    }                                                                                                                  \
    _tile_release();                                                                                                   \
    return static_cast<double>(rounds) * 4 * (operations);                                                             \
  }
DS_AMX_PEAK(peakAmxBf16, "amx-bf16", _tile_dpbf16ps, 16 * 16 * 32 * 2)
DS_AMX_PEAK(peakAmxInt8, "amx-int8", _tile_dpbssd, 16 * 16 * 64 * 2)
#undef DS_AMX_PEAK

constexpr int aheadBytes = 1024; // asked for before it is read; beyond the end, that does nothing

template <int streams, bool asks> __attribute__((target("avx2"))) uint64_t readAvx2(const uint8_t *data, size_t bytes) {
  __m256i sums[8];
  for (__m256i &sum : sums)
    sum = _mm256_setzero_si256();
  size_t part = bytes / streams;
  for (size_t i = 0; i < part; i += 256)
#pragma clang loop unroll(full)
    for (int stream = 0; stream < streams; ++stream) {
      const uint8_t *at = data + static_cast<size_t>(stream) * part + i;
#pragma clang loop unroll(full)
      for (int k = 0; k < 8; ++k) {
        if (asks && k % 2 == 0)
          _mm_prefetch(reinterpret_cast<const char *>(at + 32 * k + aheadBytes), _MM_HINT_T0);
        sums[k] = _mm256_add_epi64(sums[k], _mm256_load_si256(reinterpret_cast<const __m256i *>(at) + k));
      }
    }
  for (int k = 1; k < 8; ++k)
    sums[0] = _mm256_add_epi64(sums[0], sums[k]);
  return static_cast<uint64_t>(_mm256_extract_epi64(sums[0], 0));
}

template <int streams, bool asks>
__attribute__((target("avx512f"))) uint64_t readAvx512(const uint8_t *data, size_t bytes) {
  __m512i sums[8];
  for (__m512i &sum : sums)
    sum = _mm512_setzero_si512();
  size_t part = bytes / streams;
  for (size_t i = 0; i < part; i += 512)
#pragma clang loop unroll(full)
    for (int stream = 0; stream < streams; ++stream) {
      const uint8_t *at = data + static_cast<size_t>(stream) * part + i;
#pragma clang loop unroll(full)
      for (int k = 0; k < 8; ++k) {
        if (asks)
          _mm_prefetch(reinterpret_cast<const char *>(at + 64 * k + aheadBytes), _MM_HINT_T0);
        sums[k] = _mm512_add_epi64(sums[k], _mm512_load_si512(at + 64 * k));
      }
    }
  for (int k = 1; k < 8; ++k)
    sums[0] = _mm512_add_epi64(sums[0], sums[k]);
  return static_cast<uint64_t>(_mm512_reduce_add_epi64(sums[0]));
}

#endif

} // namespace

PeakKernels peakKernelsOfHost() {
  PeakKernels kernels;
  kernels.f32 = peakGeneric;
  kernels.reads = {readGeneric<1>, readGeneric<4>, readGeneric<8>};
#ifdef __x86_64__
  const CpuFeatures &cpu = CpuFeatures::host();
  if (cpu.has("avx2")) {
    kernels.reads = {readAvx2<1, true>,  readAvx2<4, true>,  readAvx2<8, true>,
                     readAvx2<1, false>, readAvx2<4, false>, readAvx2<8, false>};
    kernels.int8Pairs = peakInt8PairsAvx2;
    kernels.int16 = peakInt16Avx2;
  }
  if (cpu.has("avx2") && cpu.has("fma"))
    kernels.f32 = peakF32Avx2;
  if (cpu.has("avx_vnni"))
    kernels.int8 = peakInt8Avx2;
  if (cpu.has("avx512f")) {
    kernels.reads = {readAvx512<1, true>,  readAvx512<4, true>,  readAvx512<8, true>,
                     readAvx512<1, false>, readAvx512<4, false>, readAvx512<8, false>};
    kernels.f32 = peakF32Avx512;
  }
  if (cpu.has("avx512bw")) {
    kernels.int8Pairs = peakInt8PairsAvx512;
    kernels.int16 = peakInt16Avx512;
  }
  if (cpu.has("avx512_bf16"))
    kernels.bf16 = peakBf16;
  if (cpu.has("avx512_vnni")) {
    kernels.int8 = peakInt8Avx512;
    kernels.int16 = peakInt16Vnni;
  }
  if (cpu.has("amx_bf16"))
    kernels.amxBf16 = peakAmxBf16;
  if (cpu.has("amx_int8"))
    kernels.amxInt8 = peakAmxInt8;
#endif
  return kernels;
}

} // namespace ds
