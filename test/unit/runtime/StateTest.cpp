// States across calls that fail, saving and restoring: a state is never half written without a word.
#include "test/unit/runtime/PackageBuilder.h"

#include "runtime/comm/threads/ThreadRanks.h"
#include "runtime/core/Session.h"
#include "runtime/io/Npz.h"

#include <cstring>
#include <filesystem>
#include <gtest/gtest.h>
#include <thread>

using namespace ds;
using namespace ds::test;
using namespace std::chrono_literals;

namespace {

Tensor floats(const std::vector<float> &values) {
  return tensor(ElementType::F32, {static_cast<int64_t>(values.size())}, values);
}

Tensor indices(const std::vector<int64_t> &values) {
  return tensor(ElementType::I64, {static_cast<int64_t>(values.size())}, values);
}

std::vector<float> valuesOf(const TensorView &view) {
  const float *data = static_cast<const float *>(view.data);
  return std::vector<float>(data, data + elementCount(view.shape));
}

using Values = std::vector<float>;

class StateTest : public ::testing::Test {
protected:
  StateTest() : package(Package::load(writePackage(folder.path()))), session(package, {2, nullptr}) {}

  // The first output, or what was thrown.
  std::string call(const char *entry, std::vector<Tensor> inputs = {}) {
    std::vector<TensorView> views;
    for (const Tensor &input : inputs)
      views.push_back(input.view());
    return errorOf([&] { session.run(package->entryIndex(entry), views, {}, outputs); });
  }
  std::string save() {
    return errorOf([&] { session.withStates([&](StateStore &states) { writeNpz(file, states.views()); }); });
  }
  std::string restore(const std::string &path) {
    return errorOf([&] {
      NpzReader source(path);
      session.withStates([&](StateStore &states) { states.restore(source); });
    });
  }
  std::string restore(const char *name, const Tensor &value) {
    writeNpz(folder.file("given.npz"), std::vector<NamedView>{{name, value.view()}});
    return restore(folder.file("given.npz"));
  }
  Values state(const std::string &name) {
    Values values;
    session.withStates([&](StateStore &states) {
      for (const NamedView &item : states.views())
        if (item.name == name)
          values = valuesOf(item.view);
    });
    return values;
  }
  void reset() {
    session.withStates([](StateStore &states) { states.reset(); });
  }

  static inline const std::string fault =
      "entry 'advance': kernel 'gather' at '/Gather': index out of range, read input 'indices' with 4";

