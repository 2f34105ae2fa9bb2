#include "test/unit/runtime/comm/OneBitOracle.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace ds::test {
namespace {

int64_t pick(std::mt19937 &random, int64_t least, int64_t most) {
  return std::uniform_int_distribution<int64_t>(least, most)(random);
}

// In the memory of what no tensor covers: must stay.
constexpr double sentinel = 7.25;

} // namespace

template <typename T>
OneBitOracle<T>::OneBitOracle(std::mt19937 &random, unsigned world, int64_t largestShard) : world(world) {
  shard = 8 * pick(random, 0, largestShard / 8);
  for (int64_t at = 0; at < size();) {
    at += pick(random, 0, 2) ? 0 : pick(random, 0, 70);
    int64_t count = std::min(pick(random, 0, std::max<int64_t>(size() / 2, 3)), size() - at);
    if (count < 0 || pick(random, 0, 9) == 0)
      break;
    segments.emplace_back(at, count);
    at += count;
  }
  begin();
}

template <typename T> OneBitOracle<T>::OneBitOracle(unsigned world, int64_t elements) : world(world) {
  while (shard * world < elements)
    shard = (elements + world * 8 - 1) / (world * 8) * 8;
  segments.emplace_back(0, elements);
  begin();
}

template <typename T> void OneBitOracle<T>::begin() {
  isCovered.assign(size_t(size()), false);
  for (auto [offset, count] : segments)
    for (int64_t i = 0; i < count; ++i)
      isCovered[size_t(offset + i)] = true;
  std::vector<T> blank(isCovered.size());
  for (size_t i = 0; i < blank.size(); ++i)
    blank[i] = isCovered[i] ? T(0) : T(sentinel);
  inputs.assign(world, blank);
  workerErrors.assign(world, blank);
  serverErrors = blank;
  result = blank;
}

template <typename T> void OneBitOracle<T>::drawInputs(std::mt19937 &random) {
  std::normal_distribution<double> normal(0, 1);
  T common = static_cast<T>(normal(random)); // so that means are not zeros
  for (std::vector<T> &values : inputs)
    for (size_t i = 0; i < values.size(); ++i)
      if (isCovered[i])
        values[i] = pick(random, 0, 50) ? static_cast<T>(normal(random) + 0.3 * common) : T(0);
}

template <typename T> float OneBitOracle<T>::scaleOf(const std::vector<T> &values, int64_t from, int64_t to) const {
  long double sum = 0;
  int64_t count = 0;
  for (int64_t i = from; i < to; ++i)
    if (isCovered[size_t(i)]) {
      sum += static_cast<long double>(values[size_t(i)]) * static_cast<long double>(values[size_t(i)]);
      ++count;
    }
  return count == 0 ? 0 : static_cast<float>(std::sqrt(sum) / std::sqrt(static_cast<long double>(count)));
}

template <typename T> void OneBitOracle<T>::step() {
  std::vector<std::vector<T>> sent(world, std::vector<T>(isCovered.size()));
  for (unsigned rank = 0; rank < world; ++rank) {
    std::vector<T> c = inputs[rank];
    for (size_t i = 0; i < c.size(); ++i)
      c[i] = inputs[rank][i] + workerErrors[rank][i];
    float scale = scaleOf(c, 0, size());
    for (size_t i = 0; i < c.size(); ++i)
      if (isCovered[i]) {
        sent[rank][i] = c[i] < 0 ? -T(scale) : T(scale);
        workerErrors[rank][i] = c[i] - sent[rank][i];
      }
  }
  std::vector<T> y(isCovered.size());
  for (size_t i = 0; i < y.size(); ++i) {
    T sum = sent[0][i];
    for (unsigned rank = 1; rank < world; ++rank)
      sum = sum + sent[rank][i];
    sum = sum / static_cast<T>(world);
    y[i] = sum + serverErrors[i];
  }
  for (unsigned owner = 0; owner < world; ++owner) {
    float scale = scaleOf(y, owner * shard, (owner + 1) * shard);
    for (auto i = size_t(owner * shard); i < size_t((owner + 1) * shard); ++i)
      if (isCovered[i]) {
        result[i] = y[i] < 0 ? -T(scale) : T(scale);
        serverErrors[i] = y[i] - result[i];
      }
  }
}

template <typename T>
OneBitMemory<T>::OneBitMemory(const OneBitOracle<T> &oracle, unsigned rank)
    : rank(rank), workerError(oracle.workerErrors[rank]),
      serverError(oracle.serverErrors.begin() + rank * oracle.shard,
                  oracle.serverErrors.begin() + (rank + 1) * oracle.shard) {
  for (auto [offset, count] : oracle.segments)
    tensors.emplace_back(size_t(count));
  load(oracle);
}

template <typename T> void OneBitMemory<T>::load(const OneBitOracle<T> &oracle) {
  for (size_t s = 0; s < tensors.size(); ++s)
    std::copy_n(oracle.inputs[rank].begin() + oracle.segments[s].first, tensors[s].size(), tensors[s].begin());
}

template <typename T> CollectivePart OneBitMemory<T>::part(const OneBitOracle<T> &oracle) {
  CollectivePart part;
  part.shard = oracle.shard;
  part.end = oracle.size();
  for (size_t s = 0; s < tensors.size(); ++s)
    part.whole.push_back({tensors[s].data(), oracle.segments[s].first, oracle.segments[s].second});
  part.workerError = workerError.data();
  part.serverError = serverError.data();
  return part;
}

template <typename T> std::string OneBitMemory<T>::faultOf(const OneBitOracle<T> &oracle) const {
  auto describe = [](const char *what, size_t at, T found, T expected) {
    return std::string(what) + " at " + std::to_string(at) + " is " + std::to_string(found) + ", expected " +
           std::to_string(expected);
  };
  for (size_t s = 0; s < tensors.size(); ++s)
    for (size_t i = 0; i < tensors[s].size(); ++i)
      if (T right = oracle.result[size_t(oracle.segments[s].first) + i]; !(tensors[s][i] == right))
        return describe("result", size_t(oracle.segments[s].first) + i, tensors[s][i], right);
  for (size_t i = 0; i < workerError.size(); ++i)
    if (T right = oracle.workerErrors[rank][i]; !(workerError[i] == right))
      return describe("worker error", i, workerError[i], right);
  for (size_t i = 0; i < serverError.size(); ++i)
    if (T right = oracle.serverErrors[size_t(rank * oracle.shard) + i]; !(serverError[i] == right))
      return describe("server error", i, serverError[i], right);
  return "";
}

template <typename T> uint64_t OneBitMemory<T>::digest(bool hasErrors) const {
  uint64_t state = 1469598103934665603u;
  auto add = [&](const std::vector<T> &values) {
    for (T value : values) {
      uint64_t bits = 0;
      std::memcpy(&bits, &value, sizeof(value));
      state = (state ^ bits) * 1099511628211u;
    }
  };
  for (const std::vector<T> &tensor : tensors)
    add(tensor);
  if (hasErrors) {
    add(workerError);
    add(serverError);
  }
  return state;
}

template class OneBitOracle<float>;
template class OneBitOracle<double>;
template struct OneBitMemory<float>;
template struct OneBitMemory<double>;

} // namespace ds::test
