// train_batch_size = micro-batch x accumulation steps x ranks: two of them give the third, one alone lets a step have
// one micro-batch.
#include "frontends/config/Values.h"
#include "runtime/core/Error.h"

#include <algorithm>
#include <array>

namespace ds::config {

namespace {
constexpr const char *trainKey = "train_batch_size", *microKey = "train_micro_batch_size_per_gpu",
                     *stepsKey = "gradient_accumulation_steps";

constexpr int64_t most = 2147483647; // of each, as the table has it

struct Size {
  const char *key;
  int64_t value = 0; // 0: not given
  std::string how;   // it was derived
};

std::string ranksText(const ReadOptions &options) {
  return std::to_string(options.ranks) + (options.ranks == 1 ? " rank (" : " ranks (") + options.ranksFrom + ")";
}

// Every way to split the samples of a rank, or both ends of a long list: "1x8, 2x4, 4x2, 8x1".
std::string pairsText(int64_t samples) {
  std::vector<int64_t> low, high;
  for (int64_t i = 1; i * i <= samples; ++i)
    if (samples % i == 0) {
      low.push_back(i);
      if (i != samples / i)
        high.push_back(samples / i);
    }
  low.insert(low.end(), high.rbegin(), high.rend());
  std::string text;
  for (size_t i = 0; i < low.size(); ++i) {
    if (low.size() > 10 && i == 4)
      text += ", ...";
    if (low.size() > 10 && i >= 4 && i + 4 < low.size())
      continue;
    text += (text.empty() ? "" : ", ") + std::to_string(low[i]) + "x" + std::to_string(samples / low[i]);
  }
  return text;
}

class Batch {
public:
  Batch(const GivenKeys &given, const ReadOptions &options, Problems &problems)
      : given(given), options(options), problems(problems) {
    for (Size *size : {&train, &micro, &steps})
      if (const Given *found = given.find(size->key))
        size->value = found->value.get<int64_t>();
  }

  bool run() {
    if (train.value == 0 && micro.value == 0) {
      problems.add(given.placeOf(stepsKey), trainKey, ": missing, expected it or ", microKey,
                   steps.value ? "; gradient_accumulation_steps alone gives no batch size" : "");
      return false;
    }
    if (train.value == 0)
      return multiply();
    if (train.value % options.ranks != 0)
      return refuse("found " + std::to_string(train.value) + ", expected a multiple of " + ranksText(options) +
                    (micro.value ? "; with " + std::string(microKey) + " " + std::to_string(micro.value) +
                                       " legal sizes are multiples of " + multiple(micro)
                                 : ""));
    int64_t samples = train.value / options.ranks;
    if (micro.value && steps.value)
      return isProduct(samples);
    if (micro.value)
      return divide(samples, micro, steps);
    if (steps.value)
      return divide(samples, steps, micro);
    steps.value = 1;
    steps.how = "one micro-batch for each step";
    micro.value = samples;
    micro.how = std::string(trainKey) + " / " + ranksText(options);
    return true;
  }

  Size train{trainKey, 0, ""}, micro{microKey, 0, ""}, steps{stepsKey, 0, ""};

private:
  bool refuse(const std::string &what) {
    problems.add(given.placeOf(trainKey), trainKey, ": ", what);
    return false;
  }

  std::string legal(int64_t samples) {
    return "; with " + ranksText(options) + " micro-batch x accumulation may be " + pairsText(samples);
  }

  std::string multiple(const Size &by) const {
    return std::to_string(
        static_cast<int64_t>(std::min<__int128>(static_cast<__int128>(by.value) * options.ranks, most)));
  }

  bool isProduct(int64_t samples) {
    if (micro.value * steps.value == samples)
      return true;
    if (options.areRanksOpen)
      return refuse("found " + std::to_string(train.value) + ", expected a multiple of " + microKey + " " +
                    std::to_string(micro.value) + " x " + stepsKey + " " + std::to_string(steps.value) +
                    ", so that some number of ranks fits");
    __int128 product = static_cast<__int128>(micro.value) * steps.value * options.ranks;
    return refuse(
        "found " + std::to_string(train.value) + ", but " + microKey + " " + std::to_string(micro.value) + " x " +
        stepsKey + " " + std::to_string(steps.value) + " x " + ranksText(options) + " is " +
        (product > most ? "more than " + std::to_string(most) : std::to_string(static_cast<int64_t>(product))) +
        legal(samples));
  }

