#include "runtime/training/BitSchedule.h"

#include "runtime/core/Error.h"

#include <algorithm>
#include <cmath>

namespace ds {

// Periods grow by up to 10 for each bit; later ones are never reached.
constexpr int64_t longest = int64_t(1) << 60;

static int64_t grown(int64_t period, int64_t factor) {
  return period > longest / (2 * factor) ? longest : period * 2 * factor;
}

BitSchedule::BitSchedule(const QuantizationSettings &settings, size_t blocks) : settings(settings), all(blocks) {
  for (Block &block : all) {
    block.bits = settings.startBits;
    block.period = settings.period;
  }
}

void BitSchedule::setFactors(const std::vector<int64_t> &factors) {
  for (size_t i = 0; i < all.size(); ++i)
    all[i].factor = factors[i];
}

void BitSchedule::advance() {
  bool hadBegun = hasBegun();
  ++done;
  if (!hasBegun())
    return;
  for (Block &block : all) {
    if (block.bits > settings.targetBits && counter() >= block.period) {
      --block.bits;
      block.period = grown(block.period, block.factor);
      block.age = 0;
    } else if (hadBegun) {
      ++block.age;
    }
  }
}

double BitSchedule::levels(size_t block) const {
  return hasBegun() ? std::ldexp(1.0, static_cast<int>(all[block].bits)) : 0;
}

double BitSchedule::share(size_t block) const {
  if (!settings.isMixed || !hasBegun())
    return 0;
  // Of the number of updates: subtracting the ratio that often would not end at 0.
  double share = 1 - settings.changeRatio * static_cast<double>(all[block].age);
  return share < 1e-9 ? 0 : share;
}

bool BitSchedule::isAboutToDrop() const {
  return std::any_of(all.begin(), all.end(), [&](const Block &block) {
    return block.bits > settings.targetBits && counter() + 1 >= block.period;
  });
}

int64_t BitSchedule::updatesToTarget(const Block &block, int64_t factor) const {
  // The update of the last change so far, or of the first rounding; one update drops one bit.
  int64_t last = hasBegun() ? done - block.age : firstRounding();
  int64_t next = done + 1, period = block.period;
  for (int64_t bits = block.bits; bits > settings.targetBits; --bits, period = grown(period, factor)) {
    last = std::max(next, settings.offset + period);
    next = last + 1;
  }
  if (settings.isMixed)
    last += static_cast<int64_t>(std::min(std::ceil(1 / settings.changeRatio - 1e-9), static_cast<double>(longest)));
  return std::max<int64_t>(last - done, 0);
}

int64_t BitSchedule::updatesToTarget(int64_t factor) const {
  int64_t most = 0;
  for (const Block &block : all)
    most = std::max(most, updatesToTarget(block, factor));
  return most;
}

const std::vector<std::pair<const char *, int64_t QuantizationSettings::*>> &BitSchedule::numbers() {
  static const std::vector<std::pair<const char *, int64_t QuantizationSettings::*>> list = {
      {"start_bits", &QuantizationSettings::startBits},
      {"target_bits", &QuantizationSettings::targetBits},
      {"quantize_period", &QuantizationSettings::period},
      {"schedule_offset", &QuantizationSettings::offset}};
  return list;
}

nlohmann::json BitSchedule::state() const {
  nlohmann::json state = {{"updates", done}, {"quantize_change_ratio", settings.changeRatio}};
  for (const auto &[name, member] : numbers())
    state[name] = settings.*member;
  for (const Block &block : all) {
    state["bits"].push_back(block.bits);
    state["periods"].push_back(block.period);
    state["factors"].push_back(block.factor);
    state["ages"].push_back(block.age);
  }
  return state;
}

void BitSchedule::restore(const nlohmann::json &state) {
  auto member = [&](const char *name) {
    return state.is_object() && state.contains(name) ? state[name] : nlohmann::json();
  };
  auto number = [](const nlohmann::json &value, const char *name, int64_t least, int64_t most) {
    int64_t found = value.is_number_integer() ? value.get<int64_t>() : least - 1;
    if (found < least || found > most)
      fail(ErrorCode::BadFile, "quantization: ", name, ": found ", value.dump(), ", expected an integer of ", least,
           " to ", most);
    return found;
  };
  auto item = [&](const char *name, size_t place) {
    nlohmann::json list = member(name);
    if (!list.is_array() || list.size() != all.size())
      fail(ErrorCode::BadFile, "quantization: ", name, ": found ", list.dump(), ", expected a list of ", all.size());
    return list[place];
  };
  constexpr int64_t widest = 24, mostFactor = 5;
  QuantizationSettings found = settings;
  for (const auto &[name, own] : numbers()) {
    bool isWidth = own == &QuantizationSettings::startBits || own == &QuantizationSettings::targetBits;
    found.*own = number(member(name), name, own == &QuantizationSettings::offset ? 0 : 1, isWidth ? widest : longest);
  }
  nlohmann::json ratio = member("quantize_change_ratio");
  found.changeRatio = ratio.is_number() ? ratio.get<double>() : 0;
  if (!(found.changeRatio > 0 && found.changeRatio <= 1))
    fail(ErrorCode::BadFile, "quantization: quantize_change_ratio: found ", ratio.dump(),
         ", expected a number in (0, 1]");
  int64_t updates = number(member("updates"), "updates", 0, longest);
  std::vector<Block> blocks;
  for (size_t i = 0; i < all.size(); ++i)
    blocks.push_back({number(item("bits", i), "bits", found.targetBits, found.startBits),
                      number(item("periods", i), "periods", 1, longest),
                      number(item("factors", i), "factors", 1, mostFactor),
                      number(item("ages", i), "ages", 0, updates)});
  settings = found;
  done = updates;
  all = std::move(blocks);
}

std::string BitSchedule::difference(const BitSchedule &expected) const {
  for (const auto &[name, own] : numbers())
    if (settings.*own != expected.settings.*own)
      return concat(name, ": found ", settings.*own, ", expected ", expected.settings.*own);
  if (settings.isMixed && settings.changeRatio != expected.settings.changeRatio)
    return concat("quantize_change_ratio: found ", settings.changeRatio, ", expected ", expected.settings.changeRatio);
  return "";
}

} // namespace ds
