// ds_session_run_into: outputs in memory of the caller's.
#include "test/unit/runtime/ApiFixture.h"

#include <algorithm>

using namespace ds::test;

namespace {

const std::string invalid = std::to_string(DS_STATUS_INVALID_ARGUMENT) + ": entry 'main': ";
const std::string mismatch = std::to_string(DS_STATUS_SHAPE_MISMATCH) + ": entry 'main': ";

// main: y = x * [1, 2, 3, 4] + x.
class ApiBuffersTest : public ApiTest {
protected:
  ApiBuffersTest() { std::fill(std::begin(memory), std::end(memory), -1.0f); }

  std::string runInto(const std::vector<ds_tensor> &buffers, ds_outputs **into = nullptr) {
    return codeAndMessage(ds_session_run_into(session, 0, &input, 1, buffers.data(), buffers.size(), into));
  }
  bool isUntouched() const {
    return std::all_of(std::begin(memory), std::end(memory), [](float value) { return value == -1; });
  }

  const std::string success = "0: ";
  alignas(64) float memory[24];
  ds_tensor buffer = {sizeof(ds_tensor), "y", DS_F32, 2, shape, memory};
};

TEST_F(ApiBuffersTest, WritesInPlace) {
  ASSERT_EQ(runInto({buffer}), success);
  const float expected[8] = {2, 3, 4, 5, 4, 6, 8, 10};
  EXPECT_TRUE(std::equal(expected, expected + 8, memory));
  EXPECT_TRUE(std::all_of(memory + 8, memory + 24, [](float value) { return value == -1; }));
  ASSERT_EQ(runInto({buffer}, &outputs), success);
  ASSERT_EQ(ds_outputs_count(outputs), 1u);
  EXPECT_EQ(ds_outputs_get(outputs, 0)->data, memory);
  EXPECT_STREQ(ds_outputs_get(outputs, 0)->name, "y");
  buffer.name = nullptr;
  EXPECT_EQ(runInto({buffer}, &outputs), success);
}

TEST_F(ApiBuffersTest, CopiesIntoWhatIsNotAligned) {
  buffer.data = memory + 1;
  ASSERT_EQ(runInto({buffer}, &outputs), success);
  EXPECT_EQ(memory[0], -1);
  EXPECT_EQ(memory[1], 2);
  EXPECT_EQ(memory[8], 10);
  EXPECT_EQ(memory[9], -1);
  EXPECT_EQ(ds_outputs_get(outputs, 0)->data, memory + 1);
}

TEST_F(ApiBuffersTest, LaterCallsLeaveTheBufferAlone) {
  for (int round = 0; round < 4; ++round) { // buffers and own memory by turns, in both sets of the outputs
    std::fill(std::begin(memory), std::end(memory), -1.0f);
    ASSERT_EQ(runInto({buffer}, &outputs), success);
    EXPECT_EQ(memory[7], 10);
    std::fill(std::begin(memory), std::end(memory), -1.0f);
    for (int other = 0; other <= round; ++other) {
      ASSERT_EQ(messageOf(ds_session_run(session, 0, &input, 1, &outputs)), "");
      EXPECT_NE(ds_outputs_get(outputs, 0)->data, memory);
      EXPECT_EQ(static_cast<const float *>(ds_outputs_get(outputs, 0)->data)[7], 10);
    }
    EXPECT_TRUE(isUntouched());
  }
}

TEST_F(ApiBuffersTest, RefusesWhatDoesNotFit) {
  auto with = [&](auto change) {
    ds_tensor changed = buffer;
    change(changed);
    std::string message = runInto({changed});
    EXPECT_TRUE(isUntouched()) << message;
    return message;
  };
  const int64_t wide[2] = {3, 4}, flat[1] = {8}, negative[2] = {-2, 4}, huge[2] = {int64_t(1) << 40, int64_t(1) << 40};
  EXPECT_EQ(with([&](ds_tensor &one) { one.shape = wide; }),
            mismatch + "output 'y': wrong shape of the buffer, found [3, 4], expected [2, 4]");
  EXPECT_EQ(with([&](ds_tensor &one) { one.rank = 1, one.shape = flat; }),
            mismatch + "output 'y': wrong shape of the buffer, found [8], expected [2, 4]");
  EXPECT_EQ(with([&](ds_tensor &one) { one.shape = negative; }),
            mismatch + "the buffer of output 'y': shape [-2, 4] has a negative dimension");
  EXPECT_NE(with([&](ds_tensor &one) { one.shape = huge; }).find("64 bits"), std::string::npos);
  EXPECT_EQ(with([&](ds_tensor &one) { one.type = DS_I32; }),
            mismatch + "the buffer of output 'y': wrong type, found i32, expected f32");
  EXPECT_EQ(with([&](ds_tensor &one) { one.data = nullptr; }), invalid + "the buffer of output 'y': data is null");
  EXPECT_EQ(with([&](ds_tensor &one) { one.name = "z"; }),
            invalid + "buffer 0: no output 'z', expected one of [y], or null to go by position");
  EXPECT_EQ(with([&](ds_tensor &one) { one.shape = nullptr; }), invalid + "buffer 0: shape is null");
  EXPECT_EQ(with([&](ds_tensor &one) { one.struct_size = 4; }),
            invalid + "buffer 0: struct_size is too small, expected sizeof(ds_tensor)");
  EXPECT_EQ(runInto({buffer, buffer}), invalid + "the buffer of output 'y' is given twice");
  ds_tensor second = buffer;
  second.name = nullptr;
  EXPECT_NE(runInto({buffer, second}).find("buffer 1: no output ''"), std::string::npos);
  EXPECT_EQ(runInto({}), invalid + "outputs is null, expected a buffer for each of 1 outputs, found 0");
  EXPECT_NE(messageOf(ds_session_run_into(nullptr, 0, &input, 1, &buffer, 1, nullptr)).find("null"), std::string::npos);
  EXPECT_NE(messageOf(ds_session_run_into(session, 0, &input, 1, nullptr, 1, nullptr)).find("null"), std::string::npos);
  EXPECT_TRUE(isUntouched());
}

TEST_F(ApiBuffersTest, RefusesOverlaps) {
  buffer.data = data;
  EXPECT_EQ(runInto({buffer}), invalid + "the buffer of output 'y' overlaps input 'x'");
  buffer.data = data + 7; // one element
  EXPECT_EQ(runInto({buffer}), invalid + "the buffer of output 'y' overlaps input 'x'");
  EXPECT_EQ(data[7], 2);
  ASSERT_EQ(messageOf(ds_session_run(session, 0, &input, 1, &outputs)), "");
  buffer.data = ds_outputs_get(outputs, 0)->data;
  EXPECT_EQ(runInto({buffer}, &outputs), invalid + "the buffer of output 'y' overlaps outputs of an earlier call");
  // Side by side is no overlap.
  input.data = memory;
  std::copy(data, data + 8, memory);
  buffer.data = memory + 8;
  EXPECT_EQ(runInto({buffer}), success);
  EXPECT_EQ(memory[15], 10);
}

// positive: y = those of x that are above 0; how many is known only then.
TEST_F(ApiBuffersTest, ComputedSizesMustBeThoseOfTheBuffer) {
  alignas(64) float x[4] = {3, -1, 4, -1};
  int64_t four = 4, two = 2, three = 3;
  ds_tensor in = {sizeof(ds_tensor), "x", DS_F32, 1, &four, x}, out = {sizeof(ds_tensor), "y", DS_F32, 1, &two, memory};
  ASSERT_EQ(messageOf(ds_session_run_into(session, 3, &in, 1, &out, 1, nullptr)), "");
  EXPECT_EQ(memory[0], 3);
  EXPECT_EQ(memory[1], 4);
  EXPECT_EQ(memory[2], -1);
  out.shape = &three;
  ds_status *status = ds_session_run_into(session, 3, &in, 1, &out, 1, nullptr);
  EXPECT_EQ(codeAndMessage(status), std::to_string(DS_STATUS_SHAPE_MISMATCH) +
                                        ": entry 'positive': output 'y': wrong shape of the buffer, found [3], "
                                        "expected [2]");
  x[0] = x[2] = -1;
  int64_t none = 0;
  out.shape = &none;
  out.data = nullptr;
  EXPECT_EQ(messageOf(ds_session_run_into(session, 3, &in, 1, &out, 1, nullptr)), "");
}

// count: total += x; y = total. A wrong buffer is found before the state is written.
TEST_F(ApiBuffersTest, AWrongBufferLeavesStatesAlone) {
  int64_t four = 4, five = 5;
  ds_tensor x = {sizeof(ds_tensor), "x", DS_F32, 1, &four, data},
            y = {sizeof(ds_tensor), "y", DS_F32, 1, &five, memory};
  ASSERT_NE(messageOf(ds_session_run_into(session, 5, &x, 1, &y, 1, nullptr)), "");
  y.shape = &four;
  ASSERT_EQ(messageOf(ds_session_run_into(session, 5, &x, 1, &y, 1, nullptr)), "");
  EXPECT_EQ(memory[0], 11);
}

// lookup: y = table[indices], which fails by index.
TEST_F(ApiBuffersTest, AFailedCallKeepsOutputsAndUnalignedBuffers) {
  alignas(64) float table[2] = {5, 6};
  alignas(64) int64_t indices[2] = {1, 0};
  int64_t two = 2;
  ds_tensor inputs[2] = {{sizeof(ds_tensor), nullptr, DS_F32, 1, &two, table},
                         {sizeof(ds_tensor), nullptr, DS_I64, 1, &two, indices}};
  ds_tensor y = {sizeof(ds_tensor), "y", DS_F32, 1, &two, memory + 1};
  ASSERT_EQ(messageOf(ds_session_run(session, 8, inputs, 2, &outputs)), "");
  const ds_tensor *kept = ds_outputs_get(outputs, 0);
  indices[1] = 7;
  EXPECT_NE(messageOf(ds_session_run_into(session, 8, inputs, 2, &y, 1, &outputs)).find("index out of range"),
            std::string::npos);
  EXPECT_TRUE(isUntouched());
  ASSERT_EQ(ds_outputs_count(outputs), 1u);
  EXPECT_EQ(ds_outputs_get(outputs, 0), kept);
  EXPECT_EQ(static_cast<const float *>(kept->data)[0], 6);
}

} // namespace
