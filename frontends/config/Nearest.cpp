// Which key somebody meant who wrote one that does not exist.
#include "frontends/config/Keys.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace ds::config {

// Letters that are inserted, left out, replaced or exchanged with their neighbour; `most` + 1 stands for more.
static size_t distance(std::string_view a, std::string_view b, size_t most) {
  size_t difference = a.size() < b.size() ? b.size() - a.size() : a.size() - b.size();
  if (difference > most)
    return most + 1;
  // Rows of the table of distances of all prefixes: the present one and the two before.
  std::vector<size_t> row(b.size() + 1), before(b.size() + 1), beforeThat(b.size() + 1);
  for (size_t i = 0; i <= a.size(); ++i) {
    for (size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        row[j] = i + j;
        continue;
      }
      row[j] = std::min({before[j] + 1, row[j - 1] + 1, before[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], beforeThat[j - 2] + 1);
    }
    std::swap(beforeThat, before);
    std::swap(before, row);
  }
  return std::min(before[b.size()], most + 1);
}

// Case and hyphens are no difference worth a letter.
static std::string plain(std::string_view text) {
  std::string result(text);
  for (char &c : result)
    c = c == '-' ? '_' : c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return result;
}

// Names that other programs have for a key.
static const std::pair<std::string_view, std::string_view> synonyms[] = {
    {"lr", "optimizer.params.lr"},
    {"learning_rate", "optimizer.params.lr"},
    {"wd", "optimizer.params.weight_decay"},
    {"decay", "optimizer.params.weight_decay"},
    {"epsilon", "optimizer.params.eps"},
    {"beta", "optimizer.params.betas"},
    {"beta1", "optimizer.params.betas"},
    {"beta2", "optimizer.params.betas"},
    {"optim", "optimizer"},
    {"lr_scheduler", "scheduler"},
    {"schedule", "scheduler"},
    {"warmup", "scheduler.params.warmup_num_steps"},
    {"warmup_steps", "scheduler.params.warmup_num_steps"},
    {"max_steps", "scheduler.params.total_num_steps"},
    {"total_steps", "scheduler.params.total_num_steps"},
    {"batch", "train_batch_size"},
    {"micro_batch", "train_micro_batch_size_per_gpu"},
    {"per_device_train_batch_size", "train_micro_batch_size_per_gpu"},
    {"grad_accumulation", "gradient_accumulation_steps"},
    {"clip", "gradient_clipping"},
    {"clipping", "gradient_clipping"},
    {"clip_grad", "gradient_clipping"},
    {"grad_clip", "gradient_clipping"},
    {"max_norm", "gradient_clipping"},
    {"zero", "zero_optimization"},
    {"half", "fp16"},
    {"float16", "fp16"},
    {"logging_steps", "steps_per_print"}};

// Whether a name is some of the words of a key, and at least half of its letters.
static bool isPartOf(std::string_view name, std::string_view key) {
  size_t at = ("_" + std::string(key) + "_").find("_" + std::string(name) + "_");
  return at != std::string::npos && name.size() >= 4 && 2 * name.size() >= key.size();
}

std::string nearestKey(const std::string &section, const std::string &name, std::string_view kind) {
  if (name.size() > 60)
    return "";
  std::string wanted = plain(name), whole = plain(section.empty() ? name : section + "." + name);
  for (const auto &[other, path] : synonyms)
    if (wanted == other)
      return std::string(path);
  size_t least = std::numeric_limits<size_t>::max();
  const KeySpec *best = nullptr;
  for (const KeySpec &key : keys()) {
    std::string_view last = key.path.substr(key.path.rfind('.') + 1);
    std::string_view home = key.path.substr(0, key.path.size() - last.size() - (last.size() < key.path.size()));
    bool isHere = home == section;
    // A short name is near many keys of other sections.
    size_t most = std::max<size_t>(1, wanted.size() / (isHere ? 3 : 6));
    size_t letters = std::min(distance(wanted, plain(last), most), distance(whole, plain(key.path), most));
    bool isPart = isPartOf(wanted, plain(last));
    if (letters > most && !isPart)
      continue;
    if (isPart)
      letters = std::min<size_t>(letters, 1);
    // Of equally near names one of the same section is likelier, then one that the optimizer has, then one that acts,
    // then one with few letters besides.
    size_t cost = 8 * letters +
                  (isHere    ? 0
                   : letters ? 10
                             : 4) +
                  2 * !key.isOf(kind) + (key.use != KeyUse::Applies) + (letters > 0);
    cost = 64 * cost + (isPart ? std::min<size_t>(last.size(), 63) : 0);
    if (cost < least) {
      least = cost;
      best = &key;
    }
  }
  return best ? std::string(best->path) : "";
}

} // namespace ds::config
