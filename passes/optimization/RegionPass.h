// What passes that wrap ops of an entry into regions have in common.
#ifndef DEEPSTRIDE_PASSES_OPTIMIZATION_REGIONPASS_H
#define DEEPSTRIDE_PASSES_OPTIMIZATION_REGIONPASS_H

#include "passes/Report.h"
#include "passes/optimization/Regions.h"

namespace deepstride {

/// A pass over functions that looks at entries only, with the sizes of their values. `Base` is the generated class.
template <typename Base> class RegionPass : public Base, public PassReport {
public:
  using Base::Base;

  void runOnOperation() final {
    count("ops fused", 0);
    if (!this->getOperation()->hasAttr(ds::entryAttr))
      return;
    prepare();
    auto result = SizeAnalysis::run(this->getOperation());
    if (failed(result))
      return this->signalPassFailure();
    analysis = std::move(*result);
    fuseAll();
  }

protected:
  /// Before sizes are found.
  virtual void prepare() {}
  virtual void fuseAll() = 0;

  /// Wraps the region where it has several ops and can stand behind `last`, its last op.
  void wrap(const OpSet &region, mlir::Operation *last) {
    auto moved = region.size() > 1 ? dependentsOf(region, last) : std::nullopt;
    if (!moved)
      return;
    wrapRegion(region, last, *moved, analysis);
    count("ops fused", static_cast<int64_t>(region.size()) - 1);
    count("regions");
  }

  SizeAnalysis analysis;
};

} // namespace deepstride

#endif
