// One run of the driver: its program, where it stands, and what it says. Driver.cpp runs the phases, Trials.cpp those
// compilations that only find out what to choose.
#ifndef DEEPSTRIDE_TOOLS_DSOPT_COMPILATION_H
#define DEEPSTRIDE_TOOLS_DSOPT_COMPILATION_H

#include "codegen/Package.h"
#include "codegen/cpu/Target.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Pass/PassManager.h"
#include "passes/Report.h"
#include "tools/ds-opt/Calibration.h"
#include "tools/ds-opt/CompileCache.h"
#include "tools/ds-opt/Diagnostics.h"
#include "tools/ds-opt/MlirOptions.h"
#include "tools/ds-opt/Options.h"
#include "tools/ds-opt/SlowKernels.h"

#include <chrono>
#include <map>

namespace deepstride {

class Compilation {
public:
  explicit Compilation(const DriverOptions &options);
  int run();

private:
  enum class Outcome { Done, Diagnosed, Bug };

  Outcome import();
  Outcome runPhase(Phase phase, mlir::ModuleOp program, const CpuTarget &target);
  Outcome runPassesAfter(Phase phase, mlir::ModuleOp program);
  bool attach(mlir::PassManager &pm, const std::string &file);
  Outcome runPasses(Phase phase, mlir::ModuleOp program, llvm::function_ref<void(mlir::OpPassManager &)> build);
  Outcome diagnosedOrBug(llvm::StringRef what, llvm::StringRef file);
  llvm::LogicalResult convert();
  Outcome calibrate();
  mlir::FailureOr<mlir::DictionaryAttr> observe(const CpuTarget &host, int64_t &first);
  void start();
  int listInputs();
  void printSlowKernels(llvm::raw_ostream &stream) const;
  void printSummary(bool isCopied) const;
  int compileVariants(Phase last);
  int exitCode(Outcome outcome);
  bool dump(Phase phase, mlir::ModuleOp program, llvm::StringRef variant);
  Outcome fitMemory();
  std::optional<uint64_t> bytesWith(int64_t values, const std::map<std::string, int64_t> &dims, int64_t &count);

  const DriverOptions &options;
  mlir::DialectRegistry registry;
  std::unique_ptr<mlir::MLIRContext> context;
  std::unique_ptr<DiagnosticPrinter> diagnostics;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::vector<CpuTarget> targets;
  std::unique_ptr<PackageWriter> package;
  std::unique_ptr<Calibration> calibration;
  ReportTable report, unreported;
  bool isCalibrating = false; // what passes do then is nobody's business
  std::string destination, bug, reproducer;
  std::unique_ptr<CompileCache> cache;
  Instruments instruments;
  bool isForeign = false; // the passes that run are the user's
  std::optional<SlowKernels> slow;
  std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();
  std::vector<std::string> externalFiles; // besides the model, read by the import
};

} // namespace deepstride

#endif
