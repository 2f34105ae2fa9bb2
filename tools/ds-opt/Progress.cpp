// A thread of its own redraws the line: passes run for seconds without a word. It reads the stage that the crash
// handler keeps, too.
#include "tools/ds-opt/Progress.h"

#include "tools/ds-opt/Crash.h"

#include <chrono>
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unistd.h>

namespace deepstride {

namespace {

using Clock = std::chrono::steady_clock;

constexpr auto patience = std::chrono::seconds(2); // what is done by then needs no line
constexpr auto period = std::chrono::milliseconds(200);
constexpr char eraseLine[] = "\r\x1b[K";

/// Not by LLVM's stream, which is the main thread's.
void show(const std::string &text) {
  if (write(STDERR_FILENO, text.data(), text.size()) < 0)
    return; // whoever watched has gone
}

struct Line {
  std::mutex mutex;
  std::condition_variable change;
  bool isDrawn = false, isOver = false;
  Clock::time_point start;
  std::optional<std::thread> thread;

  void erase() {
    if (isDrawn)
      show(eraseLine);
    isDrawn = false;
  }

  void draw() {
    auto seconds = std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - start).count();
    show(eraseLine + ("ds-opt: " + currentStage()) + ", " + std::to_string(seconds) + " s");
    isDrawn = true;
  }

  void run() {
    std::unique_lock<std::mutex> lock(mutex);
    if (change.wait_for(lock, patience, [&] { return isOver; }))
      return;
    do
      draw();
    while (!change.wait_for(lock, period, [&] { return isOver; }));
  }
};

} // namespace

static Line &line() {
  static Line line;
  return line;
}

bool Progress::isWatched() { return isatty(STDERR_FILENO) == 1; }

Progress::Progress() {
  if (!isWatched() || line().thread)
    return;
  line().isOver = false;
  line().start = Clock::now();
  // Signals that end the process are the main thread's.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  line().thread.emplace([] { line().run(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Progress::~Progress() {
  if (!line().thread)
    return;
  {
    std::lock_guard<std::mutex> lock(line().mutex);
    line().isOver = true;
  }
  line().change.notify_all();
  line().thread->join();
  line().thread.reset();
  line().erase();
}

void clearProgress() {
  std::lock_guard<std::mutex> lock(line().mutex);
  line().erase();
}

} // namespace deepstride
