// What the files of the C API share: statuses, and tensors on their way in and out.
#ifndef DEEPSTRIDE_RUNTIME_API_INTERNAL_H
#define DEEPSTRIDE_RUNTIME_API_INTERNAL_H

#include "ds/runtime.h"
#include "ds/trainer.h"

#include "runtime/core/Error.h"
#include "runtime/core/Package.h"
#include "runtime/core/Tensor.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

struct ds_status {
  ds_status_code code;
  std::string message;
};

namespace ds::api {

// For when not even a status can be allocated.
ds_status &outOfMemory();
ds_status *makeStatus(ErrorCode code, const char *message) noexcept;

// Runs an action; what it throws becomes a status.
template <typename Action> ds_status *guarded(Action action) noexcept {
  try {
    action();
    return nullptr;
  } catch (const Error &error) {
    return makeStatus(error.getCode(), error.what());
  } catch (const std::bad_alloc &) {
    return makeStatus(ErrorCode::OutOfMemory, "out of memory");
  } catch (const std::exception &error) {
    return makeStatus(ErrorCode::Internal, error.what());
  }
}

void require(bool isGiven, const char *what);

// Options of callers that were built against an older header are shorter; what they lack is zero.
template <typename T> T readOptions(const T *given, const char *what) {
  T options = {};
  if (!given)
    return options;
  if (given->struct_size < sizeof(size_t))
    fail(ErrorCode::InvalidArgument, what, ".struct_size is ", given->struct_size, ", expected sizeof(", what, ")");
  std::memcpy(&options, given, std::min(given->struct_size, sizeof(T)));
  return options;
}

// Copies as much as the caller's struct has room for, whose first member is its size. Null is fine.
template <typename T> void give(T value, T *to) {
  if (!to)
    return;
  value.struct_size = to->struct_size;
  std::memcpy(to, &value, std::min(to->struct_size, sizeof(T)));
}

void checkThreads(unsigned threads);

// What ds_tensor_info points to.
struct InfoStorage {
  std::vector<std::string> dims;
  std::vector<const char *> texts;
  ds_tensor_info info;
};
using InfoList = std::vector<std::unique_ptr<InfoStorage>>;

std::unique_ptr<InfoStorage> makeInfo(const std::string &name, ElementType type, const SymbolicShape &shape,
                                      int64_t bound);

// Throws Error(InvalidArgument) for what is no tensor. `where` begins messages.
TensorView viewOf(const ds_tensor &tensor, const std::string &where);

// Inputs in the order of the list: those that have a name by it, the others by their position. Their number is left to
// the call. `where` begins messages.
std::vector<TensorView> orderInputs(const std::string &where, const std::vector<TensorInfo> &infos,
                                    const ds_tensor *inputs, size_t count);

struct OutputSet {
  std::vector<Tensor> tensors;
  std::vector<std::string> names;
  std::vector<ds_tensor> views;

  // Makes names and views those of the tensors.
  void describe(std::vector<std::string> newNames);
};

} // namespace ds::api

namespace ds::api {
// Tensors become the outputs of a call: *outputs is null or earlier ones, which they replace.
void giveOutputs(std::vector<Tensor> tensors, std::vector<std::string> names, ds_outputs **outputs);

// counted and correct are -1 where the loss is not of classes. Null is fine.
void giveEvaluation(double loss, int64_t counted, int64_t correct, ds_evaluation *evaluation);

// What a checkpoint keeps for its caller, from JSON text; null without.
nlohmann::json readClientState(const char *text);
} // namespace ds::api

struct ds_package {
  std::shared_ptr<const ds::Package> package;
  std::vector<ds::api::InfoList> lists[3]; // by ds_tensor_list, then entry
};

// Two sets in turn: a call writes into the memory of the call before the last one, so that the last one's outputs are
// whole when it fails.
struct ds_outputs {
  ds::api::OutputSet current, spare;
};

#endif