  bool divide(int64_t samples, const Size &by, Size &result) {
    if (samples % by.value != 0)
      return refuse("found " + std::to_string(train.value) + ", expected a multiple of " + by.key + " " +
                    std::to_string(by.value) + " x " + ranksText(options) + legal(samples));
    result.value = samples / by.value;
    result.how = std::string(trainKey) + " / " + by.key + " / " + ranksText(options);
    return true;
  }

  bool multiply() {
    if (steps.value == 0) {
      steps.value = 1;
      steps.how = "one micro-batch for each step";
    }
    __int128 product = static_cast<__int128>(micro.value) * steps.value * options.ranks;
    if (product > most) {
      problems.add(given.placeOf(microKey), microKey, ": found ", std::to_string(micro.value), ", which x ", stepsKey,
                   " ", std::to_string(steps.value) + " x " + ranksText(options) + " is more than ",
                   std::to_string(most));
      return false;
    }
    train.value = static_cast<int64_t>(product);
    train.how = std::string(microKey) + " x " + stepsKey + " x " + ranksText(options);
    return true;
  }

  const GivenKeys &given;
  const ReadOptions &options;
  Problems &problems;
};
} // namespace

void resolveBatch(const GivenKeys &given, const ReadOptions &options, std::vector<Entry> &entries, Problems &problems) {
  Batch batch(given, options, problems);
  if (!batch.run())
    return;
  for (const Size *size : {&batch.train, &batch.micro, &batch.steps}) {
    const Given *found = given.find(size->key);
    entries.push_back({size->key, std::to_string(size->value), found ? Source::File : Source::Derived,
                       found ? found->at.line : 0, found ? "" : size->how, true});
  }
}

int64_t impliedRanks(const GivenKeys &given) {
  int64_t sizes[3] = {0, 0, 0};
  for (size_t i = 0; i < 3; ++i)
    if (const Given *found = given.find(std::array{trainKey, microKey, stepsKey}[i]))
      sizes[i] = found->value.get<int64_t>();
  if (!sizes[0] || !sizes[1] || !sizes[2])
    return 1;
  __int128 ofRank = static_cast<__int128>(sizes[1]) * sizes[2];
  return sizes[0] % ofRank == 0 ? static_cast<int64_t>(sizes[0] / ofRank) : 0;
}

// What the file gave is divided again; what was derived from it is derived anew.
void resolveFor(TrainingConfig &config, int64_t ranks, const std::string &ranksFrom, std::optional<int64_t> pinned) {
  GivenKeys given;
  auto isSize = [](const Entry &entry) {
    return entry.key == trainKey || entry.key == microKey || entry.key == stepsKey;
  };
  for (const Entry &entry : config.entries)
    if (isSize(entry) && entry.source == Source::File)
      given.keys[entry.key] = {nlohmann::json::parse(entry.value), {entry.line, 0}, "", true};
  bool isPinned = pinned && !given.find(microKey);
  if (isPinned)
    given.keys[microKey] = {*pinned, {}, "", true};
  ReadOptions options;
  options.ranks = ranks;
  options.ranksFrom = ranksFrom;
  Problems problems;
  std::vector<Entry> sizes;
  resolveBatch(given, options, sizes, problems);
  if (!problems.empty()) {
    Problem problem = problems.all().front();
    fail(ErrorCode::InvalidArgument, config.file, problem.at.line > 0 ? concat(":", problem.at.line) : "", ": ",
         problem.text);
  }
  for (const Entry &size : sizes)
    for (Entry &entry : config.entries)
      if (entry.key == size.key)
        entry = size;
  for (Entry &entry : config.entries) {
    if (isPinned && entry.key == microKey) {
      entry.source = Source::Derived;
      entry.note = "as the package was compiled for";
    }
    const KeySpec *key = findKey(entry.key);
    const std::string none = "without effect on one rank";
    if (!key || key->use != KeyUse::Ranks || entry.note.rfind(ranks == 1 ? "" : none, 0) != 0)
      continue;
    entry.note = ranks == 1 ? none : "";
    entry.isUsed = ranks != 1;
  }
  config.ranks = ranks;
  assignMembers(config);
}

} // namespace ds::config
