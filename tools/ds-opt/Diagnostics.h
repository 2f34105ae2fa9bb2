// What users of the driver read when something is wrong: one line per diagnostic, located at the ONNX node.
#ifndef DEEPSTRIDE_TOOLS_DSOPT_DIAGNOSTICS_H
#define DEEPSTRIDE_TOOLS_DSOPT_DIAGNOSTICS_H

#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

#include <string>
#include <vector>

namespace deepstride {

/// Prints the diagnostics of a context to stderr while it lives, and counts the errors among them. Remarks are printed
/// at the end, equal ones once.
class DiagnosticPrinter : public mlir::ScopedDiagnosticHandler {
public:
  DiagnosticPrinter(mlir::MLIRContext *context, bool printRemarks);
  ~DiagnosticPrinter();
  unsigned errorCount() const { return errors; }
  /// Prints the remarks that came since the last call.
  void printRemarks();
  /// All that was printed.
  const std::string &text() const { return printed; }

private:
  void print(mlir::Diagnostic &diagnostic);
  /// One text, of however many nodes.
  struct Remark {
    std::string text, first, last;
    unsigned count;
  };
  bool keepsRemarks;
  std::vector<Remark> remarks; // in the order of their first nodes
  llvm::StringMap<size_t> remarkOf;
  llvm::StringSet<> said;
  std::string printed;
  unsigned errors = 0;
};

} // namespace deepstride

#endif
