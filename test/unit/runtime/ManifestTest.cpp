#include "test/unit/runtime/PackageBuilder.h"

#include "runtime/core/Manifest.h"

#include <gtest/gtest.h>

using namespace ds;
using namespace ds::test;
using Json = nlohmann::json;

namespace {

std::string errorWith(const std::string &pointer, const Json &value) {
  Json manifest = testManifest();
  manifest[Json::json_pointer(pointer)] = value;
  return errorOf([&] { readManifest(manifest.dump()); });
}

std::string errorWithout(const std::string &pointer) {
  Json manifest = testManifest();
  Json::json_pointer path(pointer);
  manifest[path.parent_pointer()].erase(path.back());
  return errorOf([&] { readManifest(manifest.dump()); });
}

TEST(Manifest, ReadsWhatTheFormatSays) {
  Manifest manifest = readManifest(testManifest().dump());
  ASSERT_EQ(manifest.variants.size(), 1u);
  const VariantInfo &variant = manifest.variants[0];
  EXPECT_EQ(variant.code, "code-x86-64.so");
  EXPECT_EQ(variant.constants[1].offset, 64u);
  const EntryInfo &entry = variant.entries[0];
  EXPECT_EQ(entry.name, "main");
  EXPECT_EQ(entry.sizes[3].text(), "4*rows*n");
  EXPECT_EQ(entry.buffers[2].role, BufferRole::Workspace);
  EXPECT_EQ(entry.launches[0].results[0].value, "hidden");
  EXPECT_EQ(manifest.config[0].origin, "default");
}

TEST(Manifest, AStateThatLiesInAUnitDoesSoInAllEntries) {
  Json manifest = trainingManifest();
  Json &variant = manifest["variants"][0];
  Json tensor = {{"name", "w"}, {"offset", 0}, {"shape", {4}}};
  variant["units"] = {{{"name", "u"}, {"block", 64}, {"elements", 64}, {"tensors", Json::array({tensor})}}};
  auto statesOf = [&] {
    std::vector<StateInfo> found;
    Manifest read = readManifest(manifest.dump());
    for (const EntryInfo &entry : read.variants[0].entries)
      for (const StateInfo &state : entry.states)
        if (state.name == "w")
          found.push_back(state);
    return found;
  };
  for (const StateInfo &state : statesOf())
    EXPECT_EQ(state.part, StatePart::Own);
  Json &last = variant["entries"].back()["states"][0];
  ASSERT_EQ(last["name"], "w");
  last.update({{"part", "tensor"}, {"unit", 0}, {"suffix", ""}});
  std::vector<StateInfo> states = statesOf();
  ASSERT_GT(states.size(), 1u);
  for (const StateInfo &state : states)
    EXPECT_EQ(state.part, StatePart::Tensor);
  variant["entries"][0]["states"][0]["shape"] = {"2"}; // another one: no part of these four elements
  variant["entries"][0]["states"][0].erase("initial");
  EXPECT_EQ(statesOf()[0].part, StatePart::Own);
}

// What is read of a unit's parameters is of one type, and masters are parts in f32.
TEST(Manifest, ChecksMastersOfRoundedUnits) {
  Json manifest = trainingManifest();
  Json &variant = manifest["variants"][0];
  Json tensor = {{"name", "w"}, {"offset", 0}, {"shape", {4}}};
  variant["units"] = {
      {{"name", "u"}, {"block", 64}, {"elements", 64}, {"rounded", "bf16"}, {"tensors", Json::array({tensor})}}};
  Json master = {{"name", "zero/u/master"}, {"type", "f32"},      {"shape", {"64"}}, {"initial", nullptr}, {"unit", 0},
                 {"part", "shard"},         {"suffix", "/master"}};
  Json &states = variant["entries"].back()["states"];
  states = Json::array({master});
  variant["entries"].back()["buffers"] = Json::array();
  auto errorWithState = [&](const char *key, const Json &value) {
    Json changed = manifest;
    changed["variants"][0]["entries"].back()["states"][0][key] = value;
    return errorOf([&] { readManifest(changed.dump()); });
  };
  EXPECT_EQ(errorWithState("type", "f32").find("unit 'u' is rounded"), std::string::npos);
  EXPECT_NE(errorWithState("type", "bf16").find("found bf16, expected f32 as unit 'u' is rounded"), std::string::npos);
  EXPECT_NE(
      errorWithState("part", "view").find("found '/master', expected it of a part 'shard' of a unit with 'rounded'"),
      std::string::npos);
  EXPECT_NE(errorWithState("suffix", "").find("found f32, expected bf16 as unit 'u' is rounded"), std::string::npos);
  variant["units"][0].erase("rounded");
  EXPECT_NE(errorWithState("type", "f32").find("of a unit with 'rounded'"), std::string::npos);
  variant["units"][0]["rounded"] = "f64";
  EXPECT_NE(errorWithState("type", "f32").find("expected one of bf16, f16"), std::string::npos);
}

TEST(Manifest, IgnoresKeysItDoesNotKnow) {
  EXPECT_EQ(errorWith("/variants/0/entries/0/remark", "later"), "");
  EXPECT_EQ(errorWith("/report", Json::array({1, 2})), "");
}

TEST(Manifest, TrafficIsForEachOperand) {
  const std::string launch = "/variants/0/entries/0/launches/0";
  Json manifest = testManifest();
  Json &item = manifest[Json::json_pointer(launch)];
  size_t operands = item["operands"].size();
  Json reads = Json::array({"4*rows"});
  reads.insert(reads.end(), operands - 1, nullptr);
  item["reads"] = reads;
  item["results"][0]["writes"] = 8;
  LaunchInfo info = readManifest(manifest.dump()).variants[0].entries[0].launches[0];
  ASSERT_EQ(info.reads.size(), operands);
  EXPECT_EQ(info.reads[0]->text(), "4*rows");
  EXPECT_EQ(info.results[0].writes->evaluate({}), 8);
  EXPECT_NE(errorWith(launch + "/reads", Json::array()).find("launches[0].reads: found 0, expected one for each of"),
            std::string::npos);
  for (const Json &wrong : {Json("4*nothing"), Json("4*("), Json(-1), Json(1.5), Json::array()}) {
    reads[0] = wrong;
    EXPECT_NE(errorWith(launch + "/reads", reads).find("launches[0].reads[0]: "), std::string::npos) << wrong;
    EXPECT_NE(errorWith(launch + "/results/0/writes", wrong).find("results[0].writes: "), std::string::npos) << wrong;
  }
}

TEST(Manifest, RefusesOtherVersions) {
  EXPECT_EQ(errorWith("/format", 3), "manifest.json: format: unsupported version, found 3, expected 1 or 2");
  EXPECT_EQ(errorWith("/abi", 7), "manifest.json: abi: unsupported version, found 7, expected 2");
}

TEST(Manifest, NamesThePlaceOfWrongTypes) {
  EXPECT_EQ(errorWith("/variants", 3), "manifest.json: variants: found 3, expected a list");
  EXPECT_EQ(errorWith("/variants/0/entries/0/name", 3),
            "manifest.json: variants[0].entries[0].name: found 3, expected a string");
  EXPECT_EQ(
      errorWith("/variants/0/constants/0/offset", -64),
      "manifest.json: variants[0].constants[0].offset: out of range, found -64, expected 0 to 9223372036854775807");
  EXPECT_EQ(errorWith("/variants/0/constants/0/offset", 1.5),
            "manifest.json: variants[0].constants[0].offset: found 1.5, expected an integer");
  EXPECT_EQ(errorWithout("/variants/0/entries/0/sizes"), "manifest.json: variants[0].entries[0].sizes: missing");
  EXPECT_NE(errorWith("/variants/0/entries/0/inputs/0/type", "f8").find("unknown element type 'f8'"),
            std::string::npos);
}

TEST(Manifest, EveryKeyThatIsNeededIsDiagnosedWhenMissing) {
  for (const char *key : {"/format",
                          "/abi",
                          "/compiler",
                          "/model",
                          "/variants",
                          "/variants/0/mcpu",
                          "/variants/0/features",
                          "/variants/0/code",
                          "/variants/0/constants",
                          "/variants/0/entries",
                          "/variants/0/constants/0/name",
                          "/variants/0/constants/0/bytes",
                          "/variants/0/entries/0/symbols",
                          "/variants/0/entries/0/symbols/0/kind",
                          "/variants/0/entries/0/constraints/0/lhs",
                          "/variants/0/entries/0/inputs/0/shape",
                          "/variants/0/entries/0/buffers/0/role",
                          "/variants/0/entries/0/buffers/2/bytes",
                          "/variants/0/entries/0/buffers/2/first",
                          "/variants/0/entries/0/launches/0/kernel",
                          "/variants/0/entries/0/launches/0/results/0/buffer",
                          "/variants/0/entries/0/states",
                          "/variants/0/entries/0/collectives",
                          "/variants/0/entries/6/collectives/0/parts/0/shard"})
    EXPECT_NE(errorWithout(key).find("missing"), std::string::npos) << key;
}

TEST(Manifest, ChecksIndices) {
  const std::string entry = "/variants/0/entries/0";
  EXPECT_EQ(errorWith(entry + "/buffers/0/index", 2), "manifest.json: variants[0].entries[0].buffers[0].index: index "
                                                      "out of range, found 2, expected one of 2 constants");
  EXPECT_NE(errorWith(entry + "/buffers/1/index", 1).find("one of 1 inputs"), std::string::npos);
  EXPECT_NE(errorWith(entry + "/buffers/2/bytes", 5).find("one of 5 sizes"), std::string::npos);
  EXPECT_NE(errorWith(entry + "/buffers/2/last", 2).find("one of 2 launches"), std::string::npos);
  EXPECT_NE(errorWith(entry + "/buffers/2/first", 1).find(""), std::string::npos);
  EXPECT_NE(errorWith(entry + "/launches/0/results/0/buffer", 4).find("one of 4 buffers"), std::string::npos);
  EXPECT_NE(errorWith("/variants/0/entries/2/symbols/1/input", 2).find("one of 2 inputs"), std::string::npos);
  EXPECT_NE(errorWith("/variants/0/entries/2/symbols/1/input", 0).find("expected an integer type"), std::string::npos);
  EXPECT_NE(errorWith("/variants/0/entries/5/states/0/initial", 2).find("one of 2 constants"), std::string::npos);
}

TEST(Manifest, ChecksMeaning) {
  const std::string entry = "/variants/0/entries/0";
  EXPECT_NE(errorWith(entry + "/sizes/0", "m").find("unknown symbol 'm'"), std::string::npos);
  EXPECT_NE(errorWith(entry + "/symbols/1/name", "rows").find("defined twice"), std::string::npos);
  EXPECT_NE(errorWith(entry + "/buffers/3", {{"role", "input"}, {"index", 0}}).find("'y' has no buffer"),
            std::string::npos);
  EXPECT_NE(errorWith("/variants/0/entries/3/inputs/0/shape/0", "count").find("computed symbol"), std::string::npos);
  EXPECT_NE(errorWith("/variants/0/constants/0/offset", 32).find("multiple of 64"), std::string::npos);
  EXPECT_NE(errorWith("/variants/0/constants/0/bytes", 20).find("expected 16"), std::string::npos);
  EXPECT_NE(errorWith("/variants/0/code", "../evil.so").find("expected the name of a file"), std::string::npos);
  EXPECT_NE(errorWith("/variants/0/entries/1/name", "main").find("listed twice"), std::string::npos);
  EXPECT_NE(errorWith("/variants/0/entries/6/collectives/0/op", "all")
                .find("expected one of all_reduce, reduce_scatter, all_gather, all_to_all, broadcast, send_recv"),
            std::string::npos);
  EXPECT_NE(errorWith("/variants/0/entries/6/collectives/0/op", "all_gather").find("expected 'own' in each part"),
            std::string::npos);
  EXPECT_NE(errorWith("/variants/0/entries/6/collectives/0/condition", 2).find("one of 2 buffers"), std::string::npos);
  EXPECT_NE(errorWith("/variants/0/entries/6/collectives/0/parts/0/whole/0/buffer", 2).find("one of 2 buffers"),
            std::string::npos);
  EXPECT_NE(errorWith("/variants", Json::array()).find("at least one variant"), std::string::npos);
}

TEST(Manifest, ChecksCodecs) {
  auto errorOfCodec = [](const char *codec, const char *reduction, std::initializer_list<const char *> errors) {
    Json manifest = testManifest();
    Json &collective = manifest["variants"][0]["entries"][6]["collectives"][0];
    if (*codec)
      collective["codec"] = codec;
    collective["reduction"] = reduction;
    for (const char *error : errors)
      collective["parts"][0][error] = 1;
    return errorOf([&] { readManifest(manifest.dump()); });
  };
  EXPECT_EQ(errorOfCodec("one_bit", "mean", {"worker_error", "server_error"}), "");
  EXPECT_NE(errorOfCodec("two_bit", "mean", {}).find("expected one of one_bit"), std::string::npos);
  EXPECT_NE(errorOfCodec("one_bit", "sum", {"worker_error", "server_error"}).find("expected the mean of an all_reduce"),
            std::string::npos);
  EXPECT_NE(errorOfCodec("one_bit", "mean", {"worker_error"}).find("in each part with the codec one_bit"),
            std::string::npos);
  EXPECT_NE(errorOfCodec("", "mean", {"worker_error", "server_error"}).find("and in no other"), std::string::npos);
  EXPECT_NE(errorWith("/variants/0/entries/6/collectives/0/parts/0/worker_error", 2).find("one of 2 buffers"),
            std::string::npos);
}

TEST(Manifest, ChecksNarrowerTypesThatTravel) {
  auto errorOfWire = [](const Json &change) {
    Json manifest = testManifest();
    Json &collective = manifest["variants"][0]["entries"][6]["collectives"][0];
    collective.merge_patch(change);
    return errorOf([&] { readManifest(manifest.dump()); });
  };
  for (const char *wire : {"bf16", "f16"}) {
    EXPECT_EQ(errorOfWire({{"wire", wire}}), "");
    EXPECT_NE(errorOfWire({{"wire", wire}, {"type", "f16"}}).find("expected a narrower float than f16"),
              std::string::npos);
  }
  EXPECT_EQ(errorOfWire({{"wire", "f32"}, {"type", "f64"}}), "");
  for (const char *wire : {"f32", "f64", "i16", "i32"}) {
    std::string found = errorOfWire({{"wire", wire}});
    EXPECT_NE(found.find(std::string("expected a narrower float than f32, found ") + wire), std::string::npos) << found;
  }
  EXPECT_NE(errorOfWire({{"wire", "two"}}), "");
  Json part = testManifest()["variants"][0]["entries"][6]["collectives"][0]["parts"][0];
  part["own"] = 1;
  EXPECT_NE(errorOfWire({{"wire", "bf16"}, {"op", "all_gather"}, {"parts", Json::array({part})}})
                .find("expected none but of a reduction"),
            std::string::npos);
}

TEST(Manifest, ChecksTablesThatTravelByRows) {
  auto errorOfRows = [](const Json &change) {
    Json manifest = testManifest();
    Json &collective = manifest["variants"][0]["entries"][6]["collectives"][0];
    collective["codec"] = "sparse_rows";
    collective["parts"][0]["row_length"] = 2;
    collective.merge_patch(change);
    return errorOf([&] { readManifest(manifest.dump()); });
  };
  auto expectError = [&](const Json &change, const char *error) {
    std::string found = errorOfRows(change);
    EXPECT_NE(found.find(error), std::string::npos) << found;
  };
  EXPECT_EQ(errorOfRows({{"reduction", "sum"}}), "");
  EXPECT_EQ(errorOfRows({{"reduction", "mean"}}), "");
  expectError({{"reduction", "max"}},
              "expected the sum or mean of an all_reduce or a reduce_scatter, found all_reduce");
  expectError({{"codec", nullptr}}, "expected 'row_length' in the part with the codec sparse_rows, and in no other");
  Json parts = testManifest()["variants"][0]["entries"][6]["collectives"][0]["parts"];
  expectError({{"parts", parts}}, "expected 'row_length' in the part with the codec sparse_rows");
  for (auto [length, error] : {std::pair("0", "row_length"), std::pair("1.5", "expected an integer")}) {
    parts[0]["row_length"] = Json::parse(length);
    expectError({{"parts", parts}}, error);
  }
  parts[0]["row_length"] = 1;
  parts.push_back(parts[0]);
  expectError({{"parts", parts}}, "expected one tensor with the codec sparse_rows");
}

TEST(Manifest, ChecksWhatGoesOnAfterAnEntry) {
  // Of a gather between the buffers of the entry "merge": one is an input, the other one a state.
  auto errorOfGather = [](const char *op, const Json &isDeferred, int own, int whole) {
    Json manifest = testManifest();
    for (Json &entry : manifest["variants"][0]["entries"])
      if (entry["name"] == "merge") {
        Json &collective = entry["collectives"][0];
        collective["op"] = op;
        collective["deferred"] = isDeferred;
        collective["parts"][0]["whole"][0] = {{"buffer", whole}, {"offset", "0"}, {"count", "4"}};
        if (own >= 0)
          collective["parts"][0]["own"] = own;
      }
    return errorOf([&] { readManifest(manifest.dump()); });
  };
  EXPECT_EQ(errorOfGather("all_gather", true, 1, 1), "");
  EXPECT_EQ(errorOfGather("all_gather", false, 0, 1), "");
  for (auto [op, own, whole] : {std::tuple("all_gather", 0, 1), std::tuple("all_gather", 1, 0),
                                std::tuple("all_reduce", -1, 1), std::tuple("reduce_scatter", 1, 1)}) {
    std::string found = errorOfGather(op, true, own, whole);
    EXPECT_NE(found.find("expected an all_gather of states into states"), std::string::npos) << op << ": " << found;
  }
  EXPECT_NE(errorOfGather("all_gather", 1, 1, 1).find("deferred"), std::string::npos);
}

TEST(Manifest, ChecksNeighbours) {
  auto errorOfTurn = [](const Json &change) {
    Json manifest = testManifest();
    Json &collective = manifest["variants"][0]["entries"][6]["collectives"][0];
    collective["op"] = "send_recv";
    collective["by"] = -1;
    collective["parts"][0]["own"] = 1;
    collective.erase("reduction");
    collective.merge_patch(change);
    return errorOf([&] { readManifest(manifest.dump()); });
  };
  auto expectError = [&](const Json &change, const char *error) {
    std::string found = errorOfTurn(change);
    EXPECT_NE(found.find(error), std::string::npos) << found;
  };
  EXPECT_EQ(errorOfTurn({{"rotate", true}}), "");
  EXPECT_EQ(errorOfTurn({{"op", "all_to_all"}, {"by", nullptr}}), "");
  expectError({{"by", nullptr}}, "expected 'by' of send_recv, and of no other, found send_recv");
  expectError({{"op", "all_to_all"}}, "expected 'by' of send_recv, and of no other, found all_to_all");
  expectError({{"op", "all_to_all"}, {"by", nullptr}, {"rotate", true}}, "and of no other, found all_to_all");
  expectError({{"by", 0}}, "expected another rank, found 0");
  expectError({{"by", 4097}}, "expected -4096 to 4096");
  expectError({{"rotate", 1}}, "expected true or false");
  expectError({{"op", "broadcast"}, {"by", nullptr}}, "and in none of all_reduce and broadcast");
  expectError({{"wire", "bf16"}}, "wire: expected none but of a reduction");
}

TEST(Manifest, RefusesCollectivesThatWriteOverWhatOthersOwn) {
  for (const Json &role : {Json{{"role", "constant"}, {"index", 0}}, Json{{"role", "input"}, {"index", 0}}})
    for (bool isOwn : {false, true}) {
      Json manifest = testManifest();
      Json &entry = manifest["variants"][0]["entries"][6];
      Json &collective = entry["collectives"][0];
      const size_t added = entry["buffers"].size();
      entry["buffers"].push_back(role);
      if (isOwn) {
        collective.merge_patch({{"op", "all_to_all"}});
        collective["parts"][0]["own"] = added;
      } else {
        collective["parts"][0]["whole"][0]["buffer"] = added;
      }
      std::string found = errorOf([&] { readManifest(manifest.dump()); });
      EXPECT_NE(found.find("expected none of a constant or an input"), std::string::npos) << role << isOwn << found;
    }
}

TEST(Manifest, RefusesWhatIsNotJson) {
  std::string text = testManifest().dump();
  for (size_t length : {size_t(0), size_t(1), text.size() / 2, text.size() - 1})
    EXPECT_NE(errorOf([&] { readManifest(text.substr(0, length)); }).find("not valid JSON"), std::string::npos);
  EXPECT_NE(errorOf([] { readManifest("[1]"); }).find("expected an object"), std::string::npos);
  EXPECT_NE(errorOf([] { readManifest(std::string(100000, '[')); }), "");
}

// 'main' and 'scale', whose signatures are equal, as one entry for one row and for more.
Json guardedManifest() {
  Json manifest = testManifest();
  manifest["format"] = 2;
  Json &entries = manifest["variants"][0]["entries"];
  for (int i : {0, 1}) {
    entries[i]["group"] = "main";
    entries[i]["guards"] = Json::array({{{"condition", "eq(rows, 1)"}, {"holds", i == 0}}});
  }
  return manifest;
}

std::string guardedErrorWith(const std::string &pointer, const Json &value) {
  Json manifest = guardedManifest();
  manifest[Json::json_pointer(pointer)] = value;
  return errorOf([&] { readManifest(manifest.dump()); });
}

TEST(Manifest, GathersGuardedEntriesIntoGroups) {
  Manifest manifest = readManifest(guardedManifest().dump());
  const VariantInfo &variant = manifest.variants[0];
  ASSERT_EQ(variant.groups.size(), variant.entries.size() - 1);
  EXPECT_EQ(variant.groups[0].name, "main");
  EXPECT_EQ(variant.groups[0].entries, (std::vector<size_t>{0, 1}));
  EXPECT_EQ(variant.groups[1].name, "reshape");
  EXPECT_EQ(&variant.groupOf(1), &variant.groups[0]);
  EXPECT_EQ(variant.entries[1].guards[0].condition.text(), "eq(rows, 1)");
  EXPECT_FALSE(variant.entries[1].guards[0].holds);
  // Without guards, every entry is a group of its own.
  Manifest plain = readManifest(testManifest().dump());
  EXPECT_EQ(plain.variants[0].groups.size(), plain.variants[0].entries.size());
}

TEST(Manifest, ChecksGuards) {
  const std::string entry = "/variants/0/entries/1";
  EXPECT_EQ(guardedErrorWith(entry + "/guards/0/holds", 1),
            "manifest.json: variants[0].entries[1].guards[0].holds: found 1, expected true or false");
  EXPECT_EQ(guardedErrorWith(entry + "/guards", "eq(rows, 1)"),
            "manifest.json: variants[0].entries[1].guards: found \"eq(rows, 1)\", expected a list");
  EXPECT_NE(guardedErrorWith(entry + "/guards/0/condition", "eq(cols, 1)").find("unknown symbol 'cols'"),
            std::string::npos);
  EXPECT_NE(guardedErrorWith(entry + "/guards/0/condition", "eq(rows, ").find("guards[0].condition"),
            std::string::npos);
  EXPECT_NE(guardedErrorWith(entry + "/guards/0", Json::object()).find("missing"), std::string::npos);
  Json computed = guardedManifest();
  computed["variants"][0]["entries"][3]["guards"] = Json::array({{{"condition", "eq(count, 1)"}, {"holds", true}}});
  EXPECT_NE(errorOf([&] { readManifest(computed.dump()); }).find("uses a computed symbol"), std::string::npos);
}

TEST(Manifest, ChecksThatAGroupHasOneSignature) {
  const std::string entry = "/variants/0/entries/1";
  EXPECT_EQ(guardedErrorWith(entry + "/inputs/0/name", "z"),
            "manifest.json: variants[0].entries[1].inputs: 'z' differs "
            "from 'x' of entry 'main' of the same group");
  EXPECT_NE(guardedErrorWith(entry + "/inputs/0/type", "i64").find("'x' differs from 'x'"), std::string::npos);
  EXPECT_NE(guardedErrorWith(entry + "/inputs/0/shape", Json::array({"rows"})).find("'x' differs"), std::string::npos);
  EXPECT_NE(guardedErrorWith(entry + "/inputs/0/shape/1", "rows").find("'x' differs"), std::string::npos);
  EXPECT_NE(guardedErrorWith(entry + "/outputs/0/type", "i64").find("'y' differs from 'y'"), std::string::npos);
  EXPECT_NE(guardedErrorWith(entry + "/outputs/0/name", "z").find("'z' differs from 'y'"), std::string::npos);
  EXPECT_EQ(guardedErrorWith(entry + "/outputs/0/shape", Json::array({"rows"})), ""); // that may differ
  // Of other signatures: more inputs.
  EXPECT_NE(guardedErrorWith("/variants/0/entries/2/group", "main").find("found 2, expected 1 as in entry 'main'"),
            std::string::npos);
  // A name must mean one thing.
  EXPECT_NE(guardedErrorWith("/variants/0/entries/0/group", "scale").find("'main' is the name of a group"),
            std::string::npos);
}

} // namespace
