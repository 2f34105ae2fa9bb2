// The C API over Package, Session and ThreadsGroup: turns exceptions into statuses, and nothing else.
#include "ds/runtime.h"

#include "runtime/comm/threads/ThreadsGroup.h"
#include "runtime/core/Session.h"
#include "runtime/io/Npz.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <mutex>
#include <new>
#include <set>

#ifndef DS_VERSION
#define DS_VERSION "0.1.0"
#endif

static_assert(int(DS_I1) == int(ds::ElementType::I1) && int(DS_U2) == int(ds::ElementType::U2) &&
                  int(DS_F64) == int(ds::ElementType::F64),
              "same order");
static_assert(int(DS_STATUS_INTERNAL) == int(ds::ErrorCode::Internal) &&
                  int(DS_STATUS_BAD_STATE) == int(ds::ErrorCode::BadState),
              "same order");

struct ds_status {
  ds_status_code code;
  std::string message;
};

namespace {

// What ds_tensor_info points to.
struct InfoStorage {
  std::vector<std::string> dims;
  std::vector<const char *> texts;
  ds_tensor_info info;
};

std::unique_ptr<InfoStorage> makeInfo(const std::string &name, ds::ElementType type, const ds::SymbolicShape &shape,
                                      int64_t bound) {
  auto storage = std::make_unique<InfoStorage>();
  for (const ds::SizeExpr &dim : shape)
    storage->dims.push_back(dim.text());
  for (const std::string &dim : storage->dims)
    storage->texts.push_back(dim.c_str());
  storage->info = {name.c_str(), static_cast<ds_type>(type), shape.size(), storage->texts.data(), bound};
  return storage;
}

using InfoList = std::vector<std::unique_ptr<InfoStorage>>;

// A guarded entry's output: each size is that of the entry which a call runs.
void mergeOutput(InfoStorage &storage, const ds::EntryInfo &entry, const ds::SymbolicShape &shape) {
  if (storage.info.rank != shape.size()) { // DS_RANK_VARIES stays what it is
    storage.info.rank = DS_RANK_VARIES;
    storage.info.shape = nullptr;
    return;
  }
  std::string holds;
  for (const ds::GuardInfo &guard : entry.guards)
    holds += (holds.empty() ? "" : "*") +
             (guard.holds ? "(" + guard.condition.text() + ")" : "eq(" + guard.condition.text() + ", 0)");
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    std::string &dim = storage.dims[axis];
    if (dim != shape[axis].text())
      dim = "select(" + holds + ", " + shape[axis].text() + ", " + dim + ")";
    storage.texts[axis] = dim.c_str();
  }
}

InfoList outputsOf(const ds::VariantInfo &variant, const ds::EntryGroup &group) {
  InfoList outputs;
  for (auto at = group.entries.rbegin(); at != group.entries.rend(); ++at) {
    const ds::EntryInfo &entry = variant.entries[*at];
    for (size_t i = 0; i < entry.outputs.size(); ++i)
      if (at == group.entries.rbegin())
        outputs.push_back(makeInfo(entry.outputs[i].name, entry.outputs[i].type, entry.outputs[i].shape, 0));
      else
        mergeOutput(*outputs[i], entry, entry.outputs[i].shape);
  }
  return outputs;
}

// What a caller knows as an entry: its number among the groups.
const ds::EntryGroup &groupAt(const ds::VariantInfo &variant, size_t entry) {
  if (entry >= variant.groups.size())
    ds::fail(ds::ErrorCode::InvalidArgument, "no entry ", entry, ", expected less than ", variant.groups.size());
  return variant.groups[entry];
}

// For when not even a status can be allocated.
ds_status &outOfMemory() {
  static ds_status status{DS_STATUS_OUT_OF_MEMORY, "out of memory"};
  return status;
}

ds_status *makeStatus(ds::ErrorCode code, const char *message) noexcept {
  try {
    return new ds_status{static_cast<ds_status_code>(code), message};
  } catch (...) {
    return &outOfMemory();
  }
}

