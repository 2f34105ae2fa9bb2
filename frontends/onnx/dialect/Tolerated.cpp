#include "frontends/onnx/dialect/Tolerated.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace deepstride::onnx {

void Tolerated::add(StringRef kind, Location where, const Twine &what) {
  auto known = llvm::find_if(entries, [&](const Entry &entry) { return entry.kind == kind; });
  if (known == entries.end())
    entries.push_back({kind.str(), where, what.str(), 1});
  else
    ++known->count;
}

void Tolerated::merge(const Tolerated &other) {
  for (const Entry &entry : other.entries) {
    auto known = llvm::find_if(entries, [&](const Entry &own) { return own.kind == entry.kind; });
    if (known == entries.end())
      entries.push_back(entry);
    else
      known->count = std::max(known->count, entry.count);
  }
}

void Tolerated::emit() const {
  for (const Entry &entry : entries) {
    InFlightDiagnostic warning = emitWarning(entry.where) << entry.what;
    if (entry.count > 1)
      warning << " (the first of " << entry.count << " " << entry.kind << ")";
  }
}

} // namespace deepstride::onnx
