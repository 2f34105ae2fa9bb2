// Values between the launches of an entry, by the names that they have in the model.
#ifndef DEEPSTRIDE_TOOLS_DS_RUN_VALUES_H
#define DEEPSTRIDE_TOOLS_DS_RUN_VALUES_H

#include "tools/ds-run/Options.h"

#include "runtime/core/Session.h"

#include <map>
#include <set>
#include <string>
#include <vector>

namespace ds {

// Those that a launch writes to memory, outputs included. What the compiler made has no name, and what it fused is
// never in memory.
std::set<std::string> blockNames(const EntryInfo &entry);

// The names of --values. Throws Error(InvalidArgument) where the entry does not keep one of them.
std::set<std::string> wantedValues(const EntryInfo &entry, const Options &options);

// Calls visit(name of the block, its value) for each named result. A launch that runs several times, in a loop, gives
// "name#2" and so on.
class BlockObserver : public LaunchObserver {
public:
  explicit BlockObserver(const std::set<std::string> &wanted) : wanted(wanted) {}
  void afterLaunch(const Event &event) override;

protected:
  virtual void visit(const std::string &name, const TensorView &value) = 0;

private:
  const std::set<std::string> &wanted;
  std::map<std::string, unsigned> seen;
};

class BlockRecorder : public BlockObserver {
public:
  using BlockObserver::BlockObserver;
  std::vector<NamedTensor> blocks; // in the order of execution

private:
  void visit(const std::string &name, const TensorView &value) override;
};

} // namespace ds
#endif