  TemporaryFolder folder;
  std::string file = folder.file("states.npz");
  std::shared_ptr<const Package> package;
  Session session;
  std::vector<Tensor> outputs;
  Tensor ones = floats({1, 1, 1, 1});
  std::vector<Tensor> good() { return list(0); }
  std::vector<Tensor> bad() { return list(4); }

private:
  std::vector<Tensor> list(int64_t index) {
    std::vector<Tensor> inputs;
    inputs.push_back(ones.clone());
    inputs.push_back(indices({index}));
    return inputs;
  }
};

TEST_F(StateTest, AFailureAfterAWriteRefusesTheStateUntilAReset) {
  ASSERT_EQ(call("advance", good()), "");
  ASSERT_EQ(call("advance", bad()), fault);
  std::string refusal = "state 'total' may be half written (" + fault + "), restore it or reset the states";
  EXPECT_EQ(call("advance", good()), "entry 'advance': " + refusal);
  std::vector<Tensor> x;
  x.push_back(ones.clone());
  EXPECT_EQ(call("count", std::move(x)), "entry 'count': " + refusal); // another entry with the same state
  EXPECT_EQ(save(), refusal);
  EXPECT_FALSE(std::filesystem::exists(file));
  // The launch that writes it was never reached.
  ASSERT_EQ(call("peek"), "");
  EXPECT_EQ(valuesOf(outputs[0].view()), (Values{1, 1, 1, 1}));
  reset();
  ASSERT_EQ(call("advance", good()), "");
  EXPECT_EQ(state("total"), (Values{11, 21, 31, 41}));
}

TEST_F(StateTest, SaysTheRefusalWithItsOwnCode) {
  ASSERT_EQ(call("advance", good()), "");
  ASSERT_EQ(call("advance", bad()), fault);
  try {
    session.withStates([](StateStore &states) { states.views(); });
    FAIL();
  } catch (const Error &error) {
    EXPECT_EQ(error.getCode(), ErrorCode::BadState);
  }
}

TEST_F(StateTest, RestoringEndsTheRefusal) {
  ASSERT_EQ(call("advance", good()), "");
  ASSERT_EQ(save(), "");
  ASSERT_EQ(call("advance", bad()), fault);
  EXPECT_EQ(restore(file), "");
  EXPECT_EQ(state("total"), (Values{11, 21, 31, 41}));
  EXPECT_EQ(state("late"), (Values{1, 1, 1, 1}));
  ASSERT_EQ(call("advance", bad()), fault);
  EXPECT_EQ(restore("late", floats({5, 5, 5, 5})), ""); // not the one that is refused
  EXPECT_NE(call("advance", good()).find("state 'total' may be half written"), std::string::npos);
  EXPECT_EQ(restore("total", floats({7, 7, 7, 7})), "");
  ASSERT_EQ(call("advance", good()), "");
  EXPECT_EQ(state("total"), (Values{8, 8, 8, 8}));
  EXPECT_EQ(state("late"), (Values{6, 6, 6, 6}));
}

TEST_F(StateTest, AFailureBeforeTheFirstWriteChangesNothing) {
  ASSERT_EQ(call("advance", good()), "");
  std::vector<Tensor> inputs = good();
  inputs[0] = floats({1, 1, 1});
  EXPECT_NE(call("advance", std::move(inputs)).find("wrong size, found 3, expected 4"), std::string::npos);
  EXPECT_EQ(state("total"), (Values{11, 21, 31, 41}));
  EXPECT_EQ(call("advance", good()), "");
  EXPECT_EQ(state("total"), (Values{12, 22, 32, 42}));
}

TEST_F(StateTest, AStateThatAFailedCallMetFirstStartsAnew) {
  ASSERT_EQ(call("advance", bad()), fault);
  EXPECT_EQ(state("total"), (Values{10, 20, 30, 40}));
  EXPECT_EQ(call("advance", good()), "");
  EXPECT_EQ(state("total"), (Values{11, 21, 31, 41}));
}

TEST_F(StateTest, AFailedCallLeavesNoShapeBehind) {
  auto inputs = [](Values x, int64_t index) {
    std::vector<Tensor> result;
    result.push_back(floats(x));
    result.push_back(indices({index}));
    return result;
  };
  EXPECT_NE(call("history", inputs({1, 2}, 5)).find("index out of range"), std::string::npos);
  ASSERT_EQ(call("history", inputs({1, 2, 3}, 2)), "");
  EXPECT_EQ(valuesOf(outputs[0].view()), (Values{3}));
  EXPECT_NE(call("history", inputs({1, 2}, 0)).find("from an earlier call or file"), std::string::npos);
  EXPECT_EQ(state("past"), (Values{1, 2, 3})); // that call was refused before it wrote
  EXPECT_EQ(restore("past", floats({4, 5})), "");
  ASSERT_EQ(call("history", inputs({1, 2}, 1)), "");
  EXPECT_EQ(valuesOf(outputs[0].view()), (Values{7}));
}

TEST_F(StateTest, SavesAndRestores) {
  EXPECT_EQ(state("total"), (Values{10, 20, 30, 40})); // before any call
  ASSERT_EQ(call("advance", good()), "");
  ASSERT_EQ(save(), "");
  Session other(package, {1, nullptr});
  NpzReader source(file);
  other.withStates([&](StateStore &states) { states.restore(source); });
  std::vector<Tensor> inputs = good();
  other.run(package->entryIndex("advance"), {inputs[0].view(), inputs[1].view()}, {}, outputs);
  other.withStates([](StateStore &states) {
    for (const NamedView &item : states.views())
      if (item.name == "total") {
        EXPECT_EQ(valuesOf(item.view), (Values{12, 22, 32, 42}));
      }
  });
}

TEST_F(StateTest, RestoresIntoTheMemoryThatIsThere) {
  ASSERT_EQ(call("advance", good()), "");
  const void *before = nullptr, *after = nullptr;
  session.withStates([&](StateStore &states) { before = states.views()[1].view.data; });
  ASSERT_EQ(restore("total", floats({7, 7, 7, 7})), "");
  session.withStates([&](StateStore &states) { after = states.views()[1].view.data; });
  EXPECT_EQ(before, after);
}

TEST_F(StateTest, WhatDoesNotFitChangesNothing) {
  ASSERT_EQ(call("advance", good()), "");
  EXPECT_EQ(restore("other", ones), "the package has no state 'other'");
  EXPECT_EQ(restore("total", floats({1, 2, 3})), "state 'total': wrong shape, found [3], expected [4]");
  EXPECT_EQ(restore("total", tensor<int32_t>(ElementType::I32, {4}, {1, 2, 3, 4})),
            "state 'total': wrong type, found i32, expected f32");
  EXPECT_EQ(restore("total", tensor<float>(ElementType::F32, {1, 4}, {1, 2, 3, 4})),
            "state 'total': wrong shape, found [1, 4], expected [4]");
  Tensor right = floats({7, 7, 7, 7}), wrong = floats({7, 7, 7});
  writeNpz(file, std::vector<NamedView>{{"late", right.view()}, {"total", wrong.view()}});
  EXPECT_NE(restore(file).find("wrong shape"), std::string::npos);
  EXPECT_EQ(state("late"), (Values{1, 1, 1, 1}));
  EXPECT_EQ(state("total"), (Values{11, 21, 31, 41}));
}

TEST_F(StateTest, ADamagedFileChangesNothing) {
  ASSERT_EQ(call("advance", good()), "");
  ASSERT_EQ(save(), "");
  ASSERT_EQ(call("advance", good()), "");
  std::string bytes = readFile(file);
  size_t refused = 0;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    std::string altered = bytes;
    altered[i] = static_cast<char>(altered[i] ^ 0x20);
    writeFile(folder.file("altered.npz"), altered);
    if (restore(folder.file("altered.npz")).empty()) { // a byte without meaning, such as a date
      EXPECT_EQ(state("total"), (Values{11, 21, 31, 41})) << i;
      ASSERT_EQ(call("advance", good()), "");
    } else {
      ++refused;
    }
    ASSERT_EQ(state("total"), (Values{12, 22, 32, 42})) << i;
  }
  EXPECT_GT(refused, bytes.size() / 12);
  for (size_t length = 0; length < bytes.size(); length += 7) {
    writeFile(folder.file("altered.npz"), bytes.substr(0, length));
    ASSERT_NE(restore(folder.file("altered.npz")), "") << length;
    ASSERT_EQ(state("total"), (Values{12, 22, 32, 42})) << length;
  }
}

