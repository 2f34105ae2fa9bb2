// Sessions in the C API: groups, pins, calls and states.
#include "runtime/core/Session.h"
#include "runtime/api/CallerBuffers.h"
#include "runtime/comm/threads/ThreadRanks.h"
#include "runtime/io/Npz.h"

#include <cmath>
#include <mutex>

using namespace ds::api;

namespace {

// Tells a caller's function of launches.
class CallbackObserver : public ds::LaunchObserver {
public:
  CallbackObserver(ds_launch_observer function = nullptr, void *context = nullptr)
      : function(function), context(context) {}
  bool isThere() const { return function != nullptr; }

  void afterLaunch(const Event &event) override {
    const ds::LaunchInfo &info = event.entry.launches[event.site];
    ds_launch_event told = {sizeof(told),
                            event.entry.name.c_str(),
                            info.kernel.c_str(),
                            info.site.c_str(),
                            event.site,
                            event.startNanoseconds,
                            event.endNanoseconds - event.startNanoseconds};
    function(context, &told);
  }

private:
  ds_launch_observer function;
  void *context;
};

} // namespace

struct ds_group {
  ds::ThreadRanks ranks;
};

struct ds_session {
  std::unique_ptr<ds::Session> session;
  std::mutex mutex; // of what calls begin with
  ds::Pins pins;
  CallbackObserver observer;
};

namespace {

// What a caller knows as an entry: its number among the groups.
const ds::EntryGroup &groupAt(const ds::VariantInfo &variant, size_t entry) {
  if (entry >= variant.groups.size())
    ds::fail(ds::ErrorCode::InvalidArgument, "no entry ", entry, ", expected less than ", variant.groups.size());
  return variant.groups[entry];
}

void requireDimension(const ds_session &session, const std::string &name) {
  for (const ds::EntryInfo &entry : session.session->package().variant().entries)
    for (const ds::SymbolInfo &symbol : entry.symbols)
      if (symbol.kind == ds::SymbolKind::Dim && symbol.name == name)
        return;
  ds::fail(ds::ErrorCode::InvalidArgument, "the package has no dimension '", name, "'");
}

// What a call has of its session from its beginning on.
struct CallSettings {
  ds::Pins pins;
  CallbackObserver observer;
};

CallSettings settingsOf(ds_session &session, const ds::VariantInfo &variant, const ds::EntryGroup &group) {
  CallSettings settings;
  std::lock_guard<std::mutex> lock(session.mutex);
  settings.observer = session.observer;
  for (size_t entry : group.entries)
    for (const ds::SymbolInfo &symbol : variant.entries[entry].symbols)
      if (auto pin = session.pins.find(symbol.name); pin != session.pins.end())
        settings.pins.insert(*pin);
  return settings;
}

void runInto(ds_session &session, size_t entry, const ds_tensor *inputs, size_t inputCount, const ds_tensor *buffers,
             size_t bufferCount, ds_outputs **outputs) {
  const ds::VariantInfo &variant = session.session->package().variant();
  const ds::EntryGroup &group = groupAt(variant, entry);
  const ds::EntryInfo &first = variant.entries[group.entries[0]];
  std::string where = "entry '" + first.name + "'";
  std::vector<ds::TensorView> views = orderInputs(where, first.inputs, inputs, inputCount);
  std::unique_ptr<ds_outputs> fresh;
  if (!outputs || !*outputs)
    fresh = std::make_unique<ds_outputs>();
  ds_outputs &all = fresh ? *fresh : **outputs;
  CallerBuffers given(where, first.outputs, buffers, bufferCount);
  if (!outputs && !given.areAll())
    ds::fail(ds::ErrorCode::InvalidArgument, where, ": outputs is null, expected a buffer for each of ",
             first.outputs.size(), " outputs, found ", bufferCount);
  given.requireApart(views, first.inputs, all);
  CallSettings settings = settingsOf(session, variant, group);
  given.lend(all.spare);
  session.session->run(group.entries[0], views, settings.pins, all.spare.tensors,
                       settings.observer.isThere() ? &settings.observer : nullptr);
  std::vector<std::string> names;
  for (const ds::TensorInfo &info : first.outputs)
    names.push_back(info.name);
  given.fill(all.spare);
  all.spare.describe(std::move(names));
  std::swap(all.current, all.spare);
  if (fresh && outputs)
    *outputs = fresh.release();
}

} // namespace

extern "C" {

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
    requireDimension(*session, dimension);
    std::lock_guard<std::mutex> lock(session->mutex);
    session->pins[dimension] = value;
  });
}

ds_status *ds_session_unpin(ds_session *session, const char *dimension) {
  return guarded([&] {
    require(session && dimension, "session or dimension");
    requireDimension(*session, dimension);
    std::lock_guard<std::mutex> lock(session->mutex);
    session->pins.erase(dimension);
  });
}

ds_status *ds_session_run(ds_session *session, size_t entry, const ds_tensor *inputs, size_t inputCount,
                          ds_outputs **outputs) {
  return guarded([&] {
    require(session && outputs && (inputs || inputCount == 0), "session, outputs or inputs");
    runInto(*session, entry, inputs, inputCount, nullptr, 0, outputs);
  });
}

ds_status *ds_session_run_into(ds_session *session, size_t entry, const ds_tensor *inputs, size_t inputCount,
                               const ds_tensor *buffers, size_t bufferCount, ds_outputs **outputs) {
  return guarded([&] {
    require(session && (inputs || inputCount == 0) && (buffers || bufferCount == 0), "session, inputs or buffers");
    runInto(*session, entry, inputs, inputCount, buffers, bufferCount, outputs);
  });
}

ds_status *ds_session_cancel(ds_session *session) {
  return guarded([&] {
    require(session, "session");
    session->session->cancel();
  });
}

ds_status *ds_session_observe(ds_session *session, ds_launch_observer observer, void *context) {
  return guarded([&] {
    require(session, "session");
    std::lock_guard<std::mutex> lock(session->mutex);
    session->observer = {observer, context};
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
