// The other ranks of a command of training, where a launcher has started several.
#ifndef DEEPSTRIDE_TOOLS_DS_RUN_TRAINING_RUNRANKS_H
#define DEEPSTRIDE_TOOLS_DS_RUN_TRAINING_RUNRANKS_H

#include "runtime/core/Session.h"
#include "runtime/training/Ranks.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace ds {

class RunRanks {
public:
  RunRanks() : own(&Ranks::one()) {} // alone
  // With the others that a launcher has started.
  static RunRanks join();

  Ranks &ranks() const { return *own; }
  unsigned world() const { return own->world(); }
  unsigned rank() const { return own->rank(); }
  // Rank 0 writes and prints for all; others are silent but for errors.
  bool isFirst() const { return own->isFirst(); }
  // "one process; ds-run --ranks=N starts more", for messages about their number.
  std::string origin() const;
  const std::shared_ptr<Communicator> &communicator() const { return shared; }

  // Runs the command of this rank; others learn where it fails.
  template <typename Action> int run(Action action) {
    try {
      int code = action();
      leave("");
      return code;
    } catch (const std::exception &error) {
      leave(error.what());
      throw;
    }
  }

private:
  void leave(const std::string &reason);

  std::shared_ptr<Communicator> shared;
  std::unique_ptr<Ranks> joined;
  Ranks *own = nullptr;
};

} // namespace ds
#endif
