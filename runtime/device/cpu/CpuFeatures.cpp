#include "runtime/device/cpu/CpuFeatures.h"

#include <fstream>
#include <map>
#include <sstream>
#include <sys/syscall.h>
#include <unistd.h>

namespace ds {
namespace {

// One spelling for each feature: no separators, and LLVM's names where the kernel has its own.
std::string normalized(const std::string &name) {
  std::string plain;
  for (char c : name)
    if (c != '_' && c != '-' && c != '.')
      plain += c;
  static const std::map<std::string, std::string> aliases = {{"pni", "sse3"},        {"abm", "lzcnt"},
                                                             {"lahflm", "sahf"},     {"shani", "sha"},
                                                             {"rdrand", "rdrnd"},    {"3dnowprefetch", "prfchw"},
                                                             {"pclmulqdq", "pclmul"}};
  auto found = aliases.find(plain);
  return found == aliases.end() ? plain : found->second;
}

// Tile registers are off for a process until it asks for them, for all of its threads; from then on the frames of
// signals are larger. So nobody asks who does not need them.
bool areTilesGranted() {
#ifdef __x86_64__
  constexpr long requestPermission = 0x1023, tileData = 18;
  static const bool granted = syscall(SYS_arch_prctl, requestPermission, tileData) == 0;
  return granted;
#else
  return false;
#endif
}

#ifdef __x86_64__
void addFromCpuid(std::vector<std::string> &names) {
  __builtin_cpu_init();
#define DS_FEATURE(name)                                                                                               \
  if (__builtin_cpu_supports(name))                                                                                    \
  names.push_back(name)
  DS_FEATURE("sse3");
  DS_FEATURE("ssse3");
  DS_FEATURE("sse4.1");
  DS_FEATURE("sse4.2");
  DS_FEATURE("popcnt");
  DS_FEATURE("avx");
  DS_FEATURE("avx2");
  DS_FEATURE("fma");
  DS_FEATURE("bmi");
  DS_FEATURE("bmi2");
  DS_FEATURE("avx512f");
  DS_FEATURE("avx512bw");
  DS_FEATURE("avx512dq");
  DS_FEATURE("avx512vl");
  DS_FEATURE("avx512cd");
  DS_FEATURE("avx512vnni");
  DS_FEATURE("avx512bf16");
#undef DS_FEATURE
}
#endif

CpuFeatures readHost() {
  std::vector<std::string> names;
  // The kernel lists a feature only when it has also enabled the registers that it needs.
  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; std::getline(cpuinfo, line);) {
    if (line.compare(0, 5, "flags") != 0 && line.compare(0, 8, "Features") != 0)
      continue;
    std::istringstream words(line.substr(line.find(':') + 1));
    for (std::string word; words >> word;)
      names.push_back(word);
    break;
  }
#ifdef __x86_64__
  if (names.empty())
    addFromCpuid(names);
  names.push_back("sse");
  names.push_back("sse2");
#endif
  return CpuFeatures(names);
}

} // namespace

CpuFeatures::CpuFeatures(const std::vector<std::string> &given) {
  for (const std::string &name : given)
    names.insert(normalized(name));
  if (names.count("bmi1"))
    names.insert("bmi");
}

const CpuFeatures &CpuFeatures::host() {
  static const CpuFeatures features = readHost();
  return features;
}

bool CpuFeatures::has(const std::string &name) const {
  std::string plain = normalized(name);
  return names.count(plain) != 0 && (plain.compare(0, 3, "amx") != 0 || areTilesGranted());
}

bool CpuFeatures::areTilesRefused() const { return names.count("amxtile") != 0 && !areTilesGranted(); }

std::vector<std::string> CpuFeatures::missing(const std::vector<std::string> &wanted) const {
  std::vector<std::string> result;
  for (const std::string &name : wanted)
    if (!has(name))
      result.push_back(name);
  return result;
}

} // namespace ds
