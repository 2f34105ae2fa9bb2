// The launch service of EntryRunner.
#include "runtime/core/BufferMemory.h"
#include "runtime/core/EntryRunner.h"
#include "runtime/core/IndexFault.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <set>

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
  WorkRange items;
  int64_t grain;
  unsigned threads;
  ThreadPool *pool;
  size_t scratchBytes;
  int32_t *results;

  static void run(void *context, unsigned thread) {
    const KernelTask &task = *static_cast<KernelTask *>(context);
    WorkRange range = staticChunk(task.items.end - task.items.begin, task.grain, thread, task.threads);
    task.results[thread] = DS_OK;
    if (range.begin >= range.end)
      return;
    // scratch() was called with this size before: it only looks the address up.
    uint8_t *scratch = task.scratchBytes ? task.pool->scratch(thread, task.scratchBytes) : nullptr;
    task.results[thread] =
        task.kernel(task.buffers, task.sizes, task.items.begin + range.begin, task.items.begin + range.end, scratch);
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
    int64_t start = watch.observer ? now() : 0;
    if (grid > 0 && !inFiles.empty())
      runFromFiles(request, grid, static_cast<size_t>(scratch));
    else if (grid > 0)
      runKernel(request, {0, grid}, static_cast<size_t>(scratch));
    if (watch.observer)
      watch.observer->afterLaunch(
          {entry, request.site, start, now(), grid, symbols, buffers.data(), bufferBytes.data()});
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
    settle(index);
    launchBuffers[i] = buffers[index];
  }
  for (uint32_t i = 0; i < request.size_count; ++i)
    launchSizes[i] = sizeAt(request.sizes[i], "argument");
}

// Where items take states element by element, those of one piece of each at a time.
void EntryRunner::runFromFiles(const ds_launch &request, int64_t grid, size_t scratchBytes) {
  const LaunchInfo &info = entry.launches[request.site];
  std::set<uint32_t> whole, apart;
  for (uint32_t i = 0; i < request.buffer_count; ++i)
    if (uint32_t buffer = request.buffers[i]; inFiles[buffer].files) {
      const auto &list = info.elementwise;
      (std::find(list.begin(), list.end(), buffer) == list.end() ? whole : apart).insert(buffer);
    }
  for (WorkRange items = {0, 0}; items.begin < grid; items.begin = items.end) {
    items.end = grid;
    FileTurns turns;
    for (uint32_t buffer : whole)
      addInFile(buffer, turns);
    for (uint32_t buffer : apart) {
      addPiece(buffer, items.begin, turns);
      items.end = std::min(items.end, pieceAt(buffer, items.begin).end);
    }
    use(turns);
    runKernel(request, items, scratchBytes);
    done(turns, !info.writtenStates.empty());
  }
}

void EntryRunner::runKernel(const ds_launch &request, WorkRange items, size_t scratchBytes) {
  // Where bounds are watched, so is who writes what: all threads take part in the smallest launches.
  int64_t grain = areBoundsWatched() ? 1 : std::max<int64_t>(request.grain, 1);
  int64_t count = items.end - items.begin, units = count / grain + (count % grain != 0);
  unsigned threads = static_cast<unsigned>(std::min<int64_t>(units, pool.size()));
  kernelResults.resize(pool.size());
  if (scratchBytes)
    for (unsigned t = 0; t < threads; ++t)
      pool.scratch(t, scratchBytes);
  KernelTask task{request.kernel, launchBuffers.data(), launchSizes.data(),  items, grain, threads,
                  &pool,          scratchBytes,         kernelResults.data()};
  for (uint32_t state : entry.launches[request.site].writtenStates)
    boundStates[state]->isWritten = true;
  pool.run(KernelTask::run, &task, threads);
  for (unsigned t = 0; t < threads; ++t) { // the first by position, whichever thread was faster
    if (kernelResults[t] != DS_OK)
      fail(ErrorCode::Execution, resultText(kernelResults[t]),
           kernelResults[t] == DS_INDEX_OUT_OF_RANGE ? indexFault(request.site) : "");
  }
}

std::string EntryRunner::indexFault(uint32_t site) const {
  return indexFaultText(package.variant(), entry, site,
                        [&](uint32_t buffer, ElementType type, const SymbolicShape &shape) {
                          for (const SizeExpr &dim : shape)
                            if (!isKnown(dim.symbols()))
                              return TensorView{};
                          TensorView view{type, evaluateShape(shape, symbols), buffers[buffer]};
                          return view.bytes() <= bufferBytes[buffer] ? view : TensorView{};
                        });
}

} // namespace ds
