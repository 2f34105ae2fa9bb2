#include "runtime/training/CheckpointTools.h"

#include "runtime/core/Error.h"
#include "runtime/core/Text.h"
#include "runtime/training/CheckpointFolder.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace ds {
namespace {

using nlohmann::json;

std::string typeText(const TensorSource::Item &item) { return concat(typeName(item.type), " ", listText(item.shape)); }

json progressJson(const TrainingProgress &progress) {
  return {{"step", progress.step},
          {"samples", progress.samples},
          {"epoch", progress.loader.epoch},
          {"position", progress.loader.position},
          {"seed", std::to_string(progress.seed)},
          {"loss_scale",
           {{"scale", progress.lossScale.scale},
            {"iteration", progress.lossScale.iteration},
            {"last_overflow", progress.lossScale.lastOverflow},
            {"hysteresis", progress.lossScale.hysteresis}}},
          {"trainer", progress.trainer},
          {"client_state", progress.clientState}};
}

std::string shortened(const json &value) {
  std::string text = value.dump();
  return text.size() > 200 ? text.substr(0, 197) + "..." : text;
}

// Members that differ, with the path to each.
void compareJson(const std::string &place, const json &a, const json &b, std::vector<std::string> &lines) {
  if (a == b)
    return;
  if (!a.is_object() || !b.is_object()) {
    lines.push_back(concat(place, ": ", shortened(a), " and ", shortened(b)));
    return;
  }
  json names = a;
  names.update(b);
  for (auto it = names.begin(); it != names.end(); ++it) {
    std::string key = isTensorName(it.key()) ? it.key() : inQuotes(it.key());
    std::string inner = place.empty() ? key : place + "." + key;
    if (a.contains(it.key()) && b.contains(it.key()))
      compareJson(inner, a[it.key()], b[it.key()], lines);
    else
      lines.push_back(inner + (a.contains(it.key()) ? ": only in the first" : ": only in the second"));
  }
}

// Whether values differ; what they differ by goes to `difference`.
bool compareValues(const TensorView &a, const TensorView &b, TensorDifference &difference) {
  difference.elements = elementCount(a.shape);
  if (std::memcmp(a.data, b.data, a.bytes()) == 0)
    return false;
  double maximum = -1;
  for (int64_t i = 0; i < difference.elements; ++i) {
    size_t at = static_cast<size_t>(i);
    double x = loadDouble(a.type, a.data, at), y = loadDouble(b.type, b.data, at);
    // Equal infinities differ by nothing, and so do NaNs, whatever their bits.
    if (x == y || (std::isnan(x) && std::isnan(y)))
      continue;
    ++difference.differing;
    double distance = std::isnan(x) || std::isnan(y) ? std::numeric_limits<double>::quiet_NaN() : std::fabs(x - y);
    if (!std::isnan(maximum) && !(distance <= maximum)) {
      maximum = distance;
      difference.place = i;
    }
  }
  difference.maximum = difference.differing ? maximum : 0;
  return difference.differing != 0;
}

const char *kindName(TensorDifference::Kind kind) {
  switch (kind) {
  case TensorDifference::Kind::Values: return "values";
  case TensorDifference::Kind::Type: return "type";
  case TensorDifference::Kind::Shape: return "shape";
  case TensorDifference::Kind::OnlyFirst: return "only in the first";
  case TensorDifference::Kind::OnlySecond: return "only in the second";
  }
  return "";
}

} // namespace

std::vector<std::string> verifyCheckpoint(const std::string &folder, const std::string &tag) {
  checkpointPath(folder, tag);
  std::vector<std::string> faults;
  try {
    Checkpoint checkpoint(folder, tag);
    for (size_t i = 0; i < checkpoint.items().size(); ++i)
      try {
        checkpoint.check(i, checkpoint.items()[i].type);
      } catch (const Error &error) {
        faults.push_back(error.what());
      }
  } catch (const Error &error) {
    faults.push_back(error.what());
  }
  return faults;
}

std::string inspectCheckpoint(const Checkpoint &checkpoint) {
  const TrainingProgress &progress = checkpoint.progress();
  std::ostringstream out;
  out << checkpoint.path() << ": step " << progress.step << ", " << progress.samples << " samples, epoch "
      << progress.loader.epoch << " at sample " << progress.loader.position << ", seed " << progress.seed << "\n";
  out << "loss scale " << progress.lossScale.scale << ", iteration " << progress.lossScale.iteration
      << ", last overflow " << progress.lossScale.lastOverflow << ", hysteresis " << progress.lossScale.hysteresis
      << "\n";
  if (!progress.trainer.empty())
    out << "trainer " << shortened(progress.trainer) << "\n";
  if (!progress.clientState.is_null())
    out << "client state " << shortened(progress.clientState) << "\n";
  size_t width = 0;
  for (const CheckpointTensor &tensor : checkpoint.contents().tensors)
    width = std::max(width, tensor.name.size());
  for (const CheckpointFile &file : checkpoint.contents().files) {
    out << file.name << ": " << file.bytes << " bytes\n";
    for (const CheckpointTensor &tensor : checkpoint.contents().tensors)
      for (const CheckpointPiece &piece : tensor.pieces) {
        if (piece.file != file.name)
          continue;
        out << "  " << tensor.name << std::string(width - tensor.name.size() + 2, ' ')
            << typeText({tensor.name, tensor.type, tensor.shape});
        if (tensor.pieces.size() > 1)
          out << ", elements " << piece.begin << " to " << piece.end;
        out << "\n";
      }
  }
  return out.str();
}

