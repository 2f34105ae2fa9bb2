// States that live in a file: mapped, so that whoever looks at them finds their values, and in memory only while an
// entry works on them. A state is one region, or several where it is to be in memory piece by piece.
//
// A call uses regions in some order. The next call of the same entry is taken to use them in that order again, which
// decides what is read ahead, and what is written behind because others are needed sooner. A wrong guess costs time,
// never values: the mapping is the state, whether its pages are in memory or not.
#ifndef DEEPSTRIDE_RUNTIME_CORE_STATEFILES_H
#define DEEPSTRIDE_RUNTIME_CORE_STATEFILES_H

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace ds {

class StateFiles {
public:
  struct Region;

  // A file without a name in this folder; at most so many regions are in memory while entries run. Throws Error(Io).
  StateFiles(const std::string &folder, int64_t buffers);
  ~StateFiles();
  StateFiles(const StateFiles &) = delete;
  StateFiles &operator=(const StateFiles &) = delete;

  // The regions of a state in the order of its bytes, each of `bytes` but for the last one; none: it is no state of
  // here.
  struct Pieces {
    std::vector<Region *> regions;
    size_t bytes = 0;
  };

  // Room for a state, of zeros, which the file system has set aside: writing to it never fails for want of space. Cut
  // into pieces of at most so many bytes, but of whole pages. Gone with the last pointer. Throws Error(Io) naming the
  // state.
  std::shared_ptr<uint8_t> add(const std::string &name, size_t bytes, size_t pieceBytes);
  // Between calls somebody has written to a state: it goes to the file.
  void touched(const void *memory);
  // Bytes that somebody has looked at, and will not again soon, go unless their region is in memory for an entry.
  void release(const void *memory, size_t bytes);
  // Somebody looks at regions until the next call begins.
  void looked();
  Pieces at(const void *memory);

  // A call of the entry with this number begins.
  void beginCall(size_t entry);
  // Regions that are worked on until `done`, all of them at a time. Returns when they are in memory. Throws Error(Io)
  // for a disk that fails, Error(InvalidArgument) for more than there are buffers.
  void use(const std::vector<Region *> &regions);
  void done(const std::vector<Region *> &regions, bool areWritten);
  void endCall();

  struct Counters {
    uint64_t bytes = 0, read = 0, written = 0;
    uint64_t resident = 0, residentBytes = 0; // the most at a time
  };
  Counters counters() const;

private:
  enum class Presence : uint8_t { Absent, Coming, Present, Leaving };
  struct Job {
    Region *region;
    bool comes;
  };
  // Regions that one launch works on.
  using Turn = std::vector<Region *>;

  void remove(const uint8_t *state, size_t bytes);
  void work();
  void fetch(Region &region);
  void evict(Region &region, bool isDirty);
  bool makeRoom(std::unique_lock<std::mutex> &lock, const Turn &turn);
  void plan();
  void enter(Region *region);
  void leave(Region *region);
  void noteResident();
  void sendAway();
  std::vector<Region *> find(const void *memory);
  void order(Region *region, bool comes);
  void report() const;

  std::string folder;
  int64_t buffers;
  int file = -1;
  uint64_t fileBytes = 0;

  mutable std::mutex mutex;
  std::condition_variable changed;
  std::map<const uint8_t *, std::unique_ptr<Region>> regions; // by their memory
  std::deque<Job> jobs;
  bool isEnding = false;
  std::string fault;              // of the disk
  std::vector<Region *> inMemory; // all that are not absent
  uint64_t bytesInMemory = 0;
  Counters moved;

  size_t entry = 0, place = 0;
  std::map<size_t, std::vector<Turn>> turns; // of the last call of each entry
  std::vector<Turn> current;
  bool isAsBefore = false, wasLooked = false;
  bool isBetweenTurns = false; // of a call: nobody waits for the room that is left
  std::thread thread;
};

} // namespace ds
#endif
