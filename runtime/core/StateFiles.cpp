#include "runtime/core/StateFiles.h"

#include "runtime/core/Error.h"
#include "runtime/core/FilePieces.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace ds {

struct StateFiles::Region {
  std::string name;
  uint8_t *memory = nullptr;
  const uint8_t *state = nullptr; // where the state begins of which it is a part
  size_t bytes = 0;               // of whole pages
  uint64_t offset = 0;
  Presence presence = Presence::Absent;
  bool isDirty = false;
  int users = 0;
};

namespace {

// Without a name where the file system can do that; elsewhere the name goes at once.
int openNameless(const std::string &folder) {
  int file = open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (file >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL))
    return file;
  std::string name = folder + "/ds-states-XXXXXX";
  file = mkostemp(name.data(), O_CLOEXEC);
  if (file >= 0)
    unlink(name.c_str());
  return file;
}

template <typename Value> bool isIn(const std::vector<Value> &values, const Value &value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

} // namespace

StateFiles::StateFiles(const std::string &folder, int64_t buffers)
    : folder(folder), buffers(buffers), file(openNameless(folder)) {
  if (file < 0)
    fail(ErrorCode::Io, "nvme_path: cannot write to '", folder, "': ", std::strerror(errno));
  // Signals are for the program's threads.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread = std::thread([this] { work(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

StateFiles::~StateFiles() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    isEnding = true;
  }
  changed.notify_all();
  thread.join();
  close(file);
}

std::shared_ptr<uint8_t> StateFiles::add(const std::string &name, size_t bytes, size_t pieceBytes) {
  const FilePieces pieces(bytes, pieceBytes);
  const size_t all = pieces.bytes, piece = pieces.piece;
  std::lock_guard<std::mutex> lock(mutex);
  if (int error = posix_fallocate(file, static_cast<off_t>(fileBytes), static_cast<off_t>(all)))
    fail(ErrorCode::Io, "nvme_path: '", folder, "' has no room for state '", name, "' of ", bytes,
         " bytes: ", std::strerror(error));
  void *mapped = mmap(nullptr, all, PROT_READ | PROT_WRITE, MAP_SHARED, file, static_cast<off_t>(fileBytes));
  if (mapped == MAP_FAILED)
    fail(ErrorCode::Io, "nvme_path: cannot map state '", name, "' of ", bytes, " bytes: ", std::strerror(errno));
  auto *memory = static_cast<uint8_t *>(mapped);
  for (size_t begin = 0; begin < all; begin += piece) {
    auto region = std::make_unique<Region>();
    region->name = name;
    region->state = memory;
    region->memory = memory + begin;
    region->bytes = std::min(piece, all - begin);
    region->offset = fileBytes + begin;
    regions[region->memory] = std::move(region);
  }
  fileBytes += all;
  moved.bytes += all;
  return {memory, [this, all](uint8_t *state) { remove(state, all); }};
}

void StateFiles::remove(const uint8_t *state, size_t bytes) {
  std::unique_lock<std::mutex> lock(mutex);
  std::vector<Region *> pieces = find(state);
  uint64_t offset = pieces.front()->offset;
  turns.clear();
  current.clear();
  isAsBefore = false;
  for (Region *region : pieces) {
    changed.wait(lock, [&] { return region->presence == Presence::Present || region->presence == Presence::Absent; });
    if (region->presence == Presence::Present)
      leave(region);
    regions.erase(region->memory);
  }
  moved.bytes -= bytes;
  munmap(const_cast<uint8_t *>(state), bytes);
  // Nothing of it is needed; a file system that cannot give it back keeps it until the end.
  (void)fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                  static_cast<off_t>(bytes));
}

StateFiles::Pieces StateFiles::at(const void *memory) {
  std::lock_guard<std::mutex> lock(mutex);
  Pieces pieces;
  pieces.regions = find(memory);
  pieces.bytes = pieces.regions.empty() ? 0 : pieces.regions.front()->bytes;
  return pieces;
}

// Under the mutex, as all that follow but fetch and evict.
std::vector<StateFiles::Region *> StateFiles::find(const void *memory) {
  std::vector<Region *> found;
  for (auto next = regions.find(static_cast<const uint8_t *>(memory));
       next != regions.end() && next->second->state == memory; ++next)
    found.push_back(next->second.get());
  return found;
}

