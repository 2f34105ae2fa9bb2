// The C API over Package, Session and ThreadRanks: turns exceptions into statuses, and nothing else.
#include "runtime/api/Internal.h"
#include "runtime/comm/threads/ThreadRanks.h"
#include "runtime/core/Session.h"
#include "runtime/io/Npz.h"

#include <cmath>
#include <mutex>
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

using namespace ds::api;

namespace {

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

} // namespace

struct ds_group {
  ds::ThreadRanks ranks;
};

struct ds_session {
  std::unique_ptr<ds::Session> session;
  std::mutex mutex; // of the pins
  ds::Pins pins;
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
    *group = new ds_group{ds::ThreadRanks(ranks, duration)};
  });
}

void ds_group_free(ds_group *group) { delete group; }

ds_status *ds_session_create(const ds_package *package, const ds_session_options *given, ds_session **session) {
  return guarded([&] {
    require(package && session, "package or session");
    ds_session_options options = readOptions(given, "ds_session_options");
    ds::SessionOptions sessionOptions;
    sessionOptions.threads = options.threads;
    checkThreads(options.threads);
    if (options.group)
      sessionOptions.communicator = options.group->ranks.join(options.rank);
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
    const ds::EntryInfo &first = variant.entries[group.entries[0]];
    std::vector<ds::TensorView> views = orderInputs("entry '" + first.name + "'", first.inputs, inputs, inputCount);
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
    std::vector<std::string> names;
    for (const ds::TensorInfo &info : first.outputs)
      names.push_back(info.name);
    results.describe(std::move(names));
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
