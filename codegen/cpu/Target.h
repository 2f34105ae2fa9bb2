// What a --mcpu name means: features that the machine must have, vector and tile sizes that suit it.
#ifndef DEEPSTRIDE_CODEGEN_CPU_TARGET_H
#define DEEPSTRIDE_CODEGEN_CPU_TARGET_H

#include <optional>
#include <string>
#include <vector>

namespace deepstride {

struct CpuTarget {
  std::string name;                  // as given; the host's own name for "host"
  std::string level;                 // x86-64-v3 or x86-64-v4: what LLVM may emit
  std::string extensions;            // beyond the level, as LLVM's list of features: "+avx512vnni"
  std::vector<std::string> features; // what the code needs, in /proc/cpuinfo's spelling
  int64_t lanes = 0;                 // f32 elements of a native vector
  int64_t vectorBits = 0;
  std::string machine;      // what ds-schedule-kernels is told; filled by whoever runs it
  bool farLoads = false;    // as of convert-ds-to-linalg: measured on Zen 3 and 4 (docs/rationale/kernels.md)
  bool byteDot = false;     // vpdpbusd on vectors of that size
  bool bfloatDot = false;   // vdpbf16ps and vcvtneps2bf16
  bool byteTiles = false;   // AMX multiplies bytes
  bool bfloatTiles = false; // AMX multiplies bf16
  bool sanitize = false;    // the address sanitizer checks every access; whoever loads the code must hold its run time
};

/// Resolves "host", a level (x86-64-v3, x86-64-v4) or a CPU name that LLVM knows. On failure says why in `error`.
std::optional<CpuTarget> resolveCpuTarget(const std::string &mcpu, std::string &error);

} // namespace deepstride

#endif
