// What a call moves at the least: whole buffers once, of tables and caches only the rows that are touched.
#include "tools/ds-run/Work.h"

#include <gtest/gtest.h>

using namespace ds;

namespace {

SymbolicShape shapeOf(int64_t rows) { return {SizeExpr::constant(rows), SizeExpr::constant(8)}; }

constexpr uint64_t rowBytes = 8 * 4;

/// Launches over buffers of 8 columns in f32: every buffer has a role and a number of rows.
struct Call {
  EntryInfo entry;
  std::vector<uint64_t> bytes;
  std::vector<int64_t> symbols;
  Package package;
  CallRecorder recorder{package};

  uint32_t buffer(BufferRole role, int64_t rows) {
    entry.buffers.push_back({role, static_cast<uint32_t>(entry.buffers.size())});
    bytes.push_back(static_cast<uint64_t>(rows) * rowBytes);
    return static_cast<uint32_t>(entry.buffers.size() - 1);
  }

  const LaunchWork &launch(const std::string &kernel, std::vector<uint32_t> operands, uint32_t result, int64_t rows) {
    LaunchInfo info;
    info.kernel = kernel;
    info.arithmetic = "f32";
    info.flops = SizeExpr::constant(6);
    info.operands = std::move(operands);
    info.results = {{result, "v", ElementType::F32, shapeOf(rows)}};
    entry.launches.push_back(info);
    std::vector<void *> buffers(bytes.size());
    recorder.afterLaunch(
        {entry, static_cast<uint32_t>(entry.launches.size() - 1), 10, 30, 1, symbols, buffers.data(), bytes.data()});
    return recorder.launches.back();
  }
};

TEST(Work, BuffersCountOnce) {
  Call call;
  uint32_t x = call.buffer(BufferRole::Input, 5), y = call.buffer(BufferRole::Output, 5);
  uint32_t w = call.buffer(BufferRole::Workspace, 5);
  const LaunchWork &first = call.launch("mul_0", {x}, w, 5);
  EXPECT_EQ(first.memoryBytes, 5 * rowBytes);
  EXPECT_EQ(first.workspaceBytes, 5 * rowBytes);
  EXPECT_EQ(first.end - first.start, 20);
  call.launch("add_1", {x, w}, y, 5);
  EXPECT_EQ(call.recorder.bytes(), 10 * rowBytes) << "the input once, the output once";
  EXPECT_EQ(call.recorder.flops(), 12);
  EXPECT_EQ(call.recorder.flopsByArithmetic.at("f32"), 12);
}

TEST(Work, TablesCountByTheRowsThatAreRead) {
  for (const char *kernel : {"gather_3", "gather_elements_0", "gather_nd_12", "slice_1"}) {
    Call call;
    uint32_t table = call.buffer(BufferRole::Input, 1000), indices = call.buffer(BufferRole::Input, 1);
    uint32_t y = call.buffer(BufferRole::Output, 3);
    EXPECT_EQ(call.launch(kernel, {table, indices}, y, 3).memoryBytes, 7 * rowBytes) << kernel;
    call.launch(kernel, {table, indices}, y, 3);
    EXPECT_EQ(call.recorder.bytes(), (6 + 1 + 3) * rowBytes) << kernel << ": rows of both";
    call.launch("mul_0", {table}, y, 3);
    EXPECT_EQ(call.recorder.bytes(), (1000 + 1 + 3) * rowBytes) << kernel << ": no more than all of it";
  }
  Call small;
  uint32_t table = small.buffer(BufferRole::Input, 2), y = small.buffer(BufferRole::Output, 9);
  EXPECT_EQ(small.launch("gather_0", {table}, y, 9).memoryBytes, 11 * rowBytes) << "rows that are read twice";
  EXPECT_EQ(small.launch("gathered_0", {table}, y, 9).memoryBytes, 11 * rowBytes) << "another name";
}

TEST(Work, UpdatesInPlaceCountByWhatIsPut) {
  Call call;
  uint32_t cache = call.buffer(BufferRole::State, 1000), row = call.buffer(BufferRole::Input, 1);
  EXPECT_EQ(call.launch("insert_4", {row, cache}, cache, 1000).memoryBytes, 2 * rowBytes);
  EXPECT_EQ(call.recorder.bytes(), 2 * rowBytes);
  uint32_t indices = call.buffer(BufferRole::Input, 1), rows = call.buffer(BufferRole::Input, 2);
  EXPECT_EQ(call.launch("scatter_nd_5", {cache, indices, rows}, cache, 1000).memoryBytes, 5 * rowBytes);
  uint32_t copy = call.buffer(BufferRole::Output, 1000);
  EXPECT_EQ(call.launch("insert_4", {row, cache}, copy, 1000).memoryBytes, 2001 * rowBytes) << "not in place";
  EXPECT_EQ(call.launch("add_6", {cache, row}, cache, 1000).memoryBytes, 2001 * rowBytes) << "all of it changes";
}

TEST(Work, NoLaunchIsFasterThanItsRoofline) {
  Ceilings ceilings;
  ceilings.workingSetGBps = 10;
  ceilings.cacheGBps = 100;
  ceilings.f32Gflops = 1000;
  LaunchWork work;
  work.memoryBytes = 10e6;
  EXPECT_DOUBLE_EQ(rooflineOf(ceilings, work, "f32"), 1);
  work.workspaceBytes = 490e6;
  EXPECT_DOUBLE_EQ(rooflineOf(ceilings, work, "f32"), 5);
  work.flops = 10e9;
  EXPECT_DOUBLE_EQ(rooflineOf(ceilings, work, "f32"), 10);
  EXPECT_DOUBLE_EQ(rooflineOf(ceilings, work, "f64"), 20);
  ceilings.int8Gops = 4000;
  EXPECT_DOUBLE_EQ(rooflineOf(ceilings, work, "int8"), 5);
  EXPECT_DOUBLE_EQ(medianOf({3, 1, 2}), 2);
  EXPECT_DOUBLE_EQ(medianOf({4, 1, 2, 3}), 2.5);
}

} // namespace
