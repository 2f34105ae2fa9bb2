// The C API over Package, Session and ThreadRanks: turns exceptions into statuses, and nothing else. Here: statuses,
// versions and types.
#include "runtime/api/Internal.h"

#include <string_view>

#define DS_TEXT(number) #number
#define DS_VERSION_TEXT(major, minor, patch) DS_TEXT(major) "." DS_TEXT(minor) "." DS_TEXT(patch)

static_assert(std::string_view(DS_VERSION) ==
                  DS_VERSION_TEXT(DS_RUNTIME_VERSION_MAJOR, DS_RUNTIME_VERSION_MINOR, DS_RUNTIME_VERSION_PATCH),
              "CMake's project version and ds/runtime.h tell another version");
static_assert(int(DS_I1) == int(ds::ElementType::I1) && int(DS_U2) == int(ds::ElementType::U2) &&
                  int(DS_F64) == int(ds::ElementType::F64),
              "same order");
static_assert(int(DS_STATUS_INTERNAL) == int(ds::ErrorCode::Internal) &&
                  int(DS_STATUS_CANCELLED) == int(ds::ErrorCode::Cancelled),
              "same order");

using namespace ds::api;

extern "C" {

ds_status_code ds_status_get_code(const ds_status *status) { return status ? status->code : DS_STATUS_OK; }
const char *ds_status_message(const ds_status *status) { return status ? status->message.c_str() : "ok"; }
void ds_status_free(ds_status *status) {
  if (status != &outOfMemory())
    delete status;
}

const char *ds_runtime_version(void) { return DS_VERSION; }
unsigned ds_runtime_version_number(void) { return DS_RUNTIME_VERSION_NUMBER; }
unsigned ds_runtime_abi(void) { return DS_RUNTIME_ABI; }

size_t ds_type_size(ds_type type) {
  return static_cast<unsigned>(type) < ds::numElementTypes ? ds::typeSize(static_cast<ds::ElementType>(type)) : 0;
}
const char *ds_type_name(ds_type type) {
  return static_cast<unsigned>(type) < ds::numElementTypes ? ds::typeName(static_cast<ds::ElementType>(type)) : nullptr;
}

} // extern "C"
