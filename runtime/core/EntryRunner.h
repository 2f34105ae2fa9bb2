// Runs one entry of a package for one session: resolves the numbers that compiled code uses to buffers and sizes, and
// is the services behind its ds_call.
#ifndef DEEPSTRIDE_RUNTIME_CORE_ENTRYRUNNER_H
#define DEEPSTRIDE_RUNTIME_CORE_ENTRYRUNNER_H

#include "runtime/abi/ds_abi.h"
#include "runtime/comm/Communicator.h"
#include "runtime/core/Arrivals.h"
#include "runtime/core/Binding.h"
#include "runtime/core/Error.h"
#include "runtime/core/Package.h"
#include "runtime/core/Plan.h"
#include "runtime/core/StateStore.h"
#include "runtime/core/ThreadPool.h"

#include <atomic>
#include <map>
#include <optional>
#include <vector>

namespace ds {

// Sees every launch after it is done; the pointers hold until the next launch.
class LaunchObserver {
public:
  struct Event {
    const EntryInfo &entry;
    uint32_t site; // index into entry.launches
    int64_t startNanoseconds, endNanoseconds;
    int64_t grid;
    const std::vector<int64_t> &symbols;
    void *const *buffers;        // one per buffer of the entry
    const uint64_t *bufferBytes; // what each holds at least
  };
  virtual ~LaunchObserver() = default;
  virtual void afterLaunch(const Event &event) = 0;
};

// What others have to do with a call.
struct CallWatch {
  LaunchObserver *observer = nullptr;
  const std::atomic<uint64_t> *cancellations = nullptr; // null: nobody cancels
  uint64_t cancellationsBefore = 0;                     // this call began

  // Throws Error(Cancelled) when there was one since.
  void check() const;
};

class EntryRunner {
public:
  // The workspace is that of all entries of a session, one of which runs at a time.
  EntryRunner(const Package &package, size_t entry, ThreadPool &pool, StateStore &states, AlignedBuffer &workspace,
              Communicator *communicator, Arrivals &arrivals);
  EntryRunner(const EntryRunner &) = delete;
  EntryRunner &operator=(const EntryRunner &) = delete;

  // Outputs that the vector brings lend their memory to the new ones; those in borrowed memory must have the shapes
  // that the call gives.
  void run(const std::vector<TensorView> &inputs, const Pins &pins, std::vector<Tensor> &outputs,
           const CallWatch &watch);

private:
  void bindFiles();
  void bindBuffers(const std::vector<TensorView> &inputs);
  void execute();
  void finish();

  void launch(const ds_launch &request);
  void gather(const ds_launch &request);
  void runKernel(const ds_launch &request, WorkRange items, size_t scratchBytes);
  void runFromFiles(const ds_launch &request, int64_t grid, size_t scratchBytes);
  std::string indexFault(uint32_t site) const;
  void define(uint32_t symbol, int64_t value);
  void shapeOutput(size_t output, Shape shape);
  // A symbol that is defined again starts an iteration: what was defined after it belongs to the one before.
  void forgetSince(uint32_t symbol);
  void startCollective(const ds_collective &request);
  void waitCollective(const ds_collective &request);
  void addErrors(const CollectiveInfo &info, const CollectivePartInfo &described, CollectivePart &part);
  CollectivePart partOf(const CollectiveInfo &info, const CollectivePartInfo &described);
  // States of files that a launch or a collective works on, of each file.
  using FileTurns = std::map<StateFiles *, std::vector<StateFiles::Region *>>;
  void addInFile(uint32_t buffer, FileTurns &turns) const;
  WorkRange pieceAt(uint32_t buffer, int64_t element) const;
  void addPiece(uint32_t buffer, int64_t element, FileTurns &turns) const;
  static void use(const FileTurns &turns);
  static void done(const FileTurns &turns, bool areWritten);
  void *memoryOf(uint32_t buffer, ElementType type, int64_t count);
  void settle(uint32_t buffer);
  std::vector<State *> statesOf(const CollectiveInfo &info) const;
  void willWrite(uint32_t buffer);

  int64_t sizeAt(uint32_t index, const char *what) const;
  bool isKnown(const std::vector<uint32_t> &symbols) const;
  // Runs a service; whatever it throws is kept for the end of the call, since it may not cross compiled code.
  template <typename Action> int32_t serve(Action action) noexcept;

  static int32_t serveLaunch(void *context, const ds_launch *request);
  static int32_t serveDefine(void *context, uint32_t symbol, int64_t value);
  static int32_t serveStart(void *context, const ds_collective *request);
  static int32_t serveWait(void *context, const ds_collective *request);
  static const ds_services services;

  const Package &package;
  const EntryInfo &entry;
  size_t number; // of the entry
  ds_entry function;
  ThreadPool &pool;
  StateStore &states;
  Communicator *communicator;
  Arrivals &arrivals;
  ComputedParts computed;
  PlanCache plans;

  // Of the call that is running; kept between calls for their memory.
  const Plan *plan = nullptr;
  std::vector<int64_t> symbols, sizes;
  std::vector<uint8_t> symbolKnown, sizeKnown;
  std::vector<uint32_t> defined; // computed symbols in the order of their definitions
  std::vector<void *> buffers;
  std::vector<State *> boundStates;        // one per state of the entry
  std::vector<StateStore::InFile> inFiles; // one per buffer, where there are files
  std::vector<uint64_t> bufferBytes;
  std::vector<Tensor> *outputs = nullptr;
  CallWatch watch;
  AlignedBuffer &workspace;
  std::map<size_t, AlignedBuffer> dynamicBuffers; // workspace that depends on computed symbols;
                                                  // where bounds are watched all of it, and constants
  std::vector<AlignedBuffer> inputCopies;         // of inputs that are not aligned
  std::vector<void *> launchBuffers;
  std::vector<int64_t> launchSizes;
  std::vector<int32_t> kernelResults;
  struct OpenCollective {
    std::optional<uint64_t> ticket; // none: nothing was sent
    FileTurns inFiles;
  };
  std::map<const ds_collective *, OpenCollective> openCollectives;
  std::optional<Error> failure;
};

// What a ds_result of a kernel or an entry means.
std::string resultText(int32_t code);

} // namespace ds
#endif
