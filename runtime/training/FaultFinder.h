// Watches a call for the first number that is none.
#ifndef DEEPSTRIDE_RUNTIME_TRAINING_FAULTFINDER_H
#define DEEPSTRIDE_RUNTIME_TRAINING_FAULTFINDER_H

#include "runtime/core/EntryRunner.h"

#include <string>

namespace ds {

// Looks at each result of each launch. A NaN is a fault; an infinity is one where no NaN follows: masks are made of
// them.
class FaultFinder : public LaunchObserver {
public:
  void afterLaunch(const Event &event) override;

  // "NaN in tensor 'x' of node 'y' (kernel z)"; empty: none was there.
  const std::string &found() const { return nan.empty() ? infinity : nan; }

private:
  std::string nan, infinity;
};

} // namespace ds
#endif
