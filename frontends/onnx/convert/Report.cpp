// Prints the report: one error for the model, one note per operator and reason.
#include "frontends/onnx/convert/Report.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace deepstride::onnx {

static std::string nameOf(Location location) {
  auto name = dyn_cast<NameLoc>(location);
  return name ? name.getName().str() : "?";
}

void UnsupportedReport::add(NodeOp node, StringRef operands, StringRef reason, StringRef advice) {
  std::string label = "'" + node.getOpType().str() + "' of domain '" +
                      (node.getDomain().empty() ? "ai.onnx" : node.getDomain().str()) + "', opset " +
                      std::to_string(node.getVersion());
  auto known = llvm::find_if(entries, [&](const Entry &e) { return e.label == label && e.reason == reason; });
  if (known == entries.end()) {
    entries.push_back({label, operands.str(), reason.str(), advice.str(), {}, 0});
    known = std::prev(entries.end());
  }
  Entry &entry = *known;
  ++entry.count;
  constexpr size_t namedNodes = 3;
  if (entry.nodes.size() < namedNodes)
    entry.nodes.push_back("'" + nameOf(node.getLoc()) + "'");
}

void UnsupportedReport::emit(Location where) const {
  unsigned nodes = 0;
  for (const Entry &entry : entries)
    nodes += entry.count;
  InFlightDiagnostic report = emitError(where) << "the model has " << nodes << (nodes == 1 ? " node" : " nodes")
                                               << " that cannot be compiled";
  for (const Entry &entry : entries)
    report.attachNote() << entry.label << ": " << entry.reason << "; " << entry.count
                        << (entry.count == 1 ? " node: " : " nodes: ") << llvm::join(entry.nodes, ", ")
                        << (entry.count > entry.nodes.size() ? ", ..." : "") << " on (" << entry.operands << "); "
                        << entry.advice;
}

} // namespace deepstride::onnx
