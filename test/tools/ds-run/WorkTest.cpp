// What a call moves at the least: whole buffers once, of tables and caches only what the manifest says.
#include "tools/ds-run/Work.h"

#include "runtime/core/Error.h"

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
  Package package{PackageFiles(std::vector<MemoryFile>())};
  CallRecorder recorder{package};

  uint32_t buffer(BufferRole role, int64_t rows) {
    entry.buffers.push_back({role, static_cast<uint32_t>(entry.buffers.size())});
    bytes.push_back(static_cast<uint64_t>(rows) * rowBytes);
    return static_cast<uint32_t>(entry.buffers.size() - 1);
  }

  using Bytes = std::vector<std::optional<SizeExpr>>;

  const LaunchWork &launch(std::vector<uint32_t> operands, uint32_t result, int64_t rows, Bytes reads = {},
                           std::optional<SizeExpr> writes = std::nullopt) {
    LaunchInfo info;
    info.kernel = "fused_0";
    info.arithmetic = "f32";
    info.flops = SizeExpr::constant(6);
    info.operands = std::move(operands);
    info.reads = std::move(reads);
    info.results = {{result, "v", ElementType::F32, shapeOf(rows), std::move(writes)}};
    entry.launches.push_back(info);
    std::vector<void *> buffers(bytes.size());
    recorder.afterLaunch(
        {entry, static_cast<uint32_t>(entry.launches.size() - 1), 10, 30, 1, symbols, buffers.data(), bytes.data()});
    return recorder.launches.back();
  }
};

/// So many bytes as the first symbol has rows, less one row.
SizeExpr allButOne() {
  SymbolTable symbols;
  symbols.named["n"] = 0;
  return SizeExpr::parse("32*n - 32", symbols);
}

TEST(Work, BuffersCountOnce) {
  Call call;
  uint32_t x = call.buffer(BufferRole::Input, 5), y = call.buffer(BufferRole::Output, 5);
  uint32_t w = call.buffer(BufferRole::Workspace, 5);
  const LaunchWork &first = call.launch({x}, w, 5);
  EXPECT_EQ(first.memoryBytes, 5 * rowBytes);
  EXPECT_EQ(first.workspaceBytes, 5 * rowBytes);
  EXPECT_EQ(first.end - first.start, 20);
  call.launch({x, w}, y, 5);
  EXPECT_EQ(call.recorder.bytes(), 10 * rowBytes) << "the input once, the output once";
  EXPECT_EQ(call.recorder.flops(), 12);
  EXPECT_EQ(call.recorder.flopsByArithmetic.at("f32"), 12);
}

TEST(Work, OperandsCountByWhatTheManifestSays) {
  Call call;
  call.symbols = {4};
  uint32_t table = call.buffer(BufferRole::Input, 1000), indices = call.buffer(BufferRole::Input, 1);
  uint32_t y = call.buffer(BufferRole::Output, 3);
  EXPECT_EQ(call.launch({table, indices}, y, 3, {allButOne(), std::nullopt}).memoryBytes, 7 * rowBytes);
  call.launch({table, indices}, y, 3, {allButOne(), std::nullopt});
  EXPECT_EQ(call.recorder.bytes(), (6 + 1 + 3) * rowBytes) << "rows of both";
  call.launch({table}, y, 3);
  EXPECT_EQ(call.recorder.bytes(), (1000 + 1 + 3) * rowBytes) << "no more than all of it";
  EXPECT_EQ(call.launch({indices, indices}, y, 3).memoryBytes, 4 * rowBytes) << "one buffer under two names";
  EXPECT_EQ(call.launch({indices}, y, 3, {allButOne()}).memoryBytes, 4 * rowBytes) << "more than the buffer has";
  call.symbols = {-7};
  EXPECT_EQ(call.launch({table}, y, 3, {allButOne()}).memoryBytes, 3 * rowBytes) << "less than nothing";
  call.symbols = {INT64_MAX};
  EXPECT_THROW(call.launch({table}, y, 3, {allButOne()}), Error);
}

TEST(Work, UpdatesInPlaceCountByWhatIsPut) {
  Call call;
  uint32_t cache = call.buffer(BufferRole::State, 1000), row = call.buffer(BufferRole::Input, 1);
  auto one = SizeExpr::constant(rowBytes), none = SizeExpr::constant(0);
  EXPECT_EQ(call.launch({row, cache}, cache, 1000, {std::nullopt, none}, one).memoryBytes, 2 * rowBytes);
  EXPECT_EQ(call.recorder.bytes(), 2 * rowBytes);
  EXPECT_EQ(call.launch({cache, row}, cache, 1000).memoryBytes, 2001 * rowBytes) << "all of it changes";
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
  EXPECT_DOUBLE_EQ(rooflineOf(ceilings, work, "int8_digits"), 10); // what has no bytes is held against floats
  ceilings.int8Gops = 4000;
  EXPECT_DOUBLE_EQ(rooflineOf(ceilings, work, "int8"), 5);
  EXPECT_DOUBLE_EQ(rooflineOf(ceilings, work, "int8_digits"), 7.5); // three of bytes for one of floats
  ceilings.int8PairsGops = 2000;
  EXPECT_DOUBLE_EQ(rooflineOf(ceilings, work, "int8_pairs"), 5);
  ceilings.int16Gops = 1250;
  EXPECT_DOUBLE_EQ(rooflineOf(ceilings, work, "int16"), 8);
  EXPECT_DOUBLE_EQ(medianOf({3, 1, 2}), 2);
  EXPECT_DOUBLE_EQ(medianOf({4, 1, 2, 3}), 2.5);
}

} // namespace
