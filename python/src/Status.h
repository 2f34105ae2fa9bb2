// What the parts of deepstride._core share: statuses of the C API as exceptions, and types of elements.
#ifndef DEEPSTRIDE_PYTHON_STATUS_H
#define DEEPSTRIDE_PYTHON_STATUS_H

#include "ds/runtime.h"

#include <nanobind/nanobind.h>

#include <memory>
#include <string>

// What deepstride._errors makes an exception of.
struct Failure {
  ds_status_code code;
  std::string message;
};

struct StatusFreer {
  void operator()(ds_status *status) const { ds_status_free(status); }
};

inline void check(ds_status *given) {
  if (!given)
    return;
  std::unique_ptr<ds_status, StatusFreer> status(given);
  throw Failure{ds_status_get_code(given), ds_status_message(given)};
}

// Calls into the runtime while other threads of Python run.
template <typename Call> void withoutGil(Call call) {
  ds_status *status;
  {
    nanobind::gil_scoped_release release;
    status = call();
  }
  check(status);
}

inline void refuse(const std::string &message) { throw Failure{DS_STATUS_INVALID_ARGUMENT, message}; }

// deepstride._core.Engine (engine.cpp).
void addEngine(nanobind::module_ &module);

#endif
