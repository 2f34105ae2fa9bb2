#include "runtime/training/Score.h"

#include "runtime/core/Error.h"

#include <limits>

namespace ds {
namespace {

struct Judged {
  double loss;
  int64_t counted, correct;
};

Judged judge(Trainer &trainer, const BatchReader &reader, const BatchPlace &place, Batch &rows) {
  reader.read(place, rows);
  trainer.checkLabels(rows.views(), [&](int64_t row) {
    return concat("sample ", rows.samples[static_cast<size_t>(row)], " of the data");
  });
  Evaluation part = trainer.evaluate(rows.views());
  return {part.loss, part.counted, part.correct};
}

Score sum(const std::vector<BatchPlace> &places, const std::vector<Judged> &parts) {
  Score score;
  double weights = 0;
  int64_t correct = 0;
  for (size_t i = 0; i < places.size(); ++i) {
    const Judged &part = parts[i];
    bool counts = part.counted >= 0;
    double weight = static_cast<double>(counts ? part.counted : places[i].samples);
    if (weight > 0) {
      score.loss += part.loss * weight;
      weights += weight;
    }
    score.samples += places[i].samples;
    if (counts) {
      score.counted += part.counted;
      correct += part.correct;
      score.accuracy = score.counted ? static_cast<double>(correct) / static_cast<double>(score.counted) : 0;
    }
  }
  if (weights == 0) // nothing was judged
    score.accuracy.reset();
  score.loss = weights > 0 ? score.loss / weights : std::numeric_limits<double>::quiet_NaN();
  return score;
}

} // namespace

Score evaluate(Trainer &trainer, const std::shared_ptr<const Dataset> &data, int64_t batch, Ranks &ranks) {
  Sampler sampler(data->samples(), 0, /*isShuffled=*/false, /*epochs=*/1);
  BatchReader reader(data, sampler, batch, LastBatch::Smaller);
  std::vector<BatchPlace> places;
  while (std::optional<BatchPlace> place = reader.pass())
    places.push_back(*place);
  size_t world = ranks.world(), rounds = (places.size() + world - 1) / world;
  std::vector<Judged> own, parts;
  Batch rows;
  for (size_t round = 0; round < rounds; ++round) {
    size_t at = round * world + ranks.rank();
    own.push_back(judge(trainer, reader, places[at < places.size() ? at : round * world], rows));
  }
  std::vector<Judged> all = ranks.gatherValues("evaluation", own);
  for (size_t i = 0; i < places.size(); ++i)
    parts.push_back(all[i % world * rounds + i / world]);
  return sum(places, parts);
}

} // namespace ds
