// Prints diagnostics as `model.onnx: 'node': error: message`, notes on lines of their own. What MLIR reports about its
// own machinery (failed pipelines, reproducers) is left to the driver, which knows what to say about it.
#include "tools/ds-opt/Diagnostics.h"

#include "frontends/onnx/reader/Import.h"
#include "mlir/IR/Location.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace deepstride {

DiagnosticPrinter::DiagnosticPrinter(MLIRContext *context, bool printRemarks)
    : ScopedDiagnosticHandler(context), printRemarks(printRemarks) {
  setHandler([this](Diagnostic &diagnostic) { print(diagnostic); });
}

static std::string describe(Location location) {
  if (auto position = dyn_cast<FileLineColLoc>(location); position && position.getLine() > 0)
    return (position.getFilename().getValue() + ":" + Twine(position.getLine()) + ":" + Twine(position.getColumn()))
        .str();
  if (auto fused = dyn_cast<FusedLoc>(location); fused && !fused.getLocations().empty())
    return describe(fused.getLocations().front());
  if (isa<UnknownLoc>(location))
    return "ds-opt";
  return ::deepstride::onnx::describeLocation(location);
}

void DiagnosticPrinter::print(Diagnostic &diagnostic) {
  StringRef kind;
  switch (diagnostic.getSeverity()) {
  case DiagnosticSeverity::Error: kind = "error"; break;
  case DiagnosticSeverity::Warning: kind = "warning"; break;
  case DiagnosticSeverity::Remark: kind = "remark"; break;
  case DiagnosticSeverity::Note: kind = "note"; break;
  }
  if (diagnostic.getSeverity() == DiagnosticSeverity::Remark && !printRemarks)
    return;
  std::string message = diagnostic.str();
  if (StringRef(message).starts_with("Failures have been detected while processing an MLIR pass pipeline") ||
      StringRef(message).starts_with("A failure has been detected while processing the MLIR module"))
    return;
  if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
    ++errors;
  std::string place = describe(diagnostic.getLocation());
  std::string line = place + ": " + kind.str() + ": " + message;
  // The body of a loop may be converted more than once, with the same faults.
  if (diagnostic.getSeverity() != DiagnosticSeverity::Remark && !said.insert(line).second)
    return;
  line += "\n";
  for (Diagnostic &note : diagnostic.getNotes()) {
    std::string notePlace = describe(note.getLocation());
    line += (isa<UnknownLoc>(note.getLocation()) ? place : notePlace) + ": note: " + note.str() + "\n";
  }
  llvm::errs() << line;
  printed += line;
}

} // namespace deepstride
