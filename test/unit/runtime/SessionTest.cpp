#include "test/unit/runtime/PackageBuilder.h"

#include "runtime/core/Session.h"
#include "runtime/io/Npz.h"

#include <cstring>
#include <gtest/gtest.h>
#include <numeric>

using namespace ds;
using namespace ds::test;

namespace {

Tensor floats(Shape shape, const std::vector<float> &values) {
  return tensor(ElementType::F32, std::move(shape), values);
}

std::vector<float> valuesOf(const Tensor &tensor) {
  const float *data = reinterpret_cast<const float *>(tensor.data());
  return std::vector<float>(data, data + tensor.count());
}

// Lets a call's list of inputs hold temporaries.
struct Argument {
  Argument(const Tensor &tensor) : view(tensor.view()) {}
  TensorView view;
};

class SessionTest : public ::testing::Test {
protected:
  SessionTest() : package(Package::load(writePackage(folder.path()))) {}

  std::unique_ptr<Session> open(unsigned threads = 2) {
    SessionOptions options;
    options.threads = threads;
    return std::make_unique<Session>(package, options);
  }

  std::vector<Tensor> run(Session &session, const char *entry, const std::vector<Argument> &inputs,
                          const Pins &pins = {}) {
    std::vector<TensorView> views;
    for (const Argument &input : inputs)
      views.push_back(input.view);
    std::vector<Tensor> outputs;
    session.run(package->entryIndex(entry), views, pins, outputs);
    return outputs;
  }

  std::string error(const char *entry, const std::vector<Argument> &inputs, const Pins &pins = {}) {
    auto session = open();
    return errorOf([&] { run(*session, entry, inputs, pins); });
  }