template <typename Action> ds_status *guarded(Action action) noexcept {
  try {
    action();
    return nullptr;
  } catch (const ds::Error &error) {
    return makeStatus(error.getCode(), error.what());
  } catch (const std::bad_alloc &) {
    return makeStatus(ds::ErrorCode::OutOfMemory, "out of memory");
  } catch (const std::exception &error) {
    return makeStatus(ds::ErrorCode::Internal, error.what());
  }
}

void require(bool isGiven, const char *what) {
  if (!isGiven)
    ds::fail(ds::ErrorCode::InvalidArgument, what, " is null");
}

// Options of callers that were built against an older header are shorter; what they lack is zero.
template <typename T> T readOptions(const T *given, const char *what) {
  T options = {};
  if (!given)
    return options;
  if (given->struct_size < sizeof(size_t))
    ds::fail(ds::ErrorCode::InvalidArgument, what, ".struct_size is ", given->struct_size, ", expected sizeof(", what,
             ")");
  std::memcpy(&options, given, std::min(given->struct_size, sizeof(T)));
  return options;
}

ds::TensorView viewOf(const ds_tensor &tensor, size_t index) {
  auto refuse = [&](const char *what) { ds::fail(ds::ErrorCode::InvalidArgument, "input ", index, ": ", what); };
  if (tensor.struct_size < sizeof(ds_tensor))
    refuse("struct_size is too small, expected sizeof(ds_tensor)");
  unsigned type; // a C caller may pass any number
  static_assert(sizeof(type) == sizeof(tensor.type));
  std::memcpy(&type, &tensor.type, sizeof(type));
  if (type >= ds::numElementTypes)
    refuse("no such type");
  if (tensor.rank != 0 && !tensor.shape)
    refuse("shape is null");
  return {static_cast<ds::ElementType>(type), ds::Shape(tensor.shape, tensor.shape + tensor.rank), tensor.data};
}

// Inputs in the order of the package: those that have a name by it, the others by their position. Their number is left
// to the call.
std::vector<ds::TensorView> orderInputs(const ds::EntryInfo &entry, const ds_tensor *inputs, size_t count) {
  std::vector<ds::TensorView> views(count);
  std::vector<bool> isGiven(count, false);
  for (size_t i = 0; i < count; ++i) {
    ds::TensorView view = viewOf(inputs[i], i);
    size_t at = i;
    if (inputs[i].name && count == entry.inputs.size()) {
      std::vector<std::string> legal;
      for (at = 0; at < count && entry.inputs[at].name != inputs[i].name; ++at)
        legal.push_back(entry.inputs[at].name);
      if (at == count)
        ds::fail(ds::ErrorCode::InvalidArgument, "entry '", entry.name, "': input ", i, ": no input '", inputs[i].name,
                 "', expected one of ", ds::listText(legal), ", or null to go by position");
    }
    if (isGiven[at])
      ds::fail(ds::ErrorCode::InvalidArgument, "entry '", entry.name, "': input '", entry.inputs[at].name,
               "' is given twice");
    isGiven[at] = true;
    views[at] = std::move(view);
  }
  return views;
}

} // namespace

struct ds_package {
  std::shared_ptr<const ds::Package> package;
  std::vector<InfoList> lists[3]; // by ds_tensor_list, then entry
};

struct ds_group {
  std::shared_ptr<ds::ThreadsGroup> group;
};

struct ds_session {
  std::unique_ptr<ds::Session> session;
  std::mutex mutex; // of the pins
  ds::Pins pins;
};

namespace {

struct OutputSet {
  std::vector<ds::Tensor> tensors;
  std::vector<std::string> names;
  std::vector<ds_tensor> views;
};

} // namespace

// Two sets in turn: a call writes into the memory of the call before the last one, so that the last one's outputs are
// whole when it fails.
struct ds_outputs {
  OutputSet current, spare;
};

