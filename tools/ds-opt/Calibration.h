// Calibration: runs the float program on a file of inputs, and says in the module what weights are rounded against.
#ifndef DEEPSTRIDE_TOOLS_DSOPT_CALIBRATION_H
#define DEEPSTRIDE_TOOLS_DSOPT_CALIBRATION_H

#include "mlir/IR/BuiltinOps.h"
#include "tools/ds-opt/Workspace.h"

#include <map>

namespace deepstride {

/// Collects triangles, one file each, which exist as long as this object. In memory are the sums of one round of
/// ds-observe-products, and a copy of one of them.
class Calibration {
public:
  explicit Calibration(std::string file);

  std::error_code error() const { return workspace.error; }
  /// Where the observing package of a round belongs.
  std::string package() const { return workspace.path("observe.dsp"); }
  /// Makes the calls with that package and the triangles of what it has observed: the attributes that
  /// ds-observe-products left. Returns what is wrong, in one line, or nothing.
  std::string add(mlir::DictionaryAttr observed);
  /// Names the triangles in a module, for ds-quantize-weights.
  void annotate(mlir::ModuleOp module) const;

  int64_t calls() const { return callCount; }
  size_t weights() const { return triangles.size(); }

private:
  struct Triangle {
    std::string file;
    int64_t size = 0;
  };
  std::string write(const Triangle &triangle, const std::vector<double> &numbers);

  const std::string inputs;
  Workspace workspace;
  std::map<std::string, Triangle> triangles; // by the recipe of the weight
  int64_t callCount = 0, fileCount = 0;
};

} // namespace deepstride

#endif
