#include "tools/ds-run/training/Watch.h"
#include "tools/ds-run/Messages.h"

#include "runtime/core/Error.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <string_view>
#include <unistd.h>

namespace ds {

Watch::Watch(Trainer &trainer, Ranks &ranks)
    : trainer(trainer), ranks(ranks), isTerminal(ranks.isFirst() && isatty(STDERR_FILENO) == 1) {}

void Watch::start(int64_t firstStep, int64_t lastStep) {
  began = drawn = std::chrono::steady_clock::now();
  first = firstStep;
  last = lastStep;
  still = trainer.parameters();
  trainer.touchStates();
  beginning = hashes();
}

void Watch::clear() {
  if (isDrawn)
    std::fprintf(stderr, "\r\033[K");
  isDrawn = false;
}

void Watch::say(const std::string &line) {
  if (!ranks.isFirst())
    return;
  clear();
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

void Watch::warn(const std::string &text) {
  if (!ranks.isFirst())
    return;
  clear();
  printMessage("warning: ", text);
}

std::vector<uint64_t> Watch::hashes() {
  std::vector<uint64_t> found(still.size());
  trainer.session().withStates([&](StateStore &states) {
    for (const StatePiece &state : states.pieces())
      if (auto at = std::find(still.begin(), still.end(), state.name); at != still.end())
        found[static_cast<size_t>(at - still.begin())] = std::hash<std::string_view>()(
            std::string_view(static_cast<const char *>(state.data),
                             static_cast<size_t>(state.end - state.begin) * typeSize(state.type)));
  });
  return found;
}

bool Watch::hasGradient(const std::string &parameter) {
  bool isFound = false;
  trainer.session().withStates([&](StateStore &states) {
    for (const StatePiece &state : states.pieces()) {
      if (state.name != Trainer::gradientOf(parameter))
        continue;
      for (int64_t i = 0; !isFound && i < state.end - state.begin; ++i)
        isFound = loadDouble(state.type, state.data, static_cast<size_t>(i)) != 0;
    }
  });
  return isFound;
}

// A parameter moves where a bit of it changes, be it by its gradient, by momentum or by decay.
void Watch::watchMovement(const StepRecord &record) {
  constexpr int64_t watched = 5;
  bool haveAllMoved = movingSteps > 0 && still.empty(); // a look at parameters waits for those on their way
  if (record.overflowed || movingSteps >= watched || haveAllMoved)
    return;
  if (record.lr == 0) {
    if (movingSteps == 0 && seenSteps + 1 == watched)
      warn(concat("the learning rate was 0 in each of the first ", watched, " steps: nothing moves"));
    return;
  }
  ++movingSteps;
  std::vector<uint64_t> now = hashes();
  std::vector<uint8_t> moved;
  for (size_t i = 0; i < still.size(); ++i)
    moved.push_back(now[i] != beginning[i]);
  moved = onAnyRank("parameters that move", moved);
  size_t left = 0;
  for (size_t i = 0; i < still.size(); ++i)
    if (!moved[i]) {
      still[left] = still[i];
      beginning[left++] = beginning[i];
    }
  still.resize(left);
  beginning.resize(left);
  if (movingSteps < watched)
    return;
  std::vector<uint8_t> derived;
  for (const std::string &name : still)
    derived.push_back(hasGradient(name));
  derived = onAnyRank("gradients", derived);
  for (size_t i = 0; i < still.size(); ++i)
    warn(derived[i] ? concat("the updates of '", still[i], "' were lost in rounding in each of the first ", watched,
                             " steps: it does not move")
                    : concat("the gradient of '", still[i], "' was 0 in each of the first ", watched,
                             " steps: it does not move"));
}

std::vector<uint8_t> Watch::onAnyRank(const std::string &what, std::vector<uint8_t> own) {
  std::vector<uint8_t> all = ranks.gatherValues(what, own);
  for (size_t i = 0; i < all.size(); ++i)
    own[i % own.size()] |= all[i];
  return own;
}

void Watch::watchLoss(const StepRecord &record) {
  // Of noise around 0 a multiple says nothing: losses have grown where they are far above all that the run began with.
  constexpr int64_t calmSteps = 20;
  constexpr double manyTimes = 4;
  if (record.overflowed)
    return;
  average = seenSteps ? 0.9 * average + 0.1 * record.loss : record.loss;
  best = seenSteps ? std::min(best, average) : average;
  if (seenSteps < calmSteps)
    level = std::max(level, std::abs(record.loss));
  ++seenSteps;
  if (hasWarned || seenSteps <= calmSteps)
    return;
  double rise = average - best;
  if (rise > std::max(1.0, std::abs(best)) || (level > 0 && rise > manyTimes * level)) {
    hasWarned = true;
    char text[160];
    std::snprintf(text, sizeof(text),
                  "step %lld: the loss grows: its average is %.4g, and was %.4g; a lower learning rate may help",
                  static_cast<long long>(record.step), average, best);
    warn(text);
  }
}

void Watch::seen(const StepRecord &record) {
  using namespace std::chrono;
  auto now = steady_clock::now();
  if (firstSamples < 0)
    firstSamples = record.samples;
  watchMovement(record);
  watchLoss(record);
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
