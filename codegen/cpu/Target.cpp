// CPU names are resolved through LLVM's own feature tables, then reduced to a level: code for one name runs on every
// machine with the listed features.
#include "codegen/cpu/Target.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/Triple.h"

#include <sys/syscall.h>
#include <unistd.h>

namespace deepstride {

static constexpr const char *level3[] = {"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe"};
static constexpr const char *level4[] = {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"};

/// /proc/cpuinfo and LLVM disagree on some names.
static std::string llvmName(llvm::StringRef feature) {
  return llvm::StringSwitch<std::string>(feature)
      .Case("bmi1", "bmi")
      .Case("avx512_vnni", "avx512vnni")
      .Case("avx_vnni", "avxvnni")
      .Case("avx512_bf16", "avx512bf16")
      .Case("amx_tile", "amx-tile")
      .Case("amx_bf16", "amx-bf16")
      .Case("amx_int8", "amx-int8")
      .Default(feature.str());
}

/// Whether the system would let a process of this machine use AMX.
static bool grantsTiles() {
#ifdef __x86_64__
  constexpr long requestPermission = 0x1023, tileData = 18;
  return syscall(SYS_arch_prctl, requestPermission, tileData) == 0;
#else
  return false;
#endif
}

std::optional<CpuTarget> resolveCpuTarget(const std::string &mcpu, std::string &error) {
  llvm::InitializeAllTargetInfos();
  llvm::InitializeAllTargets();
  llvm::InitializeAllTargetMCs();
  llvm::Triple triple("x86_64-unknown-linux-gnu");
  const llvm::Target *target = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!target)
    return std::nullopt;
  bool isHost = mcpu == "host" || mcpu == "native";
  std::string name = isHost ? llvm::sys::getHostCPUName().str() : mcpu;
  std::unique_ptr<llvm::MCSubtargetInfo> plain(target->createMCSubtargetInfo(triple, "", ""));
  if (!plain->isCPUStringValid(name)) {
    error = "--mcpu: unknown CPU '" + name + "'; legal are host, x86-64-v3, x86-64-v4 and LLVM's CPU names";
    return std::nullopt;
  }
  llvm::StringMap<bool> host = isHost ? llvm::sys::getHostCPUFeatures() : llvm::StringMap<bool>();
  std::unique_ptr<llvm::MCSubtargetInfo> info(target->createMCSubtargetInfo(triple, name, ""));
  auto has = [&](const char *feature) {
    std::string spelled = llvmName(feature);
    return isHost ? host.lookup(spelled) : info->checkFeatures("+" + spelled);
  };

  CpuTarget result;
  result.name = name;
  for (const char *feature : level3) {
    if (!has(feature)) {
      error = "--mcpu: '" + name + "' lacks " + feature + "; the least that code is generated for is x86-64-v3";
      return std::nullopt;
    }
    result.features.push_back(feature);
  }
  bool isLevel4 = true;
  for (const char *feature : level4)
    isLevel4 &= has(feature);
  if (isLevel4)
    result.features.insert(result.features.end(), std::begin(level4), std::end(level4));
  result.level = isLevel4 ? "x86-64-v4" : "x86-64-v3";
  result.vectorBits = isLevel4 ? 512 : 256;
  auto use = [&](const char *feature) {
    if (!has(feature))
      return false;
    result.features.push_back(feature);
    result.extensions += (result.extensions.empty() ? "+" : ",+") + llvmName(feature);
    return true;
  };
  // In the encoding that goes with the vectors.
  result.byteDot = use(isLevel4 ? "avx512_vnni" : "avx_vnni");
  result.bfloatDot = isLevel4 && use("avx512_bf16");
  if (isLevel4 && (has("amx_bf16") || has("amx_int8")) && (!isHost || grantsTiles()) && use("amx_tile")) {
    result.bfloatTiles = use("amx_bf16");
    result.byteTiles = use("amx_int8");
  }
  result.farLoads = llvm::StringRef(name).starts_with("znver");
  result.lanes = result.vectorBits / 32;
  return result;
}

} // namespace deepstride