extern "C" {

ds_status_code ds_status_get_code(const ds_status *status) { return status ? status->code : DS_STATUS_OK; }
const char *ds_status_message(const ds_status *status) { return status ? status->message.c_str() : "ok"; }
void ds_status_free(ds_status *status) {
  if (status != &outOfMemory())
    delete status;
}

const char *ds_runtime_version(void) { return DS_VERSION; }

size_t ds_type_size(ds_type type) {
  return static_cast<unsigned>(type) < ds::numElementTypes ? ds::typeSize(static_cast<ds::ElementType>(type)) : 0;
}
const char *ds_type_name(ds_type type) {
  return static_cast<unsigned>(type) < ds::numElementTypes ? ds::typeName(static_cast<ds::ElementType>(type)) : nullptr;
}

ds_status *ds_package_load(const char *path, const ds_load_options *given, ds_package **package) {
  return guarded([&] {
    require(path && package, "path or package");
    ds_load_options options = readOptions(given, "ds_load_options");
    ds::LoadOptions load;
    load.verify = !options.skip_verification;
    load.mcpu = options.variant ? options.variant : "";
    auto result = std::make_unique<ds_package>();
    result->package = ds::Package::load(path, load);
    const ds::VariantInfo &variant = result->package->variant();
    for (const ds::EntryGroup &group : variant.groups) {
      InfoList inputs, states;
      for (const ds::TensorInfo &info : variant.entries[group.entries[0]].inputs)
        inputs.push_back(makeInfo(info.name, info.type, info.shape, info.bound.value_or(0)));
      std::set<std::string> known;
      for (size_t entry : group.entries)
        for (const ds::StateInfo &info : variant.entries[entry].states)
          if (known.insert(info.name).second)
            states.push_back(makeInfo(info.name, info.type, info.shape, 0));
      result->lists[DS_INPUTS].push_back(std::move(inputs));
      result->lists[DS_OUTPUTS].push_back(outputsOf(variant, group));
      result->lists[DS_STATES].push_back(std::move(states));
    }
    *package = result.release();
  });
}

void ds_package_free(ds_package *package) { delete package; }

size_t ds_package_variant_count(const ds_package *package) { return package->package->manifest().variants.size(); }

const char *ds_package_variant_name(const ds_package *package, size_t index) {
  const auto &variants = package->package->manifest().variants;
  return index < variants.size() ? variants[index].mcpu.c_str() : nullptr;
}

const char *ds_package_chosen_variant(const ds_package *package) { return package->package->variant().mcpu.c_str(); }

size_t ds_package_entry_count(const ds_package *package) { return package->package->variant().groups.size(); }

const char *ds_package_entry_name(const ds_package *package, size_t entry) {
  const auto &groups = package->package->variant().groups;
  return entry < groups.size() ? groups[entry].name.c_str() : nullptr;
}

size_t ds_package_tensor_count(const ds_package *package, size_t entry, ds_tensor_list list) {
  if (static_cast<unsigned>(list) > DS_STATES || entry >= package->lists[list].size())
    return 0;
  return package->lists[list][entry].size();
}

const ds_tensor_info *ds_package_tensor(const ds_package *package, size_t entry, ds_tensor_list list, size_t index) {
  return index < ds_package_tensor_count(package, entry, list) ? &package->lists[list][entry][index]->info : nullptr;
}

ds_status *ds_group_create(unsigned ranks, double timeout, ds_group **group) {
  return guarded([&] {
    require(group, "group");
    if (!(timeout > 0 && timeout < 1e9))
      ds::fail(ds::ErrorCode::InvalidArgument, "timeout: found ", timeout, " s, expected more than 0");
    auto duration = std::chrono::milliseconds(static_cast<int64_t>(std::ceil(timeout * 1000)));
    *group = new ds_group{ds::ThreadsGroup::create(ranks, duration)};
  });
}

void ds_group_free(ds_group *group) { delete group; }

ds_status *ds_session_create(const ds_package *package, const ds_session_options *given, ds_session **session) {
  return guarded([&] {
    require(package && session, "package or session");
    ds_session_options options = readOptions(given, "ds_session_options");
    ds::SessionOptions sessionOptions;
    sessionOptions.threads = options.threads;
    if (options.threads > 1024)
      ds::fail(ds::ErrorCode::InvalidArgument, "threads: found ", options.threads, ", expected at most 1024");
    if (options.group)
      sessionOptions.communicator = options.group->group->join(options.rank);
    auto result = std::make_unique<ds_session>();
    result->session = std::make_unique<ds::Session>(package->package, sessionOptions);
    *session = result.release();
  });
}

void ds_session_free(ds_session *session) { delete session; }

ds_status *ds_session_pin(ds_session *session, const char *dimension, int64_t value) {
  return guarded([&] {
    require(session && dimension, "session or dimension");
    if (value < 0)
      ds::fail(ds::ErrorCode::InvalidArgument, "dimension '", dimension, "': found ", value, ", expected 0 or more");
    for (const ds::EntryInfo &entry : session->session->package().variant().entries)
      for (const ds::SymbolInfo &symbol : entry.symbols)
        if (symbol.kind == ds::SymbolKind::Dim && symbol.name == dimension) {
          std::lock_guard<std::mutex> lock(session->mutex);
          session->pins[dimension] = value;
          return;
        }
    ds::fail(ds::ErrorCode::InvalidArgument, "the package has no dimension '", dimension, "'");
  });
}

ds_status *ds_session_run(ds_session *session, size_t entry, const ds_tensor *inputs, size_t inputCount,
                          ds_outputs **outputs) {
  return guarded([&] {
    require(session && outputs && (inputs || inputCount == 0), "session, outputs or inputs");
    const ds::VariantInfo &variant = session->session->package().variant();
    const ds::EntryGroup &group = groupAt(variant, entry);
    std::vector<ds::TensorView> views = orderInputs(variant.entries[group.entries[0]], inputs, inputCount);
    ds::Pins pins;
    {
      std::lock_guard<std::mutex> lock(session->mutex);
      for (size_t one : group.entries)
        for (const ds::SymbolInfo &symbol : variant.entries[one].symbols)
          if (auto pin = session->pins.find(symbol.name); pin != session->pins.end())
            pins.insert(*pin);
    }
    std::unique_ptr<ds_outputs> fresh;
    if (!*outputs)
      fresh = std::make_unique<ds_outputs>();
    OutputSet &results = (*outputs ? *outputs : fresh.get())->spare;
    results.views.clear();
    session->session->run(group.entries[0], views, pins, results.tensors);
    results.names.clear();
    for (const ds::TensorInfo &info : variant.entries[group.entries[0]].outputs)
      results.names.push_back(info.name);
    for (size_t i = 0; i < results.tensors.size(); ++i) {
      ds::Tensor &tensor = results.tensors[i];
      results.views.push_back({sizeof(ds_tensor), results.names[i].c_str(), static_cast<ds_type>(tensor.getType()),
                               tensor.getShape().size(), tensor.getShape().data(), tensor.data()});
    }
    if (fresh)
      *outputs = fresh.release();
    std::swap((*outputs)->current, (*outputs)->spare);
  });
}

size_t ds_outputs_count(const ds_outputs *outputs) { return outputs ? outputs->current.views.size() : 0; }

const ds_tensor *ds_outputs_get(const ds_outputs *outputs, size_t index) {
  return index < ds_outputs_count(outputs) ? &outputs->current.views[index] : nullptr;
}

void ds_outputs_free(ds_outputs *outputs) { delete outputs; }

ds_status *ds_session_save_states(ds_session *session, const char *path) {
  return guarded([&] {
    require(session && path, "session or path");
    session->session->withStates([&](ds::StateStore &states) { ds::writeNpz(path, states.views()); });
  });
}

ds_status *ds_session_restore_states(ds_session *session, const char *path) {
  return guarded([&] {
    require(session && path, "session or path");
    ds::NpzReader file(path);
    session->session->withStates([&](ds::StateStore &states) { states.restore(file); });
  });
}

ds_status *ds_session_reset_states(ds_session *session) {
  return guarded([&] {
    require(session, "session");
    session->session->withStates([](ds::StateStore &states) { states.reset(); });
  });
}

} // extern "C"
