// The launch and collective services of EntryRunner.
#include "runtime/core/BufferMemory.h"
#include "runtime/core/EntryRunner.h"

#include <chrono>
#include <cstring>

namespace ds {
namespace {

int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

std::string siteText(const LaunchInfo &info) { return concat("kernel '", info.kernel, "' at '", info.site, "'"); }

// What a thread needs for its part of a launch.
struct KernelTask {
  ds_kernel kernel;
  void *const *buffers;
  const int64_t *sizes;
  int64_t grid, grain;
  unsigned threads;
  ThreadPool *pool;
  size_t scratchBytes;
  int32_t *results;

  static void run(void *context, unsigned thread) {
    const KernelTask &task = *static_cast<KernelTask *>(context);
    WorkRange range = staticChunk(task.grid, task.grain, thread, task.threads);
    task.results[thread] = DS_OK;
    if (range.begin >= range.end)
      return;
    // scratch() was called with this size before: it only looks the address up.
    uint8_t *scratch = task.scratchBytes ? task.pool->scratch(thread, task.scratchBytes) : nullptr;
    task.results[thread] = task.kernel(task.buffers, task.sizes, range.begin, range.end, scratch);
  }
};

} // namespace

void EntryRunner::launch(const ds_launch &request) {
  if (request.struct_size < sizeof(ds_launch))
    fail(ErrorCode::BadPackage, "launch record too short, found ", request.struct_size, " bytes, expected ",
         sizeof(ds_launch));
  if (request.site >= entry.launches.size() || !request.kernel)
    fail(ErrorCode::BadPackage, "launch of site ", request.site, ", the manifest has ", entry.launches.size());
  const LaunchInfo &info = entry.launches[request.site];
  try {
    gather(request);
    int64_t grid = sizeAt(request.grid, "grid");
    int64_t scratch = request.scratch == DS_NO_SIZE ? 0 : sizeAt(request.scratch, "scratch");
    if (grid < 0 || scratch < 0)
      fail(ErrorCode::ShapeMismatch, "negative grid or scratch, found ", grid, " and ", scratch);
    int64_t start = observer ? now() : 0;
    if (grid > 0)
      runKernel(request, grid, static_cast<size_t>(scratch));
    if (observer)
      observer->afterLaunch({entry, request.site, start, now(), grid, symbols, buffers.data(), bufferBytes.data()});
  } catch (Error &error) {
    error.annotate(siteText(info));
    throw;
  }
}

void EntryRunner::gather(const ds_launch &request) {
  launchBuffers.resize(request.buffer_count);
  launchSizes.resize(request.size_count);
  for (uint32_t i = 0; i < request.buffer_count; ++i) {
    uint32_t index = request.buffers[i];
    if (index >= buffers.size())
      fail(ErrorCode::BadPackage, "no buffer ", index, ", the manifest has ", buffers.size());
    if (!buffers[index])
      fail(ErrorCode::BadPackage, "buffer ", index, " is used before its size is defined");
    const BufferInfo &info = entry.buffers[index];
    if (info.role == BufferRole::Workspace && sizes[info.bytes] < 0)
      fail(ErrorCode::ShapeMismatch, "buffer ", index, ": negative size, found ", sizes[info.bytes], " from '",
           entry.sizes[info.bytes].text(), "'");
    launchBuffers[i] = buffers[index];
  }
  for (uint32_t i = 0; i < request.size_count; ++i)
    launchSizes[i] = sizeAt(request.sizes[i], "argument");
}

void EntryRunner::runKernel(const ds_launch &request, int64_t grid, size_t scratchBytes) {
  // Where bounds are watched, so is who writes what: all threads take part in the smallest launches.
  int64_t grain = areBoundsWatched() ? 1 : std::max<int64_t>(request.grain, 1);
  int64_t units = grid / grain + (grid % grain != 0);
  unsigned threads = static_cast<unsigned>(std::min<int64_t>(units, pool.size()));
  kernelResults.resize(pool.size());
  if (scratchBytes)
    for (unsigned t = 0; t < threads; ++t)
      pool.scratch(t, scratchBytes);
  KernelTask task{request.kernel, launchBuffers.data(), launchSizes.data(),  grid, grain, threads,
                  &pool,          scratchBytes,         kernelResults.data()};
  for (uint32_t state : entry.launches[request.site].writtenStates)
    boundStates[state]->isWritten = true;
  pool.run(KernelTask::run, &task, threads);
  for (unsigned t = 0; t < threads; ++t) { // the first by position, whichever thread was faster
    if (kernelResults[t] != DS_OK)
      fail(ErrorCode::Execution, resultText(kernelResults[t]));
  }
}

void EntryRunner::startCollective(const ds_collective &request) {
  if (request.struct_size < sizeof(ds_collective) || request.site >= entry.collectives.size())
    fail(ErrorCode::BadPackage, "collective of site ", request.site, ", the manifest has ", entry.collectives.size());
  const CollectiveInfo &info = entry.collectives[request.site];
  annotated(concat(info.op, " '", info.value, "' at '", info.site, "'"), [&] {
    if (request.kind != DS_ALL_REDUCE || request.reduction > DS_REDUCE_MAX)
      fail(ErrorCode::BadPackage, "unknown kind ", request.kind, " or reduction ", request.reduction);
    if (openCollectives.count(&request))
      fail(ErrorCode::BadPackage, "started twice without a wait");
    uint64_t bytes = byteCount(info.type, {sizeAt(request.count, "count")});
    for (uint32_t index : {request.source, request.destination})
      if (index >= buffers.size() || !buffers[index] || bufferBytes[index] < bytes)
        fail(ErrorCode::BadPackage, "buffer ", index, " does not hold ", bytes, " bytes");
    if (const BufferInfo &target = entry.buffers[request.destination]; target.role == BufferRole::State)
      boundStates[target.index]->isWritten = true;
    openCollectives[&request] = 0;
  });
}

// A communicator reduces in place; until the wait, the destination may still have other uses.
void EntryRunner::waitCollective(const ds_collective &request) {
  auto open = openCollectives.find(&request);
  if (open == openCollectives.end())
    fail(ErrorCode::BadPackage, "waits for a collective that was not started");
  openCollectives.erase(open);
  const CollectiveInfo &info = entry.collectives[request.site];
  int64_t count = sizeAt(request.count, "count");
  if (size_t bytes = byteCount(info.type, {count}); bytes != 0)
    std::memmove(buffers[request.destination], buffers[request.source], bytes);
  if (!communicator) // a world of one: every reduction is the value itself
    return;
  CollectiveRequest all;
  all.value = info.value;
  all.site = info.site;
  all.type = all.wire = info.type;
  all.reduction = static_cast<Reduction>(request.reduction);
  int64_t world = communicator->world();
  all.parts.push_back({(count + world - 1) / world, 0, count, {{buffers[request.destination], 0, count}}, nullptr});
  communicator->wait(communicator->start(all));
}

} // namespace ds
