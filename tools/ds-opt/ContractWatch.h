// Whose mistake it is that a pass failed.
#ifndef DEEPSTRIDE_TOOLS_DSOPT_CONTRACTWATCH_H
#define DEEPSTRIDE_TOOLS_DSOPT_CONTRACTWATCH_H

#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassInstrumentation.h"

namespace deepstride {

/// Notices when a contract fails: what a phase promised and did not keep is our mistake, not the model's.
class ContractWatch : public mlir::PassInstrumentation {
public:
  explicit ContractWatch(bool &broken) : broken(broken) {}
  void runAfterPassFailed(mlir::Pass *pass, mlir::Operation *) override {
    broken |= pass->getArgument() == "ds-verify-contract";
  }

private:
  bool &broken;
};

} // namespace deepstride

#endif
