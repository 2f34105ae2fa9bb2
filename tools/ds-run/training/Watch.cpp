#include "tools/ds-run/training/Watch.h"

#include "runtime/core/Error.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <unistd.h>

namespace ds {

Watch::Watch(Trainer &trainer) : trainer(trainer), isTerminal(isatty(STDERR_FILENO) == 1) {}

void Watch::start(int64_t firstStep, int64_t lastStep) {
  began = drawn = std::chrono::steady_clock::now();
  first = firstStep;
  last = lastStep;
}

void Watch::clear() {
  if (isDrawn)
    std::fprintf(stderr, "\r\033[K");
  isDrawn = false;
}

void Watch::say(const std::string &line) {
  clear();
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

// Parameters of `still` whose gradient has no bit but signs.
std::vector<std::string> Watch::stillParameters() {
  std::vector<std::string> found;
  trainer.session().withStates([&](StateStore &states) {
    for (NamedView &state : states.views())
      for (const std::string &name : still)
        if (state.name == Trainer::gradientOf(name)) {
          int64_t count = elementCount(state.view.shape);
          bool isZero = true;
          for (int64_t i = 0; isZero && i < count; ++i)
            isZero = loadDouble(state.view.type, state.view.data, static_cast<size_t>(i)) == 0;
          if (isZero)
            found.push_back(name);
        }
  });
  return found;
}

void Watch::seen(const StepRecord &record) {
  using namespace std::chrono;
  auto now = steady_clock::now();
  if (firstSamples < 0) {
    firstSamples = record.samples;
    still = trainer.parameters();
  }
  constexpr int64_t stillSteps = 5, calmSteps = 20;
  if (!record.overflowed && seenSteps < stillSteps && !still.empty()) {
    still = stillParameters();
    if (seenSteps + 1 == stillSteps)
      for (const std::string &name : still) {
        clear();
        std::fprintf(stderr,
                     "ds-run: warning: the gradient of '%s' was 0 in each of the first %lld steps: it does not move\n",
                     name.c_str(), static_cast<long long>(stillSteps));
      }
  }
  if (!record.overflowed) {
    average = seenSteps ? 0.9 * average + 0.1 * record.loss : record.loss;
    best = seenSteps ? std::min(best, average) : average;
    ++seenSteps;
    if (!hasWarned && seenSteps > calmSteps && average > best + std::max(1.0, std::abs(best))) {
      hasWarned = true;
      clear();
      std::fprintf(
          stderr,
          "ds-run: warning: step %lld: the loss grows: its average is %.4g, and was %.4g; a lower learning rate "
          "may help\n",
          static_cast<long long>(record.step), average, best);
    }
  }
  if (!isTerminal || now - drawn < milliseconds(100))
    return;
  drawn = now;
  double seconds = duration<double>(now - began).count();
  auto done = static_cast<double>(record.step + 1 - first), left = static_cast<double>(last - record.step - 1);
  double eta = done > 0 ? seconds / done * std::max(left, 0.0) : 0;
  double rate = seconds > 0 ? static_cast<double>(record.samples - firstSamples) / seconds : 0;
  std::fprintf(stderr, "\r\033[Kstep %lld/%lld  loss %.4g  %.1f samples/s  %02d:%02d:%02d left",
               static_cast<long long>(record.step + 1), static_cast<long long>(last), record.loss, rate,
               static_cast<int>(eta / 3600), static_cast<int>(eta / 60) % 60, static_cast<int>(eta) % 60);
  isDrawn = true;
}

void Watch::finish() { clear(); }

} // namespace ds
