// Collection and printing of the counts of Report.h. Names of passes lose the prefix `ds-`, which readers of a report
// do not need.
#include "passes/Report.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"

namespace deepstride {

template <typename T> static T &slot(std::vector<std::pair<std::string, T>> &entries, llvm::StringRef key) {
  for (auto &[name, value] : entries)
    if (name == key)
      return value;
  entries.emplace_back(key.str(), T());
  return entries.back().second;
}

void PassReport::add(Counts &counts, llvm::StringRef what, int64_t number) { slot(counts, what) += number; }

void ReportTable::add(llvm::StringRef pass, const PassReport::Counts &counts, std::vector<std::string> notes) {
  std::lock_guard<std::mutex> lock(mutex);
  pass.consume_front("ds-");
  PassReport::Counts &sums = slot(passes, pass);
  for (const auto &[what, number] : counts)
    slot(sums, what) += number;
  if (!notes.empty())
    llvm::append_range(slot(noted, pass), notes);
}

int64_t ReportTable::total(llvm::StringRef pass, llvm::StringRef what) const {
  std::lock_guard<std::mutex> lock(mutex);
  int64_t sum = 0;
  for (const auto &[name, counts] : passes)
    for (const auto &[counted, number] : counts)
      if (name == pass && counted == what)
        sum += number;
  return sum;
}

void ReportTable::print(llvm::raw_ostream &os) const {
  std::lock_guard<std::mutex> lock(mutex);
  for (const auto &[pass, counts] : passes) {
    os << pass << ":";
    bool first = true;
    for (const auto &[what, number] : counts) {
      os << (first ? " " : ", ") << number << " " << what;
      first = false;
    }
    os << "\n";
    for (const auto &[noting, lines] : noted)
      if (noting == pass)
        for (const std::string &line : lines)
          os << line << "\n";
  }
}

void PassReportCollector::runAfterPass(mlir::Pass *pass, mlir::Operation *) {
  auto *report = dynamic_cast<PassReport *>(pass);
  if (!report)
    return;
  PassReport::Counts counts = report->take();
  if (!counts.empty())
    table.add(pass->getArgument(), counts, report->takeNotes());
}

} // namespace deepstride
