// Watches a call for the first number that is none.
#ifndef DEEPSTRIDE_RUNTIME_TRAINING_FAULTFINDER_H
#define DEEPSTRIDE_RUNTIME_TRAINING_FAULTFINDER_H

#include "runtime/core/EntryRunner.h"

#include <functional>
#include <string>

namespace ds {

// The first element of a tensor that is no finite number; -1 where all are, and for other types than floats.
int64_t firstFault(const TensorView &view);

// The operator of an ONNX node, "Log"; empty where it is not known.
using OperatorOf = std::function<std::string(const std::string &node)>;

// Looks at each result of each launch. A NaN is a fault; an infinity is one where no NaN follows: masks are made of
// them.
class FaultFinder : public LaunchObserver {
public:
  explicit FaultFinder(const OperatorOf &operatorOf) : operatorOf(operatorOf) {}
  void afterLaunch(const Event &event) override;

  // "NaN in tensor 'x' of node 'y' (Log, kernel z, element 3)", with the first infinity before it; empty: none was
  // there.
  std::string found() const;
  bool isNan() const { return !nan.empty(); }

private:
  std::string operatorIn(const std::string &node) const;
  std::string othersOf(const LaunchInfo &launch) const;

  const OperatorOf &operatorOf;
  std::string nan, infinity;
};

} // namespace ds
#endif
