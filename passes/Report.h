// What passes did, as counts that a driver can print. A pass inherits PassReport and counts; a PassReportCollector
// among the instrumentations of a pass manager sums over all runs. (Debian's LLVM is built without statistics, so a
// Pass::Statistic would hold nothing.)
#ifndef DEEPSTRIDE_PASSES_REPORT_H
#define DEEPSTRIDE_PASSES_REPORT_H

#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassInstrumentation.h"

#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace deepstride {

/// Mixed into a pass. A pass object runs on one thread at a time, so plain counters do; copies start from zero.
class PassReport {
public:
  PassReport() = default;
  PassReport(const PassReport &) {}
  PassReport &operator=(const PassReport &) { return *this; }
  virtual ~PassReport() = default;

  /// Adds to the count of `what`, a past participle or a plural noun: count("recomposed"). Zero makes it appear.
  void count(llvm::StringRef what, int64_t number = 1) { add(counts, what, number); }

  /// Adds a line of its own, below the counts: what numbers cannot say.
  void note(std::string line) { notes.push_back(std::move(line)); }

  using Counts = std::vector<std::pair<std::string, int64_t>>; // few, in the order of first appearance
  static void add(Counts &counts, llvm::StringRef what, int64_t number);
  /// Hands over what was counted since the last call.
  Counts take() { return std::exchange(counts, {}); }
  std::vector<std::string> takeNotes() { return std::exchange(notes, {}); }

private:
  Counts counts;
  std::vector<std::string> notes;
};

/// Counts per pass, in the order of their first runs.
class ReportTable {
public:
  void add(llvm::StringRef pass, const PassReport::Counts &counts, std::vector<std::string> notes = {});
  /// The sum of what a pass counted under a name.
  int64_t total(llvm::StringRef pass, llvm::StringRef what) const;
  /// One line per pass, "recompose-gelu: 12 recomposed", and what it noted below.
  void print(llvm::raw_ostream &os) const;

private:
  mutable std::mutex mutex;
  std::vector<std::pair<std::string, PassReport::Counts>> passes;
  std::vector<std::pair<std::string, std::vector<std::string>>> noted; // by pass
};

class PassReportCollector : public mlir::PassInstrumentation {
public:
  explicit PassReportCollector(ReportTable &table) : table(table) {}
  void runAfterPass(mlir::Pass *pass, mlir::Operation *op) override;

private:
  ReportTable &table;
};

} // namespace deepstride

#endif
