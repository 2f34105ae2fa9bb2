// What all kinds of data sets have in common: do the arrays found fit the inputs, and how are their values converted.
#ifndef DEEPSTRIDE_RUNTIME_TRAINING_DATAFIELDS_H
#define DEEPSTRIDE_RUNTIME_TRAINING_DATAFIELDS_H

#include "runtime/training/Dataset.h"

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace ds {

// Collects what the data has for the inputs and complains where they do not fit. Errors do not name the file.
class FieldChecker {
public:
  explicit FieldChecker(const std::vector<TensorInfo> &inputs);

  const std::vector<TensorInfo> &inputs() const { return wanted; }
  // Rows of this type and shape for an input. Every input once.
  DataField accept(size_t input, ElementType type, const Shape &row);
  // Every input has a name of the data and the other way round. `what` is what a name stands for: "array".
  void checkNames(const std::vector<std::string> &found, const char *what) const;
  size_t indexOf(const std::string &name) const; // of an input that is there
  // The axis' size where it is fixed: 0 is the axis of samples.
  std::optional<int64_t> fixedAxis(size_t input, size_t axis) const;

private:
  const std::vector<TensorInfo> &wanted;
  struct Known {
    int64_t size;
    std::string input;
  };
  std::map<std::string, Known> symbols; // what earlier fields gave
};

// The part of several files that a sample is in; parts are sorted by the number `first` of their first sample.
template <typename Part> const Part &partOf(const std::vector<Part> &parts, int64_t sample) {
  auto next = std::upper_bound(parts.begin(), parts.end(), sample,
                               [](int64_t value, const Part &part) { return value < part.first; });
  return *std::prev(next);
}

// Whether values of a type can be those of another without loss, at least where they are small enough.
bool mayHold(ElementType to, ElementType from);

// Elements as another type. Throws Error(ShapeMismatch) naming the element that it cannot hold exactly.
void convertExactly(ElementType from, const void *source, ElementType to, void *data, int64_t count);

// "'x'", "'x' and 'y'", for messages.
std::string quotedNames(const std::vector<std::string> &names);

// Parts of openDataset, for files whose kind is known.
std::unique_ptr<Dataset> openNpzData(const std::vector<std::string> &paths, const std::vector<TensorInfo> &inputs);
std::unique_ptr<Dataset> openJsonLines(const std::vector<std::string> &paths, const std::vector<TensorInfo> &inputs);
std::unique_ptr<Dataset> openTokens(const std::vector<std::string> &paths, const std::vector<TensorInfo> &inputs,
                                    const DatasetOptions &options);
std::unique_ptr<Dataset> openIdxData(const std::vector<std::string> &paths, const std::vector<TensorInfo> &inputs,
                                     const DatasetOptions &options);

} // namespace ds
#endif