// A source that is found right and then fails in the middle, as a disk may.
class FailingSource : public TensorSource {
public:
  FailingSource() {
    list.push_back({"late", ElementType::F32, {4}});
    list.push_back({"total", ElementType::F32, {4}});
  }
  const std::vector<Item> &items() const override { return list; }
  void check(size_t, ElementType) const override {}
  void read(size_t item, ElementType, void *data) const override {
    static_cast<float *>(data)[0] = 99;
    if (item == failing)
      fail(ErrorCode::Io, "the disk is gone");
  }
  size_t failing = 0;

private:
  std::vector<Item> list;
};

TEST_F(StateTest, AnErrorInTheMiddleOfRestoringIsNotSilent) {
  FailingSource source;
  auto restoreFailing = [&](size_t at) {
    source.failing = at;
    return errorOf([&] { session.withStates([&](StateStore &states) { states.restore(source); }); });
  };
  EXPECT_EQ(restoreFailing(1), "state 'total': the disk is gone"); // nothing was there yet: nothing is lost
  EXPECT_EQ(state("late"), (Values{0, 0, 0, 0}));
  ASSERT_EQ(call("advance", good()), "");
  EXPECT_EQ(restoreFailing(0), "state 'late': the disk is gone");
  EXPECT_NE(call("peek").find("'late' may be half written (restoring failed: state 'late': the disk is gone)"),
            std::string::npos);
  std::vector<Tensor> x;
  x.push_back(ones.clone());
  EXPECT_EQ(call("count", std::move(x)), ""); // not reached
  reset();
  ASSERT_EQ(call("advance", good()), "");
  EXPECT_EQ(restoreFailing(1), "state 'total': the disk is gone");
  EXPECT_NE(call("peek").find("'late' may be half written"), std::string::npos); // of another time than the other
  EXPECT_NE(save().find("may be half written"), std::string::npos);
}

