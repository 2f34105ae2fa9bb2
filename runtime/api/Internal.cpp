#include "runtime/api/Internal.h"

#include "runtime/core/Text.h"
#include "runtime/io/StrictJson.h"

namespace ds::api {

ds_status &outOfMemory() {
  static ds_status status{DS_STATUS_OUT_OF_MEMORY, "out of memory"};
  return status;
}

ds_status *makeStatus(ErrorCode code, const char *message) noexcept {
  try {
    return new ds_status{static_cast<ds_status_code>(code), oneLine(message)};
  } catch (...) {
    return &outOfMemory();
  }
}

void require(bool isGiven, const char *what) {
  if (!isGiven)
    fail(ErrorCode::InvalidArgument, what, " is null");
}

void checkThreads(unsigned threads) {
  if (threads > 1024)
    fail(ErrorCode::InvalidArgument, "threads: found ", threads, ", expected at most 1024");
}

std::unique_ptr<InfoStorage> makeInfo(const std::string &name, ElementType type, const SymbolicShape &shape,
                                      int64_t bound) {
  auto storage = std::make_unique<InfoStorage>();
  for (const SizeExpr &dim : shape)
    storage->dims.push_back(dim.text());
  for (const std::string &dim : storage->dims)
    storage->texts.push_back(dim.c_str());
  storage->info = {name.c_str(), static_cast<ds_type>(type), shape.size(), storage->texts.data(), bound};
  return storage;
}

TensorView viewOf(const ds_tensor &tensor, const std::string &where) {
  auto refuse = [&](const char *what) { fail(ErrorCode::InvalidArgument, where, ": ", what); };
  if (tensor.struct_size < sizeof(ds_tensor))
    refuse("struct_size is too small, expected sizeof(ds_tensor)");
  unsigned type; // a C caller may pass any number
  static_assert(sizeof(type) == sizeof(tensor.type));
  std::memcpy(&type, &tensor.type, sizeof(type));
  if (type >= numElementTypes)
    refuse("no such type");
  if (tensor.rank != 0 && !tensor.shape)
    refuse("shape is null");
  return {static_cast<ElementType>(type), Shape(tensor.shape, tensor.shape + tensor.rank), tensor.data};
}

std::vector<TensorView> orderInputs(const std::string &where, const std::vector<TensorInfo> &infos,
                                    const ds_tensor *inputs, size_t count) {
  std::vector<TensorView> views(count);
  std::vector<bool> isGiven(count, false);
  for (size_t i = 0; i < count; ++i) {
    TensorView view = viewOf(inputs[i], concat("input ", i));
    size_t at = i;
    if (inputs[i].name && count == infos.size()) {
      std::vector<std::string> legal;
      for (at = 0; at < count && infos[at].name != inputs[i].name; ++at)
        legal.push_back(infos[at].name);
      if (at == count)
        fail(ErrorCode::InvalidArgument, where, ": input ", i, ": no input '", inputs[i].name, "', expected one of ",
             listText(legal), ", or null to go by position");
    }
    if (isGiven[at])
      fail(ErrorCode::InvalidArgument, where, ": input '", infos[at].name, "' is given twice");
    isGiven[at] = true;
    views[at] = std::move(view);
  }
  return views;
}

void OutputSet::describe(std::vector<std::string> newNames) {
  names = std::move(newNames);
  views.clear();
  for (size_t i = 0; i < tensors.size(); ++i)
    views.push_back({sizeof(ds_tensor), names[i].c_str(), static_cast<ds_type>(tensors[i].getType()),
                     tensors[i].getShape().size(), tensors[i].getShape().data(), tensors[i].data()});
}

void giveOutputs(std::vector<Tensor> tensors, std::vector<std::string> names, ds_outputs **outputs) {
  auto fresh = *outputs ? nullptr : std::make_unique<ds_outputs>();
  ds_outputs &results = *outputs ? **outputs : *fresh;
  results.spare.tensors = std::move(tensors);
  results.spare.describe(std::move(names));
  std::swap(results.current, results.spare);
  if (fresh)
    *outputs = fresh.release();
}

void giveEvaluation(double loss, int64_t counted, int64_t correct, ds_evaluation *evaluation) {
  give(ds_evaluation{0, loss, counted, counted >= 0 ? correct : -1}, evaluation);
}

nlohmann::json readClientState(const char *text) {
  if (!text)
    return nullptr;
  try {
    return parseStrictJson(text);
  } catch (const Error &error) {
    fail(ErrorCode::InvalidArgument, "client_state:", error.what());
  }
}

} // namespace ds::api