// Reads all pages of a region. Pages that are not in memory are read by whoever touches them even if this fails.
void StateFiles::fetch(Region &region) {
#ifdef MADV_POPULATE_READ
  if (madvise(region.memory, region.bytes, MADV_POPULATE_READ) == 0)
    return;
#endif
  madvise(region.memory, region.bytes, MADV_WILLNEED);
}

// Writes what is new, and gives the pages back, to the page cache, too.
void StateFiles::evict(Region &region, bool isDirty) {
  auto offset = static_cast<off_t>(region.offset), length = static_cast<off_t>(region.bytes);
  if (isDirty &&
      sync_file_range(file, offset, length,
                      SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER) != 0 &&
      errno != EINVAL && errno != ESPIPE) { // file systems without a disk
    std::lock_guard<std::mutex> lock(mutex);
    fault = concat("state '", region.name, "': ", std::strerror(errno));
  }
  madvise(region.memory, region.bytes, MADV_DONTNEED);
  posix_fadvise(file, offset, length, POSIX_FADV_DONTNEED);
}

void StateFiles::work() {
  std::unique_lock<std::mutex> lock(mutex);
  for (;;) {
    changed.wait(lock, [&] { return isEnding || !jobs.empty(); });
    if (jobs.empty())
      return;
    Job job = jobs.front();
    jobs.pop_front();
    Region &region = *job.region;
    bool isDirty = region.isDirty;
    lock.unlock();
    if (job.comes)
      fetch(region);
    else
      evict(region, isDirty);
    lock.lock();
    (job.comes ? moved.read : moved.written) += job.comes || isDirty ? region.bytes : 0;
    region.presence = job.comes ? Presence::Present : Presence::Absent;
    if (!job.comes) {
      region.isDirty = false;
      leave(&region);
      if (isBetweenTurns)
        plan(); // for what had no room when it was planned last
    }
    changed.notify_all();
  }
}

void StateFiles::enter(Region *region) {
  inMemory.push_back(region);
  bytesInMemory += region->bytes;
}

void StateFiles::leave(Region *region) {
  inMemory.erase(std::find(inMemory.begin(), inMemory.end(), region));
  bytesInMemory -= region->bytes;
}

void StateFiles::noteResident() {
  moved.resident = std::max<uint64_t>(moved.resident, inMemory.size());
  moved.residentBytes = std::max(moved.residentBytes, bytesInMemory);
}

void StateFiles::order(Region *region, bool comes) {
  region->presence = comes ? Presence::Coming : Presence::Leaving;
  if (comes) {
    enter(region);
    noteResident();
  }
  jobs.push_back({region, comes});
  changed.notify_all();
}

void StateFiles::report() const {
  if (!fault.empty())
    fail(ErrorCode::Io, "nvme_path: '", folder, "': ", fault);
}

// What the next turns work on comes while there is room; what they do not need goes.
void StateFiles::plan() {
  auto known = turns.find(entry);
  if (!isAsBefore || known == turns.end() || known->second.empty())
    return;
  Turn wanted;
  const std::vector<Turn> &all = known->second;
  for (size_t i = 0; i < all.size() && static_cast<int64_t>(wanted.size()) < buffers; ++i)
    for (Region *region : all[(place + i) % all.size()]) // after the last one, another call begins with the first
      if (static_cast<int64_t>(wanted.size()) < buffers && !isIn(wanted, region))
        wanted.push_back(region);
  for (Region *region : inMemory)
    if (region->presence == Presence::Present && region->users == 0 && !isIn(wanted, region))
      order(region, false);
  for (Region *region : wanted)
    if (region->presence == Presence::Absent && static_cast<int64_t>(inMemory.size()) < buffers)
      order(region, true);
}

// Waits until a region of the turn may come; false where all that could go is being worked on.
bool StateFiles::makeRoom(std::unique_lock<std::mutex> &lock, const Turn &turn) {
  while (static_cast<int64_t>(inMemory.size()) >= buffers) {
    Region *victim = nullptr;
    bool isMoving = false; // what somebody waits for makes room by itself, or may go after it has come
    for (Region *region : inMemory) {
      bool isTurns = isIn(turn, region);
      isMoving |= region->presence == Presence::Leaving || (region->presence == Presence::Coming && !isTurns);
      if (!victim && region->presence == Presence::Present && region->users == 0 && !isTurns)
        victim = region;
    }
    if (victim)
      order(victim, false);
    else if (!isMoving)
      return false;
    if (static_cast<int64_t>(inMemory.size()) >= buffers)
      changed.wait(lock);
  }
  return true;
}

