// The unit tests' package and a session of it, through the C API.
#ifndef DEEPSTRIDE_TEST_UNIT_RUNTIME_APIFIXTURE_H
#define DEEPSTRIDE_TEST_UNIT_RUNTIME_APIFIXTURE_H

#include "test/unit/runtime/PackageBuilder.h"

#include "ds/runtime.h"

#include <gtest/gtest.h>

namespace ds::test {

inline std::string messageOf(ds_status *status) {
  std::string text = status ? ds_status_message(status) : "";
  ds_status_free(status);
  return text;
}

// "2: message"
inline std::string codeAndMessage(ds_status *status) {
  std::string code = std::to_string(ds_status_get_code(status));
  return code + ": " + messageOf(status);
}

class ApiTest : public ::testing::Test {
protected:
  ApiTest() {
    EXPECT_EQ(messageOf(ds_package_load(writePackage(folder.path()).c_str(), nullptr, &package)), "");
    EXPECT_EQ(messageOf(ds_session_create(package, nullptr, &session)), "");
  }
  ~ApiTest() override {
    ds_outputs_free(outputs);
    ds_package_free(package); // before the session, as the header allows
    ds_session_free(session);
  }

  TemporaryFolder folder;
  ds_package *package = nullptr;
  ds_session *session = nullptr;
  ds_outputs *outputs = nullptr;
  alignas(64) float data[8] = {1, 1, 1, 1, 2, 2, 2, 2};
  int64_t shape[2] = {2, 4};
  ds_tensor input = {sizeof(ds_tensor), "x", DS_F32, 2, shape, data};
};

} // namespace ds::test
#endif
