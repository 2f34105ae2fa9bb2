#include "runtime/training/LayerDrop.h"

#include "runtime/core/Philox.h"

#include <algorithm>
#include <cmath>

namespace ds {

double LayerDrop::theta(int64_t step) const {
  auto time = static_cast<double>(std::max<int64_t>(step - 1, 0));
  return (1 - settings.theta) * std::exp(-settings.gamma * time) + settings.theta;
}

double LayerDrop::keep(size_t block, double theta) const {
  auto depth = static_cast<double>(block + (settings.isPaper ? 1 : 0));
  return 1 - depth / static_cast<double>(count) * (1 - theta);
}

std::vector<LayerGate> LayerDrop::draw(const RandomPlace &place) const {
  constexpr uint32_t stream = ~uint32_t(0); // dropouts have the others, from 0 on
  double now = theta(place.step);
  std::vector<LayerGate> gates(count);
  for (size_t block = 0; block < count; ++block) {
    double probability = keep(block, now);
    PhiloxCounter words = philox(
        {static_cast<uint32_t>(block), static_cast<uint32_t>(place.micro), static_cast<uint32_t>(place.step), stream},
        philoxKey(place.seed));
    gates[block].runs = words[0] < probability * 0x1p32;
    gates[block].scale = gates[block].runs ? 1 / probability : 1;
  }
  return gates;
}

void LayerCounts::add(const std::vector<LayerGate> &gates) {
  ran.resize(gates.size());
  ++microBatches;
  for (size_t block = 0; block < gates.size(); ++block)
    ran[block] += gates[block].runs ? 1 : 0;
}

std::vector<double> LayerCounts::rates() const {
  std::vector<double> rates;
  for (int64_t times : ran)
    rates.push_back(microBatches > 0 ? static_cast<double>(times) / static_cast<double>(microBatches) : 1);
  return rates;
}

} // namespace ds