void StateFiles::beginCall(size_t number) {
  std::lock_guard<std::mutex> lock(mutex);
  entry = number;
  place = 0;
  current.clear();
  isAsBefore = turns.count(entry) > 0;
  if (wasLooked)
    sendAway();
  wasLooked = false;
  isBetweenTurns = true;
  plan();
}

void StateFiles::use(const std::vector<Region *> &turn) {
  std::unique_lock<std::mutex> lock(mutex);
  report();
  isBetweenTurns = false;
  auto known = turns.find(entry);
  isAsBefore = isAsBefore && place < known->second.size() && known->second[place] == turn;
  for (Region *region : turn)
    ++region->users;
  auto withdraw = [&] {
    for (Region *region : turn)
      --region->users;
  };
  for (Region *region : turn) {
    changed.wait(lock, [&] { return region->presence != Presence::Leaving; });
    if (region->presence != Presence::Absent)
      continue;
    if (!makeRoom(lock, turn)) {
      withdraw();
      fail(ErrorCode::InvalidArgument, "buffer_count: found ", buffers, ", expected at least ",
           std::max<int64_t>(buffers + 1, static_cast<int64_t>(turn.size())), ": '", region->name,
           "' is needed beside as many other states of files");
    }
    order(region, true);
  }
  for (Region *region : turn)
    changed.wait(lock, [&] { return region->presence == Presence::Present; });
  current.push_back(turn);
  ++place;
}

void StateFiles::done(const std::vector<Region *> &turn, bool areWritten) {
  std::unique_lock<std::mutex> lock(mutex);
  for (Region *region : turn) {
    --region->users;
    region->isDirty |= areWritten;
  }
  isBetweenTurns = true;
  plan();
}

void StateFiles::endCall() {
  std::unique_lock<std::mutex> lock(mutex);
  for (auto &[memory, region] : regions)
    region->users = 0; // a call that failed is done with none of them
  if (!current.empty())
    turns[entry] = std::move(current);
  current.clear();
  place = 0;
  isAsBefore = turns.count(entry) > 0;
  isBetweenTurns = false;
  plan();
}

void StateFiles::release(const void *memory, size_t bytes) {
  const auto *begin = static_cast<const uint8_t *>(memory), *end = begin + bytes;
  std::lock_guard<std::mutex> lock(mutex);
  auto next = regions.upper_bound(begin);
  if (next != regions.begin())
    --next;
  for (; next != regions.end() && next->first < end; ++next) {
    const Region &region = *next->second;
    if (region.memory + region.bytes <= begin || region.users != 0 || region.presence != Presence::Absent)
      continue;
    size_t first = begin > region.memory ? static_cast<size_t>(begin - region.memory) : 0;
    size_t last = std::min(region.bytes, wholePages(static_cast<size_t>(end - region.memory)));
    first -= first % wholePages(1);
    // All of them are in the file already: what an entry has written left memory by being written there.
    madvise(region.memory + first, last - first, MADV_DONTNEED);
    posix_fadvise(file, static_cast<off_t>(region.offset + first), static_cast<off_t>(last - first),
                  POSIX_FADV_DONTNEED);
  }
}

void StateFiles::looked() {
  std::lock_guard<std::mutex> lock(mutex);
  wasLooked = true;
}

// What somebody has looked at is in memory, whatever we know of it.
void StateFiles::sendAway() {
  for (auto &[memory, region] : regions) {
    if (region->users != 0 || region->presence == Presence::Coming || region->presence == Presence::Leaving)
      continue;
    if (region->presence == Presence::Absent)
      enter(region.get());
    order(region.get(), false);
  }
}

void StateFiles::touched(const void *memory) {
  std::unique_lock<std::mutex> lock(mutex);
  for (Region *region : find(memory)) {
    if (region->users != 0)
      continue;
    // What was written while it left has to leave once more.
    changed.wait(lock, [&] { return region->presence == Presence::Present || region->presence == Presence::Absent; });
    region->isDirty = true;
    if (region->presence == Presence::Absent)
      enter(region);
    noteResident();
    order(region, false);
    // Whoever restores states writes faster than a disk: there is room for what is written next.
    changed.wait(
        lock, [&] { return static_cast<int64_t>(inMemory.size()) < buffers || region->presence == Presence::Absent; });
  }
}

StateFiles::Counters StateFiles::counters() const {
  std::lock_guard<std::mutex> lock(mutex);
  return moved;
}

} // namespace ds
