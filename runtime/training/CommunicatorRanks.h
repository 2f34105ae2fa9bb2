// The small messages of training over the collectives of a communicator.
#ifndef DEEPSTRIDE_RUNTIME_TRAINING_COMMUNICATORRANKS_H
#define DEEPSTRIDE_RUNTIME_TRAINING_COMMUNICATORRANKS_H

#include "runtime/comm/Communicator.h"
#include "runtime/training/Ranks.h"

#include <memory>

namespace ds {

class CommunicatorRanks : public Ranks {
public:
  explicit CommunicatorRanks(std::shared_ptr<Communicator> communicator) : communicator(std::move(communicator)) {}

  unsigned rank() const override { return communicator->rank(); }
  unsigned world() const override { return communicator->world(); }
  void gather(const std::string &what, const void *own, size_t bytes, void *all) override;
  void setStep(int64_t step) override { communicator->setStep(step); }

private:
  std::shared_ptr<Communicator> communicator;
};

} // namespace ds
#endif
