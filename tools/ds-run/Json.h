// The words in which bench and profile write JSON: the same for the same things.
#ifndef DEEPSTRIDE_TOOLS_DS_RUN_JSON_H
#define DEEPSTRIDE_TOOLS_DS_RUN_JSON_H

#include "tools/ds-run/Measure.h"

#include <nlohmann/json.hpp>

namespace ds {

using Json = nlohmann::ordered_json;

inline Json orNull(const std::optional<double> &value) { return value ? Json(*value) : Json(nullptr); }

inline Json ceilingsAsJson(const Ceilings &ceilings) {
  return {{"stream_gbps", ceilings.streamGBps},
          {"working_set_gbps", ceilings.workingSetGBps},
          {"cache_gbps", ceilings.cacheGBps},
          {"f32_gflops", ceilings.f32Gflops},
          {"bf16_gflops", orNull(ceilings.bf16Gflops)},
          {"int8_gops", orNull(ceilings.int8Gops)},
          {"int8_pairs_gops", orNull(ceilings.int8PairsGops)},
          {"int16_gops", orNull(ceilings.int16Gops)},
          {"amx_bf16_gflops", orNull(ceilings.amxBf16Gflops)},
          {"amx_int8_gops", orNull(ceilings.amxInt8Gops)}};
}

inline Json shareAsJson(const Share &share) {
  return {{"kernel", share.kernel},
          {"site", share.site},
          {"arithmetic", share.arithmetic},
          {"calls", share.calls},
          {"ms", share.ms},
          {"flops", share.flops},
          {"memory_bytes", share.memoryBytes},
          {"workspace_bytes", share.workspaceBytes},
          {"roofline_ms", share.rooflineMs}};
}

} // namespace ds
#endif
