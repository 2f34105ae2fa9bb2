#include "tools/ds-run/profile/ModuleReport.h"

#include <gtest/gtest.h>
#include <numeric>

namespace ds {
namespace {

NodeWork workOf(const std::string &node, WorkRole role = WorkRole::Forward, int64_t macs = 0) {
  NodeWork work;
  work.node = node;
  work.op = "linear";
  work.role = role;
  work.macs = SizeExpr::constant(macs);
  work.flops = SizeExpr::constant(2 * macs);
  work.bytes = SizeExpr::constant(0);
  return work;
}

EntryInfo entryOf(const std::vector<NodeWork> &work) {
  EntryInfo entry;
  for (const NodeWork &part : work) {
    entry.launches.emplace_back();
    entry.launches.back().arithmetic = "f32";
    entry.launches.back().work = {part};
  }
  return entry;
}

Ceilings ceilingsOf(double gflops) {
  Ceilings ceilings;
  ceilings.f32Gflops = gflops;
  ceilings.workingSetGBps = ceilings.cacheGBps = ceilings.streamGBps = 10;
  return ceilings;
}

std::vector<LaunchWork> launchesOf(const EntryInfo &entry) {
  std::vector<LaunchWork> launches;
  for (uint32_t site = 0; site < entry.launches.size(); ++site) {
    launches.emplace_back();
    launches.back().site = site;
    launches.back().entry = &entry;
  }
  return launches;
}

TEST(ModuleNames, AreWhatStandsBeforeTheLastSlashOrDot) {
  EXPECT_EQ(scopeOf("/encoder/layer.0/query/MatMul"), (ModulePath{"encoder", "layer.0", "query"}));
  EXPECT_EQ(scopeOf("bert/layers/11/query/MatMul"), (ModulePath{"bert", "layers.11", "query"}));
  EXPECT_EQ(scopeOf("encoder.layer.0.query.weight"), (ModulePath{"encoder", "layer.0", "query"}));
  EXPECT_EQ(scopeOf("MatMul_12"), ModulePath());
  EXPECT_EQ(scopeOf("/MatMul"), ModulePath());
  EXPECT_EQ(scopeOf("////"), ModulePath());
  EXPECT_EQ(scopeOf(""), ModulePath());
  std::string deep;
  for (int i = 0; i < 1000; ++i)
    deep += "a/";
  EXPECT_EQ(scopeOf(deep + "b").size(), 32u);
}

TEST(ModuleNames, ClassesHaveNoIndex) {
  EXPECT_EQ(classOf("layer.0"), "layer");
  EXPECT_EQ(classOf("layer_11"), "layer");
  EXPECT_EQ(classOf("norm2"), "norm2");
  EXPECT_EQ(classOf("7"), "7");
  EXPECT_EQ(classOf(".7"), ".7");
}

TEST(ModuleNames, NodesWithoutOneAreFoundByTheirParameters) {
  Manifest manifest;
  manifest.parameters = {{"layer.0.query.weight", "/MatMul_1", 16},
                         {"layer.0.out.weight", "/MatMul_3", 16},
                         {"layer.1.query.weight", "/MatMul_5", 16},
                         {"onnx::MatMul_9", "/MatMul_7", 16},
                         {"table", "/Gather", 8}};
  EntryInfo entry = entryOf({workOf("/Gather"), workOf("/MatMul_1"), workOf("/Softmax_2"), workOf("/MatMul_3"),
                             workOf("/Add_4"), workOf("/MatMul_5"), workOf("/MatMul_7")});
  ModuleNames names(manifest, entry);
  EXPECT_FALSE(names.areOfNodes());
  EXPECT_EQ(names.pathOf(workOf("/Gather")), ModulePath{"table"});
  EXPECT_EQ(names.pathOf(workOf("/MatMul_1")), (ModulePath{"layer.0", "query"}));
  EXPECT_EQ(names.pathOf(workOf("/Softmax_2")), ModulePath{"layer.0"}); // what query and out have in common
  EXPECT_EQ(names.pathOf(workOf("/Add_4")), ModulePath{"linear"});      // nothing in common: by operator
  EXPECT_EQ(names.pathOf(workOf("/MatMul_7")), ModulePath{"linear"});   // a name that is made up says nothing
  EXPECT_EQ(names.pathOf(workOf("/Softmax_2", WorkRole::Backward)), ModulePath{"layer.0"});
  NodeWork update = workOf("", WorkRole::Update), loss = workOf("");
  update.parameter = "layer.1.query.weight";
  loss.part = "loss";
  EXPECT_EQ(names.pathOf(update), (ModulePath{"layer.1", "query"}));
  EXPECT_EQ(names.pathOf(loss), ModulePath{"(loss)"});
}

TEST(ModuleNames, UpdatesAreInTheModuleOfTheNodeThatReads) {
  Manifest manifest;
  manifest.parameters = {{"w", "/encoder/query/MatMul", 16}};
  EntryInfo entry = entryOf({workOf("/encoder/query/MatMul")});
  ModuleNames names(manifest, entry);
  NodeWork update = workOf("", WorkRole::Update);
  update.parameter = "w";
  EXPECT_TRUE(names.areOfNodes());
  EXPECT_EQ(names.pathOf(update), (ModulePath{"encoder", "query"}));
  update.parameter = "other.weight"; // that the package does not list
  EXPECT_EQ(names.pathOf(update), ModulePath{"other"});
}

TEST(ShareTime, GivesEachItsPeakAndSharesTheRest) {
  // Of 10 ms, operations take 4 + 1 at the peak; the other 5 are shared by rooflines of 4 and 4.
  std::vector<double> shares = shareTime(10, {{4, 1}, {1, 4}, {0, 0}});
  EXPECT_DOUBLE_EQ(shares[0], 4 + 5 * 0.5);
  EXPECT_DOUBLE_EQ(shares[1], 1 + 5 * 0.5);
  EXPECT_DOUBLE_EQ(shares[2], 0);
}

TEST(ShareTime, AddsUpWhateverIsAskedFor) {
  for (const std::vector<NodeDemand> &demands :
       {std::vector<NodeDemand>{{20, 1}, {5, 3}}, {{0, 0}, {0, 0}, {0, 0}}, {{0, 1}}, {{3, 0}, {0, 9}}}) {
    std::vector<double> shares = shareTime(10, demands);
    EXPECT_NEAR(std::accumulate(shares.begin(), shares.end(), 0.0), 10, 1e-12);
    for (double share : shares)
      EXPECT_GE(share, 0);
  }
}

TEST(ModuleProfile, AddsUpByModuleRoleAndOperator) {
  Manifest manifest;
  manifest.model = "m.onnx";
  manifest.parameters = {{"w", "/a/x/MatMul", 30}, {"v", "/a/MatMul", 5}, {"u", "/b/MatMul", 7}};
  EntryInfo entry =
      entryOf({workOf("/a/x/MatMul", WorkRole::Forward, 1000000), workOf("/a/MatMul", WorkRole::Forward, 2000000),
               workOf("/b/MatMul", WorkRole::Forward, 0), workOf("/a/x/MatMul", WorkRole::Backward, 2000000)});
  ModuleProfile profile = moduleProfile(manifest, entry, launchesOf(entry), {1, 2, 3, 4}, ceilingsOf(10));
  EXPECT_EQ(profile.depth, 2u);
  ASSERT_EQ(profile.root.children.size(), 2u);
  const Module &a = profile.root.children[0];
  EXPECT_EQ(a.name, "a");
  EXPECT_EQ(a.self.parameters, 5);
  EXPECT_EQ(a.total.parameters, 35);
  EXPECT_EQ(profile.root.total.parameters, 42);
  EXPECT_EQ(a.total.macsOf(WorkRole::Forward), 3000000);
  EXPECT_EQ(a.total.macsOf(WorkRole::Backward), 2000000);
  EXPECT_EQ(a.total.allMs(), 7);
  EXPECT_EQ(profile.root.total.allMs(), 10);
  EXPECT_DOUBLE_EQ(a.total.rate(), 1e7 / 7e-3);
  EXPECT_DOUBLE_EQ(a.total.ofPeak(), 1e7 / 7e-3 / 10e9);
  ASSERT_EQ(profile.operators.size(), 1u);
  EXPECT_EQ(profile.operators[0].nodes, 3u);
  EXPECT_EQ(profile.operators[0].figures.allMs(), 10);
  std::vector<ModuleClass> classes = largestOf(classesAt(profile.root, 1), &ModuleClass::ms, 1);
  ASSERT_EQ(classes.size(), 1u);
  EXPECT_EQ(classes[0].name, "a");
}

TEST(ModuleProfile, RatesOfWhatMasksHideStayBelowThePeak) {
  Manifest manifest;
  NodeWork attention = workOf("/a/Attention", WorkRole::Forward, 100000000);
  attention.mayBeLess = true;
  EntryInfo entry = entryOf({attention});
  ModuleProfile profile = moduleProfile(manifest, entry, launchesOf(entry), {1}, ceilingsOf(10));
  EXPECT_DOUBLE_EQ(profile.root.total.ofPeak(), 1);
  EXPECT_EQ(profile.root.total.allMacs(), 100000000);
}

TEST(ModuleProfile, PackagesWithoutWorkHaveKernels) {
  Manifest manifest;
  EntryInfo entry = entryOf({workOf("")});
  entry.launches[0].work.clear();
  entry.launches[0].site = "/a/MatMul";
  entry.launches[0].kernel = "matmul_0";
  entry.launches[0].flops = SizeExpr::constant(12);
  ModuleProfile profile = moduleProfile(manifest, entry, launchesOf(entry), {1}, ceilingsOf(10));
  ASSERT_EQ(profile.root.children.size(), 1u);
  EXPECT_EQ(profile.root.children[0].name, "a");
  EXPECT_EQ(profile.root.total.allFlops(), 12);
}

TEST(ModuleReport, UnitsAreThoseOfReaders) {
  EXPECT_EQ(countText(0), "0");
  EXPECT_EQ(countText(999), "999");
  EXPECT_EQ(countText(1000), "1.00 K");
  EXPECT_EQ(countText(2.345e6), "2.35 M");
  EXPECT_EQ(countText(11.2e9), "11.20 G");
  EXPECT_EQ(timeText(2.5), "2.50 ms");
  EXPECT_EQ(timeText(1250), "1.25 s");
  EXPECT_EQ(timeText(0.0125), "12.50 us");
  EXPECT_EQ(rateText(3.21e12), "3.21 TFLOPS");
  EXPECT_EQ(rateText(3.21e9), "3.21 GFLOPS");
  EXPECT_EQ(rateText(5), "5.00 FLOPS");
}

} // namespace
} // namespace ds
