// What this processor and its operating system can execute, by name.
#ifndef DEEPSTRIDE_RUNTIME_DEVICE_CPU_CPUFEATURES_H
#define DEEPSTRIDE_RUNTIME_DEVICE_CPU_CPUFEATURES_H

#include <set>
#include <string>
#include <vector>

namespace ds {

class CpuFeatures {
public:
  CpuFeatures() = default;
  explicit CpuFeatures(const std::vector<std::string> &names);

  // Of the machine we run on, read once. AMX counts only when the system grants its registers to this process, which
  // who asks for a feature of AMX asks the system for.
  static const CpuFeatures &host();

  // Accepts the spellings of /proc/cpuinfo and of LLVM ("avx512_vnni", "avx512vnni", "amx-tile", "sse4.1").
  bool has(const std::string &name) const;
  // Whether the processor has AMX, but the system does not let this process use it.
  bool areTilesRefused() const;
  std::vector<std::string> missing(const std::vector<std::string> &wanted) const;

private:
  std::set<std::string> names;
};

} // namespace ds
#endif
