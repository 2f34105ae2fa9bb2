#include "tools/ds-run/training/Counters.h"

#include "runtime/core/MappedFile.h"

#include <nlohmann/json.hpp>
#include <set>

namespace ds {

using Json = nlohmann::ordered_json;

static Json ofRank(Trainer &trainer, const RunRanks &group, uint64_t peakBytes) {
  HeldBytes held = trainer.session().withStates([](StateStore &states) { return states.heldBytes(); });
  PlacedBytes placed = trainer.session().withStates([](StateStore &states) { return states.placedBytes(); });
  std::set<std::string> named;
  for (const EntryInfo &entry : trainer.package().variant().entries)
    for (const CollectiveInfo &collective : entry.collectives)
      named.insert(collective.site);
  Json sites = Json::array(), own = Json::array();
  if (group.communicator())
    for (const CollectiveCounters &counters : group.communicator()->counters())
      (named.count(counters.site) ? sites : own)
          .push_back({{"site", counters.site},
                      {"op", counters.op},
                      {"calls", counters.calls},
                      {"elements", counters.elements},
                      {"sent", counters.sentBytes},
                      {"received", counters.receivedBytes},
                      {"wait_ns", counters.waitNanoseconds}});
  return {{"rank", group.ranks().rank()},
          {"bytes",
           {{"parameters", held.parameters},
            {"gradients", held.gradients},
            {"optimizer", held.optimizer},
            {"residuals", held.residuals},
            {"others", held.others},
            {"peak", peakBytes}}},
          {"places", {{"device", placed.device}, {"host", placed.host}, {"file", placed.file}}},
          {"files",
           {{"parameters", placed.fileParameters},
            {"optimizer", placed.fileOptimizer},
            {"read", placed.read},
            {"written", placed.written},
            {"resident", placed.resident},
            {"resident_bytes", placed.residentBytes}}},
          {"sites", std::move(sites)},
          {"own", std::move(own)}};
}

void writeCounters(const std::string &path, Trainer &trainer, const RunRanks &group, int64_t steps,
                   uint64_t peakBytes) {
  std::vector<std::string> all = group.ranks().gatherTexts("counters", ofRank(trainer, group, peakBytes).dump());
  if (!group.isFirst())
    return;
  Json ranks = Json::array();
  for (const std::string &text : all)
    ranks.push_back(Json::parse(text));
  Json document = {{"mesh", {{"data", group.world()}}}, {"steps", steps}, {"ranks", std::move(ranks)}};
  AtomicFile file(path);
  std::string text = document.dump(1) + "\n";
  file.write(text.data(), text.size());
  file.commit();
}

} // namespace ds
