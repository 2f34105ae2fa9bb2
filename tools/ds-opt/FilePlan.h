// Where the states of a training live, and what of those in files is in memory at a time, before it runs.
#ifndef DEEPSTRIDE_TOOLS_DSOPT_FILEPLAN_H
#define DEEPSTRIDE_TOOLS_DSOPT_FILEPLAN_H

#include "frontends/config/Config.h"
#include "runtime/core/FilePieces.h"
#include "runtime/core/StatePlaces.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/JSON.h"

#include <set>
#include <string>
#include <vector>

namespace deepstride {

/// A state as a rank has it, or the space of a unit.
struct PlannedState {
  std::string name;
  ::ds::StateClass kind = ::ds::StateClass::Other;
  int64_t bytes = 0, width = 1; // width: of an element
  bool isSpace = false;         // in which tensors lie, which files never hold
};

class FilePlan {
public:
  /// States in the order in which the runtime meets them. Of a program with planned buffers, whose kernels that update
  /// states piece by piece are found by lowering them. Fails after a message.
  static mlir::FailureOr<FilePlan> make(mlir::ModuleOp program, const ::ds::config::TrainingConfig &config,
                                        const std::vector<PlannedState> &states);

  /// `device`, `host` and `file`: bytes of states.
  llvm::json::Object places() const;
  /// `parameters` and `optimizer`: bytes that files have set aside; `resident` and `resident_bytes`: how many pieces of
  /// them are in memory at most, and their bytes.
  llvm::json::Object files() const;
  /// How much less memory the process takes than with all states in it.
  int64_t saved() const;

private:
  explicit FilePlan(const ::ds::StatePlaces &places)
      : settings(places), parameters(places.parameters.buffers), optimizer(places.optimizer.buffers) {}
  void add(const PlannedState &state, const std::set<std::string> &whole);

  ::ds::StatePlaces settings;
  ::ds::FileResidence parameters, optimizer;
  int64_t hostElements = 0; // that files have left in host memory
  uint64_t device = 0, host = 0, file = 0, granted = 0;
};

} // namespace deepstride

#endif
