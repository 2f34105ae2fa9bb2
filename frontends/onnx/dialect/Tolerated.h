// What is wrong in a file and yet says plainly what is meant: accepted, with one warning per kind and file.
#ifndef FRONTENDS_ONNX_DIALECT_TOLERATED_H
#define FRONTENDS_ONNX_DIALECT_TOLERATED_H

#include "mlir/IR/Location.h"

#include <string>
#include <vector>

namespace deepstride::onnx {

class Tolerated {
public:
  /// Notes a place; `what` is one line. Of each `kind` the first place is the one that the warning names.
  void add(llvm::StringRef kind, mlir::Location where, const llvm::Twine &what);

  /// What another pass over the same file found: of a kind that both have the first place stays, and the larger number.
  void merge(const Tolerated &other);

  /// One warning per kind, in the order in which they came up, with the number of places where there are several.
  void emit() const;

private:
  struct Entry {
    std::string kind;
    mlir::Location where;
    std::string what;
    unsigned count;
  };
  std::vector<Entry> entries;
};

} // namespace deepstride::onnx

#endif
