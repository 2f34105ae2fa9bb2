#include "tools/ds-opt/Machine.h"

#include "runtime/core/Error.h"
#include "runtime/core/MappedFile.h"
#include "runtime/device/cpu/Ceilings.h"
#include "tools/ds-opt/Json.h"

#include "tools/ds-opt/Message.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <chrono>
#include <cmath>

namespace deepstride {

namespace {
/// Operations per second of one instruction, over that of f32 multiply-adds; nothing where unknown.
struct Rates {
  std::optional<double> bfloatDot, byteDot, bfloatTiles, byteTiles;
};
} // namespace

/// The best of some runs of a few milliseconds: what disturbs a run makes it slower.
static double operationsPerSecond(::ds::PeakKernel kernel) {
  using Clock = std::chrono::steady_clock;
  double best = 0;
  for (int run = 0; run < 7; ++run) {
    auto start = Clock::now();
    double operations = kernel(200000);
    best = std::max(best, operations / std::chrono::duration<double>(Clock::now() - start).count());
  }
  return best;
}

static Rates measureRates() {
  ::ds::PeakKernels kernels = ::ds::peakKernelsOfHost();
  double f32 = operationsPerSecond(kernels.f32);
  auto rate = [&](::ds::PeakKernel kernel) {
    return kernel && f32 > 0 ? std::optional<double>(operationsPerSecond(kernel) / f32) : std::nullopt;
  };
  return {rate(kernels.bf16), rate(kernels.int8), rate(kernels.amxBf16), rate(kernels.amxInt8)};
}

static Rates readRates(llvm::StringRef path, std::string &error) {
  auto fail = [&](const llvm::Twine &what) {
    error = ("--ceilings=" + path + ": " + what).str();
    return Rates();
  };
  constexpr size_t mostBytes = size_t(1) << 24;
  std::string text;
  try {
    text = ::ds::readTextFile(path.str(), mostBytes);
  } catch (const ::ds::Error &wrong) { // it names the path
    error = std::string("--ceilings=") + wrong.what();
    return Rates();
  }
  auto json = parseJson(text);
  if (!json)
    return fail("no JSON: " + llvm::toString(json.takeError()));
  const llvm::json::Object *root = json->getAsObject(), *ceilings = root ? root->getObject("ceilings") : nullptr;
  if (!ceilings)
    return fail("expected an object 'ceilings', as ds-run bench --json writes it");
  auto f32 = ceilings->getNumber("f32_gflops");
  if (!f32 || !(*f32 > 0))
    return fail("expected a positive number 'f32_gflops' in 'ceilings'");
  Rates rates;
  for (auto [key, rate] :
       {std::pair("bf16_gflops", &rates.bfloatDot), std::pair("int8_gops", &rates.byteDot),
        std::pair("amx_bf16_gflops", &rates.bfloatTiles), std::pair("amx_int8_gops", &rates.byteTiles)}) {
    const llvm::json::Value *value = ceilings->get(key);
    if (!value || value->getAsNull())
      continue;
    auto number = value->getAsNumber();
    if (!number || !(*number > 0))
      return fail(llvm::Twine("expected a positive number '") + key + "' in 'ceilings'");
    *rate = *number / *f32;
  }
  return rates;
}

std::string machineOf(const CpuTarget &target, bool isThisMachine, bool asksForRates, llvm::StringRef ceilings,
                      std::string &error) {
  Rates rates;
  if (!ceilings.empty())
    rates = readRates(ceilings, error);
  else if (isThisMachine && asksForRates)
    rates = measureRates();
  std::string text = std::to_string(target.vectorBits);
  // To the next half power of two: what a noisy moment changes decides nothing, and is no other key of the cache.
  auto add = [&](bool has, const char *name, std::optional<double> rate) {
    if (has)
      text += std::string(",") + name +
              (rate ? llvm::formatv("={0:f2}", std::exp2(std::round(2 * std::log2(*rate)) / 2)).str() : "");
  };
  add(target.byteDot, "byte_dot", rates.byteDot);
  add(target.bfloatDot, "bfloat_dot", rates.bfloatDot);
  add(target.byteTiles, "byte_tiles", rates.byteTiles);
  add(target.bfloatTiles, "bfloat_tiles", rates.bfloatTiles);
  return text;
}

std::optional<std::vector<CpuTarget>> resolveTargets(const DriverOptions &options) {
  std::vector<CpuTarget> targets;
  std::vector<std::string> names = options.cpus;
  if (names.empty())
    names.push_back("host");
  for (const std::string &name : names) {
    std::string error;
    auto target = resolveCpuTarget(name, error);
    if (!target) {
      printMessage("ds-opt: --mcpu=" + name + ": " + error);
      return std::nullopt;
    }
    for (const CpuTarget &other : targets)
      if (other.name == target->name) {
        printMessage("ds-opt: --mcpu=" + llvm::join(names, ",") + ": '" + target->name +
                     "' is named twice, expected each processor once");
        return std::nullopt;
      }
    // Which instruction multiplies bf16 fastest differs by machine; other products have one that always does.
    bool isThisMachine = name == "host" || name == "native";
    target->machine =
        machineOf(*target, isThisMachine, options.rounds == "bf16" && target->bfloatDot, options.ceilings, error);
    if (!error.empty()) {
      printMessage("ds-opt: " + error);
      return std::nullopt;
    }
    targets.push_back(*target);
  }
  return targets;
}

} // namespace deepstride
