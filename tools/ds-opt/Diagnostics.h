// What users of the driver read when something is wrong: one line per diagnostic, located at the ONNX node.
#ifndef DEEPSTRIDE_TOOLS_DSOPT_DIAGNOSTICS_H
#define DEEPSTRIDE_TOOLS_DSOPT_DIAGNOSTICS_H

#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/StringSet.h"

namespace deepstride {

/// Prints the diagnostics of a context to stderr while it lives, and counts the errors among them.
class DiagnosticPrinter : public mlir::ScopedDiagnosticHandler {
public:
  DiagnosticPrinter(mlir::MLIRContext *context, bool printRemarks);
  unsigned errorCount() const { return errors; }
  /// All that was printed.
  const std::string &text() const { return printed; }

private:
  void print(mlir::Diagnostic &diagnostic);
  bool printRemarks;
  llvm::StringSet<> said;
  std::string printed;
  unsigned errors = 0;
};

} // namespace deepstride

#endif