  TemporaryFolder folder;
  std::shared_ptr<const Package> package;
};

TEST_F(SessionTest, RunsLaunchesThroughWorkspaceAndScratch) {
  for (unsigned threads : {1u, 2u, 3u}) {
    auto session = open(threads);
    auto outputs = run(*session, "main", {floats({2, 4}, {1, 1, 1, 1, 2, 2, 2, 2})});
    ASSERT_EQ(outputs.size(), 1u);
    EXPECT_EQ(outputs[0].getShape(), (Shape{2, 4}));
    EXPECT_EQ(valuesOf(outputs[0]), (std::vector<float>{2, 3, 4, 5, 4, 6, 8, 10}));
  }
}

TEST_F(SessionTest, GivesTheSameBitsForEveryNumberOfThreads) {
  std::vector<float> values(400);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = 0.37f * static_cast<float>(i) - 3;
  auto one = open(1), three = open(3);
  Tensor input = floats({100, 4}, values);
  EXPECT_EQ(valuesOf(run(*one, "main", {input})[0]), valuesOf(run(*three, "main", {input})[0]));
}

TEST_F(SessionTest, TakesManyShapesInTurn) {
  auto session = open();
  for (int round = 0; round < 2; ++round)
    for (int64_t rows = 0; rows < 40; ++rows) {
      Tensor input = floats({rows, 4}, std::vector<float>(static_cast<size_t>(4 * rows), 1));
      auto outputs = run(*session, "main", {input});
      ASSERT_EQ(outputs[0].getShape(), (Shape{rows, 4}));
      if (rows) {
        ASSERT_EQ(valuesOf(outputs[0])[static_cast<size_t>(4 * rows) - 1], 5);
      }
    }
}

TEST_F(SessionTest, SharesOneConstantBetweenEntries) {
  auto session = open();
  EXPECT_EQ(valuesOf(run(*session, "scale", {floats({1, 4}, {1, 1, 1, 1})})[0]), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(valuesOf(run(*session, "main", {floats({1, 4}, {1, 1, 1, 1})})[0]), (std::vector<float>{2, 3, 4, 5}));
}

TEST_F(SessionTest, ReadsElementSymbolsBeforeTheCall) {
  Tensor shape = tensor<int64_t>(ElementType::I64, {2}, {2, 3});
  auto session = open();
  auto outputs = run(*session, "reshape", {floats({6}, {1, 2, 3, 4, 5, 6}), shape});
  EXPECT_EQ(outputs[0].getShape(), (Shape{2, 3}));
  Tensor wrong = tensor<int64_t>(ElementType::I64, {2}, {4, 2});
  EXPECT_EQ(error("reshape", {floats({6}, {1, 2, 3, 4, 5, 6}), wrong}),
            "entry 'reshape': /Reshape: shape[0]*shape[1] == n does not hold, found 8 and 6");
  Tensor negative = tensor<int64_t>(ElementType::I64, {2}, {-2, -3});
  EXPECT_NE(error("reshape", {floats({6}, {1, 2, 3, 4, 5, 6}), negative}).find("shape[0] >= 0"), std::string::npos);
}

TEST_F(SessionTest, AllocatesWhatComputedSymbolsSize) {
  auto session = open();
  for (int round = 0; round < 3; ++round) {
    auto outputs = run(*session, "positive", {floats({5}, {1, -1, 2, 0, 3})});
    EXPECT_EQ(outputs[0].getShape(), (Shape{3}));
    EXPECT_EQ(valuesOf(outputs[0]), (std::vector<float>{1, 2, 3}));
    EXPECT_EQ(run(*session, "positive", {floats({2}, {-1, -1})})[0].getShape(), (Shape{0}));
  }
}

TEST_F(SessionTest, RefusesComputedSizesBeforeTheyAreDefined) {
  EXPECT_NE(error("forgetful", {floats({1}, {1})}).find("is used before its size is defined"), std::string::npos);
}

TEST_F(SessionTest, NamesKernelAndSiteOfErrors) {
  Tensor indices = tensor<int64_t>(ElementType::I64, {3}, {0, 1, 2});
  EXPECT_EQ(
      error("lookup", {floats({2}, {1, 2}), indices}),
      "entry 'lookup': kernel 'gather' at '/embeddings/Gather': index out of range, read input 'indices' with 0 to 2");
}

TEST_F(SessionTest, DiagnosesInputs) {
  EXPECT_EQ(error("main", {}), "entry 'main': wrong number of inputs, found 0, expected 1");
  EXPECT_EQ(error("main", {floats({4}, {1, 2, 3, 4})}),
            "entry 'main': input 'x': wrong rank, found [4], expected [rows, n]");
  Tensor integers = tensor<int32_t>(ElementType::I32, {1, 4}, {1, 2, 3, 4});
  EXPECT_EQ(error("main", {integers}), "entry 'main': input 'x': wrong type, found i32, expected f32");
  EXPECT_EQ(error("main", {floats({1, 3}, {1, 2, 3})}),
            "entry 'main': /layer/Mul: n == 4 does not hold, found 3 and 4");
  EXPECT_EQ(error("main", {floats({1, 4}, {1, 2, 3, 4})}, {{"rows", 2}}),
            "entry 'main': input 'x' dimension 0: 'rows' differs, found 1, expected 2 (from the pinned dimension)");
  EXPECT_EQ(error("main", {floats({1, 4}, {1, 2, 3, 4})}, {{"cols", 2}}),
            "entry 'main': no dimension 'cols', expected one of [rows, n]");
}

TEST_F(SessionTest, NamesTheDimensionThatNothingGives) {
  auto manifest = testManifest();
  auto &entry = manifest["variants"][0]["entries"][0];
  entry["symbols"].push_back({{"name", "past"}, {"kind", "dim"}});
  TemporaryFolder other;
  Session session(Package::load(writePackage(other.path(), manifest)), {1, nullptr});
  Tensor input = floats({1, 4}, {1, 2, 3, 4});
  std::vector<Tensor> outputs;
  try {
    session.run(0, {input.view()}, {}, outputs);
    FAIL();
  } catch (const Error &error) {
    EXPECT_EQ(error.getCode(), ErrorCode::UnboundDimension);
    EXPECT_NE(std::string(error.what()).find("'past'"), std::string::npos);
  }
  EXPECT_EQ(errorOf([&] { session.run(0, {input.view()}, {{"past", 3}}, outputs); }), "");
}

TEST_F(SessionTest, ChecksShapesThatAreExpressions) {
  auto manifest = testManifest();
  manifest["variants"][0]["entries"][0]["inputs"][0]["shape"] = {"rows", "n + 1 - 1"};
  TemporaryFolder other;
  Session session(Package::load(writePackage(other.path(), manifest)), {1, nullptr});
  Tensor input = floats({1, 4}, {1, 2, 3, 4});
  std::vector<Tensor> outputs;
  EXPECT_EQ(errorOf([&] { session.run(0, {input.view()}, {{"n", 4}}, outputs); }), "");
  EXPECT_NE(errorOf([&] {
              session.run(0, {input.view()}, {{"n", 5}}, outputs);
            }).find("input 'x' dimension 1: wrong size, found 4, expected 5 (n + 1 - 1)"),
            std::string::npos);
}

TEST_F(SessionTest, CopiesInputsThatAreNotAligned) {
  std::vector<float> raw(9, 1);
  auto session = open();
  std::vector<Tensor> outputs;
  session->run(0, {TensorView{ElementType::F32, {2, 4}, raw.data() + 1}}, {}, outputs);
  EXPECT_EQ(valuesOf(outputs[0])[7], 5);
}

TEST_F(SessionTest, UsesTheMemoryOfEarlierOutputsAgain) {
  auto session = open();
  Tensor input = floats({2, 4}, std::vector<float>(8, 1));
  std::vector<Tensor> outputs;
  session->run(0, {input.view()}, {}, outputs);
  const uint8_t *memory = outputs[0].data();
  session->run(0, {input.view()}, {}, outputs);
  EXPECT_EQ(outputs[0].data(), memory);
}

TEST_F(SessionTest, KeepsStatesAcrossCalls) {
  auto session = open(), other = open();
  Tensor ones = floats({4}, {1, 1, 1, 1});
  EXPECT_EQ(valuesOf(run(*session, "count", {ones})[0]), (std::vector<float>{11, 21, 31, 41}));
  EXPECT_EQ(valuesOf(run(*session, "count", {ones})[0]), (std::vector<float>{12, 22, 32, 42}));
  EXPECT_EQ(valuesOf(run(*other, "count", {ones})[0]), (std::vector<float>{11, 21, 31, 41}));
  session->withStates([](StateStore &states) { states.reset(); });
  EXPECT_EQ(valuesOf(run(*session, "count", {ones})[0]), (std::vector<float>{11, 21, 31, 41}));
}

class CountingObserver : public LaunchObserver {
public:
  std::vector<std::string> sites;
  void afterLaunch(const Event &event) override {
    EXPECT_LE(event.startNanoseconds, event.endNanoseconds);
    sites.push_back(event.entry.launches[event.site].site);
  }
};

TEST_F(SessionTest, ShowsEveryLaunchToAnObserver) {
  auto session = open();
  CountingObserver observer;
  Tensor input = floats({1, 4}, {1, 1, 1, 1});
  std::vector<Tensor> outputs;
  session->run(0, {input.view()}, {}, outputs, &observer);
  EXPECT_EQ(observer.sites, (std::vector<std::string>{"/layer/Mul", "/layer/Add"}));
}

// 'main' multiplies and adds, 'scale' only multiplies: which one ran shows. Neither is for rows of 0 or more than 4.
class GuardedTest : public SessionTest {
protected:
  GuardedTest() {
    manifest["format"] = 2;
    auto &entries = manifest["variants"][0]["entries"];
    guard(entries[0], {{"eq(rows, 1)", true}});
    guard(entries[1], {{"eq(rows, 1)", false}, {"lt(floordiv(4, rows), 1)", false}});
    reload();
  }

  void guard(nlohmann::json &entry, const std::vector<std::pair<std::string, bool>> &guards) {
    entry["group"] = "main";
    entry["guards"] = nlohmann::json::array();
    for (const auto &[condition, holds] : guards)
      entry["guards"].push_back({{"condition", condition}, {"holds", holds}});
  }

  void reload() {
    package.reset(); // its files are written over
    package = Package::load(writePackage(folder.path(), manifest, "guarded"));
  }

  Tensor rows(int64_t count) { return floats({count, 4}, std::vector<float>(static_cast<size_t>(4 * count), 1)); }

  nlohmann::json manifest = testManifest();
};

TEST_F(GuardedTest, RunsTheEntryWhoseGuardsHold) {
  auto session = open();
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(valuesOf(run(*session, "main", {rows(1)})[0]), (std::vector<float>{2, 3, 4, 5}));
    EXPECT_EQ(valuesOf(run(*session, "main", {rows(2)})[0]), (std::vector<float>{1, 2, 3, 4, 1, 2, 3, 4}));
  }
  EXPECT_EQ(package->entryIndex(""), 0u);
  Tensor one = rows(1), two = rows(2);
  EXPECT_EQ(session->choose(0, {one.view()}, {}), 0u);
  EXPECT_EQ(session->choose(0, {two.view()}, {{"rows", 2}}), 1u);
}

TEST_F(GuardedTest, SaysWhichValuesMeetNoGuard) {
  EXPECT_EQ(error("main", {rows(5)}),
            "entry 'main': compiled for other sizes and inputs: found rows = 5, expected eq(rows, 1), or not eq(rows, "
            "1) and not lt(floordiv(4, rows), 1)");
  // A guard that has no value is a fault of its own; the guard before it must have held.
  EXPECT_NE(error("main", {rows(0)}).find("guards of 'scale': "), std::string::npos);
  EXPECT_NE(error("main", {rows(0)}).find("divides by zero"), std::string::npos);
  // What is wrong with the inputs is said as ever.
  EXPECT_EQ(error("main", {floats({4}, {1, 2, 3, 4})}),
            "entry 'main': input 'x': wrong rank, found [4], expected [rows, n]");
  EXPECT_EQ(error("main", {rows(1)}, {{"cols", 1}}), "entry 'main': no dimension 'cols', expected one of [rows, n]");
}

TEST_F(GuardedTest, RunsOneByItsOwnNameOnlyWhereItsGuardsHold) {
  auto session = open();
  EXPECT_EQ(valuesOf(run(*session, "scale", {rows(2)})[0])[3], 4);
  EXPECT_EQ(error("scale", {rows(1)}), "entry 'scale': compiled for other sizes and inputs: found rows = 1, expected "
                                       "not eq(rows, 1) and not lt(floordiv(4, rows), 1)");
  EXPECT_NE(error("missing", {}).find("expected one of main, reshape"), std::string::npos);
}

TEST_F(GuardedTest, ChecksAnEntryThatIsAloneInItsGroup) {
  auto &entries = manifest["variants"][0]["entries"];
  entries.erase(1);
  reload();
  EXPECT_NE(error("main", {rows(2)}).find("found rows = 2, expected eq(rows, 1)"), std::string::npos);
  EXPECT_EQ(valuesOf(run(*open(), "main", {rows(1)})[0]), (std::vector<float>{2, 3, 4, 5}));
}

TEST_F(GuardedTest, PassesOverPinsOfOtherEntries) {
  auto &entries = manifest["variants"][0]["entries"];
  entries[1]["symbols"].push_back({{"name", "past"}, {"kind", "dim"}});
  guard(entries[1], {{"eq(rows, 1)", false}, {"eq(past, 3)", true}});
  reload();
  auto session = open();
  EXPECT_EQ(valuesOf(run(*session, "main", {rows(1)}, {{"past", 3}})[0])[0], 2);
  EXPECT_EQ(valuesOf(run(*session, "main", {rows(2)}, {{"past", 3}})[0])[0], 1);
  EXPECT_NE(error("main", {rows(2)}).find("dimension 'past' has no value"), std::string::npos);
}

TEST_F(GuardedTest, ReadsElementsThatGuardsNeed) {
  auto &entries = manifest["variants"][0]["entries"];
  for (int i : {0, 1}) {
    entries[i]["inputs"].push_back({{"name", "mode"}, {"type", "i1"}, {"shape", nlohmann::json::array()}});
    entries[i]["symbols"].push_back({{"name", "mode[0]"}, {"kind", "element"}, {"input", 1}, {"index", 0}});
    guard(entries[i], {{"mode[0]", i == 0}});
  }
  reload();
  auto session = open();
  Tensor yes = tensor<uint8_t>(ElementType::I1, {}, {1}), no = tensor<uint8_t>(ElementType::I1, {}, {0});
  EXPECT_EQ(valuesOf(run(*session, "main", {rows(1), yes})[0])[0], 2);
  EXPECT_EQ(valuesOf(run(*session, "main", {rows(1), no})[0])[0], 1);
}

} // namespace