json inspectCheckpointJson(const Checkpoint &checkpoint) {
  json document = progressJson(checkpoint.progress());
  document["path"] = checkpoint.path();
  document["files"] = json::array();
  document["tensors"] = json::array();
  for (const CheckpointFile &file : checkpoint.contents().files)
    document["files"].push_back({{"name", file.name}, {"bytes", file.bytes}});
  for (const CheckpointTensor &tensor : checkpoint.contents().tensors) {
    json entry = {{"name", tensor.name},
                  {"dtype", typeName(tensor.type)},
                  {"shape", tensor.shape},
                  {"bytes", byteCount(tensor.type, tensor.shape)}};
    if (tensor.pieces.size() == 1)
      entry["file"] = tensor.pieces[0].file;
    else
      for (const CheckpointPiece &piece : tensor.pieces)
        entry["pieces"].push_back({{"file", piece.file}, {"begin", piece.begin}, {"end", piece.end}});
    document["tensors"].push_back(entry);
  }
  return document;
}

CheckpointDifference compareCheckpoints(const Checkpoint &first, const Checkpoint &second) {
  using Kind = TensorDifference::Kind;
  CheckpointDifference result;
  compareJson("", progressJson(first.progress()), progressJson(second.progress()), result.progress);
  const std::vector<TensorSource::Item> &a = first.items(), &b = second.items(); // both by name
  for (size_t i = 0, j = 0; i < a.size() || j < b.size();) {
    TensorDifference difference;
    bool isInFirst = i < a.size() && (j == b.size() || a[i].name <= b[j].name);
    bool isInSecond = j < b.size() && (i == a.size() || b[j].name <= a[i].name);
    difference.name = isInFirst ? a[i].name : b[j].name;
    difference.first = isInFirst ? typeText(a[i]) : "";
    difference.second = isInSecond ? typeText(b[j]) : "";
    bool differs = true;
    if (!isInFirst || !isInSecond)
      difference.kind = isInFirst ? Kind::OnlyFirst : Kind::OnlySecond;
    else if (a[i].shape != b[j].shape)
      difference.kind = Kind::Shape;
    else if (a[i].type != b[j].type)
      difference.kind = Kind::Type;
    else
      differs = compareValues(first.view(i), second.view(j), difference);
    // A cut tensor is in memory only while it is compared.
    if (isInFirst && isInSecond) {
      first.release(i);
      second.release(j);
    }
    if (differs)
      result.tensors.push_back(difference);
    else
      ++result.equal;
    i += isInFirst;
    j += isInSecond;
  }
  return result;
}

std::string differenceText(const CheckpointDifference &difference) {
  std::ostringstream out;
  for (const std::string &line : difference.progress)
    out << line << "\n";
  for (const TensorDifference &tensor : difference.tensors) {
    out << tensor.name << ": ";
    if (tensor.kind == TensorDifference::Kind::Values)
      out << tensor.differing << " of " << tensor.elements << " elements differ, by at most " << tensor.maximum
          << " (element " << tensor.place << ")\n";
    else if (tensor.kind == TensorDifference::Kind::Type || tensor.kind == TensorDifference::Kind::Shape)
      out << tensor.first << " and " << tensor.second << "\n";
    else
      out << kindName(tensor.kind) << "\n";
  }
  out << difference.equal << " tensors are equal, " << difference.tensors.size() << " differ\n";
  return out.str();
}

json differenceJson(const CheckpointDifference &difference) {
  json tensors = json::array();
  for (const TensorDifference &tensor : difference.tensors) {
    json entry = {{"name", tensor.name}, {"kind", kindName(tensor.kind)}};
    if (tensor.kind == TensorDifference::Kind::Values) {
      // JSON has no NaN and no infinity.
      entry["max_abs"] = std::isfinite(tensor.maximum) ? json(tensor.maximum) : json(concat(tensor.maximum));
      entry["differing"] = tensor.differing;
      entry["elements"] = tensor.elements;
      entry["element"] = tensor.place;
    } else {
      entry["first"] = tensor.first;
      entry["second"] = tensor.second;
    }
    tensors.push_back(entry);
  }
  return {{"progress", difference.progress}, {"tensors", tensors}, {"equal", difference.equal}};
}

} // namespace ds