TEST_F(StateTest, NarrowTypesAreWidenedInFilesAndCheckedOnTheWayBack) {
  for (const char *type : {"bf16", "f16", "i4", "i8", "f8e5m2"}) {
    auto manifest = testManifest();
    for (auto &entry : manifest["variants"][0]["entries"])
      for (auto &item : entry["states"])
        if (item["name"] == "late")
          item["type"] = type;
    TemporaryFolder other;
    auto narrow = Package::load(writePackage(other.path(), manifest));
    Session own(narrow, {1, nullptr});
    auto restoreOwn = [&](const Tensor &value) {
      writeNpz(other.file("in.npz"), std::vector<NamedView>{{"late", value.view()}});
      return errorOf([&] {
        NpzReader source(other.file("in.npz"));
        own.withStates([&](StateStore &states) { states.restore(source); });
      });
    };
    ElementType element = *typeFromName(type), wide = npyType(element);
    Tensor value(wide, {4});
    for (size_t i = 0; i < 4; ++i)
      storeDouble(wide, value.data(), i, static_cast<double>(i) - 2);
    ASSERT_EQ(restoreOwn(value), "") << type;
    own.withStates([&](StateStore &states) { writeNpz(other.file("out.npz"), states.views()); });
    for (const NamedTensor &item : readNpz(other.file("out.npz")))
      if (item.name == "late") {
        EXPECT_EQ(item.tensor.getType(), wide) << type;
        for (size_t i = 0; i < 4; ++i)
          EXPECT_EQ(loadDouble(wide, item.tensor.data(), i), static_cast<double>(i) - 2) << type;
      }
    if (element == ElementType::I4) {
      storeDouble(wide, value.data(), 2, 8);
      EXPECT_NE(restoreOwn(value).find("element 2: found 8, which i4 cannot hold"), std::string::npos);
    }
  }
}

// Two ranks; the second one's x makes it fail at once. What each says, and what it says when its state is used again.
void runRanks(const std::shared_ptr<const Package> &package, const char *entry, std::string (&errors)[2],
              std::string (&again)[2]) {
  ThreadRanks group(2, 30s);
  std::thread threads[2];
  for (unsigned rank = 0; rank < 2; ++rank)
    threads[rank] = std::thread([&, rank] {
      Session session(package, {1, group.join(rank)});
      session.withStates([](StateStore &states) { states.views(); }); // the states are there before the call
      std::vector<Tensor> outputs;
      Tensor x = floats(rank == 1 ? Values{-1, 1, 1, 1} : Values{1, 1, 1, 1});
      errors[rank] = errorOf([&] { session.run(package->entryIndex(entry), {x.view()}, {}, outputs); });
      again[rank] = errorOf([&] { session.run(package->entryIndex("count"), {x.view()}, {}, outputs); });
    });
  for (std::thread &thread : threads)
    thread.join();
}

TEST_F(StateTest, ARankThatIsLetDownRefusesWhatItHadBegunToWrite) {
  for (const char *entry : {"drift", "merge"}) { // a launch wrote the state; a collective was about to
    std::string errors[2], again[2];
    runRanks(package, entry, errors, again);
    EXPECT_NE(errors[0].find("rank 1 did not arrive; rank 1 failed"), std::string::npos) << errors[0];
    EXPECT_NE(errors[1].find("run-time argument outside its legal values"), std::string::npos) << errors[1];
    EXPECT_NE(again[0].find("state 'total' may be half written"), std::string::npos) << entry << again[0];
    EXPECT_EQ(again[1], "") << entry; // it had written nothing
  }
}

} // namespace
