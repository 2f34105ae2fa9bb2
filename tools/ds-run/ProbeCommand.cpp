// What this machine and the links between ranks can do, in about a second: what plans of time are made of.
#include "runtime/comm/Communicator.h"
#include "runtime/core/Error.h"
#include "runtime/device/cpu/Ceilings.h"
#include "tools/ds-run/Json.h"
#include "tools/ds-run/Options.h"
#include "tools/ds-run/training/RunRanks.h"

#include <algorithm>
#include <chrono>
#include <cstdio>

namespace ds {
namespace {

using Clock = std::chrono::steady_clock;

double secondsSince(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// The medians of a few rounds by so many threads.
Ceilings ceilingsOf(unsigned threads, int rounds) {
  ThreadPool pool(threads);
  CeilingMeter meter(pool, 4096);
  for (int round = 0; round < rounds; ++round)
    meter.measure();
  return meter.medians();
}

Json machineOf(unsigned threads) {
  Ceilings all = ceilingsOf(threads, 2), one = threads > 1 ? ceilingsOf(1, 1) : all;
  return {{"threads", threads},
          {"stream_gbps", all.streamGBps},
          {"f32_gflops", all.f32Gflops},
          {"thread_stream_gbps", one.streamGBps},
          {"thread_f32_gflops", one.f32Gflops}};
}

// All ranks send so many floats to every other at a time.
class Links {
public:
  explicit Links(const RunRanks &group) : group(group) {}

  Json measure() {
    const int calls = 50;
    double latency = slowest(calls, 1) / calls;
    // Large enough to take a tenth of a second where links allow it.
    int64_t floats = 1 << 12;
    double seconds = slowest(1, floats);
    for (constexpr double longEnough = 0.1; seconds < longEnough && floats < (int64_t(1) << 22);) {
      floats *= seconds < longEnough / 8 ? 8 : 2;
      seconds = slowest(1, floats);
    }
    double bytes = static_cast<double>(floats * (group.world() - 1)) * sizeof(float);
    return {{"latency_us", latency * 1e6}, {"rank_gbps", bytes / seconds * 1e-9}, {"bytes", bytes}};
  }

private:
  // The seconds of the slowest rank; alike on all ranks, so that they go on alike.
  double slowest(int calls, int64_t floats) {
    memory.assign(static_cast<size_t>(floats) * group.world(), 1.0f);
    CollectiveRequest request;
    request.op = CollectiveOp::AllGather;
    request.value = request.site = "probe";
    CollectivePart part;
    part.shard = floats;
    part.end = floats * group.world();
    part.whole = {{memory.data(), 0, part.end}};
    part.own = memory.data() + floats * group.ranks().rank();
    request.parts = {part};
    Communicator &communicator = *group.communicator();
    communicator.wait(communicator.start(request)); // together, and with memory that is there
    Clock::time_point start = Clock::now();
    for (int call = 0; call < calls; ++call)
      communicator.wait(communicator.start(request));
    std::vector<double> all = group.ranks().gatherValues<double>("probe", {secondsSince(start)});
    return *std::max_element(all.begin(), all.end());
  }

  const RunRanks &group;
  std::vector<float> memory;
};

void print(const Json &document) {
  for (const Json &rank : document["ranks"])
    std::printf("rank %u: %u threads, stream %.1f GB/s, f32 %.0f GFLOP/s; one thread %.1f GB/s, %.0f GFLOP/s\n",
                rank["rank"].get<unsigned>(), rank["threads"].get<unsigned>(), rank["stream_gbps"].get<double>(),
                rank["f32_gflops"].get<double>(), rank["thread_stream_gbps"].get<double>(),
                rank["thread_f32_gflops"].get<double>());
  if (const Json &links = document["links"]; !links.is_null())
    std::printf("links: %.1f us, %.3f GB/s out of each rank\n", links["latency_us"].get<double>(),
                links["rank_gbps"].get<double>());
}

} // namespace

int probeCommand(const Options &options) {
  RunRanks group = RunRanks::join();
  return group.run([&] {
    Json own = machineOf(options.threads ? options.threads : ThreadPool::defaultThreads());
    Json document = {{"ranks", Json::array()}, {"links", group.communicator() ? Links(group).measure() : Json()}};
    std::vector<std::string> all = group.ranks().gatherTexts("probe", own.dump());
    if (!group.isFirst())
      return 0;
    for (size_t rank = 0; rank < all.size(); ++rank) {
      Json item = {{"rank", rank}};
      item.update(Json::parse(all[rank]));
      document["ranks"].push_back(std::move(item));
    }
    if (!options.asJson)
      print(document);
    else
      writeText(options.json.empty() ? "-" : options.json, document.dump(1) + "\n");
    return 0;
  });
}

} // namespace ds
