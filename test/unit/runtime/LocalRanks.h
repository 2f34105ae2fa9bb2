// Ranks as threads of a test: gather as a plain copy between them.
#ifndef DEEPSTRIDE_TEST_UNIT_RUNTIME_LOCALRANKS_H
#define DEEPSTRIDE_TEST_UNIT_RUNTIME_LOCALRANKS_H

#include "runtime/core/Error.h"
#include "runtime/training/Ranks.h"

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace ds::test {

class LocalRanks {
public:
  explicit LocalRanks(unsigned world) : world(world) {}

  // Runs `body` on every rank and returns the messages of what it threw, by rank.
  std::vector<std::string> run(const std::function<void(Ranks &)> &body) {
    std::vector<std::string> messages(world);
    std::vector<std::thread> threads;
    for (unsigned rank = 0; rank < world; ++rank)
      threads.emplace_back([&, rank] {
        End end(*this, rank);
        try {
          body(end);
        } catch (const std::exception &error) {
          messages[rank] = error.what();
          leave(concat("rank ", rank, ": ", error.what()));
        }
      });
    for (std::thread &thread : threads)
      thread.join();
    return messages;
  }

  // Called once for each gather, while all ranks wait in it.
  std::function<void(const std::string &what)> meeting;
  uint64_t gathered = 0; // bytes of one rank

private:
  class End : public Ranks {
  public:
    End(LocalRanks &hub, unsigned number) : hub(hub), number(number) {}
    unsigned rank() const override { return number; }
    unsigned world() const override { return hub.world; }
    void gather(const std::string &what, const void *own, size_t bytes, void *all) override {
      hub.gather(what, number, own, bytes, all);
    }

  private:
    LocalRanks &hub;
    unsigned number;
  };

  void gather(const std::string &what, unsigned rank, const void *own, size_t bytes, void *all) {
    std::unique_lock<std::mutex> lock(mutex);
    changed.wait(lock, [&] { return !isLeaving || !failure.empty(); });
    if (!failure.empty())
      fail(ErrorCode::Collective, failure);
    if (here == 0) {
      site = what;
      size = bytes;
      buffer.assign(bytes * world, '\0');
    }
    if (failure.empty() && (site != what || size != bytes))
      failure = concat("ranks disagree: ", what, " of ", bytes, " bytes and ", site, " of ", size);
    if (failure.empty() && bytes != 0)
      buffer.replace(rank * bytes, bytes, static_cast<const char *>(own), bytes);
    if (++here == world && failure.empty()) {
      if (meeting)
        meeting(what);
      gathered += bytes;
      isLeaving = true;
    }
    changed.notify_all();
    changed.wait(lock, [&] { return isLeaving || !failure.empty(); });
    if (!isLeaving) // what all have given is complete, whoever fails afterwards
      fail(ErrorCode::Collective, failure);
    if (bytes != 0)
      std::memcpy(all, buffer.data(), buffer.size());
    if (--here == 0)
      isLeaving = false;
    changed.notify_all();
  }

  void leave(const std::string &reason) {
    std::lock_guard<std::mutex> lock(mutex);
    if (failure.empty())
      failure = reason;
    changed.notify_all();
  }

  unsigned world, here = 0;
  std::mutex mutex;
  std::condition_variable changed;
  std::string site, buffer, failure;
  size_t size = 0;
  bool isLeaving = false;
};

} // namespace ds::test
#endif
