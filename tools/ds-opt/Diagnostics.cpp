// Prints diagnostics as `model.onnx: 'node': error: message`, notes on lines of their own. What MLIR reports about its
// own machinery (failed pipelines, reproducers) is left to the driver, which knows what to say about it.
#include "tools/ds-opt/Diagnostics.h"

#include "frontends/onnx/reader/Import.h"
#include "mlir/IR/Location.h"
#include "tools/ds-opt/Message.h"
#include "tools/ds-opt/Progress.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace deepstride {

DiagnosticPrinter::DiagnosticPrinter(MLIRContext *context, bool printRemarks)
    : ScopedDiagnosticHandler(context), keepsRemarks(printRemarks) {
  setHandler([this](Diagnostic &diagnostic) { print(diagnostic); });
}

DiagnosticPrinter::~DiagnosticPrinter() { printRemarks(); }

void DiagnosticPrinter::printRemarks() {
  if (!remarks.empty())
    clearProgress();
  for (const Remark &remark : remarks) {
    std::string line = remark.first + ": remark: " + remark.text;
    if (remark.count > 1)
      line.insert(line.find('\n'), " (" + std::to_string(remark.count) + " times, the last of " + remark.last + ")");
    llvm::errs() << line;
    printed += line;
  }
  remarks.clear();
  remarkOf.clear();
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
  bool isRemark = diagnostic.getSeverity() == DiagnosticSeverity::Remark;
  if (isRemark && !keepsRemarks)
    return;
  std::string message = ::ds::oneLine(diagnostic.str());
  if (StringRef(message).starts_with("Failures have been detected while processing an MLIR pass pipeline") ||
      StringRef(message).starts_with("A failure has been detected while processing the MLIR module"))
    return;
  if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
    ++errors;
  std::string place = ::ds::oneLine(describe(diagnostic.getLocation()));
  std::string line = place + ": " + kind.str() + ": " + message;
  // The body of a loop may be converted more than once, with the same faults.
  if (!isRemark && !said.insert(line).second)
    return;
  std::string notes = "\n";
  for (Diagnostic &note : diagnostic.getNotes()) {
    std::string where = isa<UnknownLoc>(note.getLocation()) ? place : ::ds::oneLine(describe(note.getLocation()));
    std::string text = note.str(); // an operation is shown as MLIR prints it, which escapes what is in strings
    bool isOperation = StringRef(text).starts_with("see current operation");
    notes += where + ": note: " + (isOperation ? text : ::ds::oneLine(text)) + "\n";
  }
  if (isRemark) { // layers have the same to say: their number is told in one line
    auto [known, isNew] = remarkOf.try_emplace(message + notes, remarks.size());
    if (isNew)
      remarks.push_back({message + notes, place, place, 0});
    Remark &remark = remarks[known->second];
    ++remark.count;
    size_t node = place.find(": '");
    remark.last = node == std::string::npos ? place : place.substr(node + 2);
    return;
  }
  clearProgress();
  line += notes;
  llvm::errs() << line;
  printed += line;
}

} // namespace deepstride
