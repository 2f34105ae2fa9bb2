// ds-run compare: a package against the expected outputs of a test data folder, of an npz or of ONNX Runtime, or
// against another package, then also block by block, and with what the calls leave in states.
#include "tools/ds-run/Inputs.h"
#include "tools/ds-run/OnnxRuntime.h"
#include "tools/ds-run/Options.h"
#include "tools/ds-run/TensorCompare.h"
#include "tools/ds-run/Values.h"

#include "runtime/core/Error.h"
#include "runtime/core/MappedFile.h"
#include "runtime/core/Session.h"
#include "runtime/core/Text.h"
#include "runtime/io/Npz.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <set>

namespace ds {
namespace {

class BlockComparer : public BlockObserver {
public:
  BlockComparer(const std::set<std::string> &wanted, const std::vector<NamedTensor> &blocks, Tolerance tolerance)
      : BlockObserver(wanted), tolerance(tolerance) {
    for (const NamedTensor &block : blocks)
      expected[block.name] = &block.tensor;
  }
  std::map<std::string, std::string> texts;
  std::set<std::string> different;
  std::vector<std::string> alone; // seen here, but not recorded

private:
  // The package under test ran first, so what is recorded is `found` and what is seen here is `expected`.
  void visit(const std::string &name, const TensorView &value) override {
    auto known = expected.find(name);
    if (known == expected.end()) {
      alone.push_back(name);
      return;
    }
    TensorView found = known->second->view();
    Difference difference = compareTensors(found, value, tolerance, true);
    texts[name] = differenceText(difference, found, value);
    if (!difference.isWithin())
      different.insert(name);
  }

  Tolerance tolerance;
  std::map<std::string, const Tensor *> expected;
};

bool reportOutput(const std::string &name, const TensorView &found, const TensorView &expected,
                  const Tolerance &tolerance) {
  Difference difference = compareTensors(found, expected, tolerance);
  std::printf("%s: %s\n", oneLine(name).c_str(), differenceText(difference, found, expected).c_str());
  return difference.isWithin();
}

bool reportOutputAlone(const std::string &name, const std::string &package) {
  std::printf("%s: only in %s: differs\n", oneLine(name).c_str(), oneLine(package).c_str());
  return false;
}

// The place of a name in a list of things with names; the list's size where it is not there.
template <typename List> size_t place(const List &list, const std::string &name) {
  auto match = std::find_if(list.begin(), list.end(), [&](const auto &item) { return item.name == name; });
  return static_cast<size_t>(match - list.begin());
}

// What the calls left in the states of their entries.
bool reportStates(const std::vector<StateInfo> &mine, const std::vector<NamedView> &found,
                  const std::vector<StateInfo> &theirs, const std::vector<NamedView> &expected, const Options &options,
                  const Tolerance &tolerance) {
  bool isWithin = true;
  for (const StateInfo &state : mine)
    if (place(theirs, state.name) < theirs.size())
      isWithin &= reportOutput("state " + state.name, found[place(found, state.name)].view,
                               expected[place(expected, state.name)].view, tolerance);
    else
      isWithin = reportOutputAlone("state " + state.name, options.package);
  for (const StateInfo &state : theirs)
    if (place(mine, state.name) == mine.size())
      isWithin = reportOutputAlone("state " + state.name, options.other);
  return isWithin;
}

void writeFound(const EntryInfo &entry, const std::vector<Tensor> &outputs, const std::vector<NamedTensor> &values,
                const Options &options) {
  if (options.output.empty())
    return;
  std::vector<NamedView> named;
  for (size_t i = 0; i < outputs.size(); ++i)
    named.push_back({entry.outputs[i].name, outputs[i].view()});
  for (const NamedTensor &value : values)
    if (place(entry.outputs, value.name) == entry.outputs.size())
      named.push_back({value.name, value.tensor.view()});
  writeNpz(options.output, named);
}

// A call against tensors by name: all outputs, and those of the names that are values of the package.
int compareWithTensors(Session &session, size_t index, const std::vector<TensorView> &views, const Pins &pins,
                       const std::vector<NamedTensor> &expected, const std::string &from, const Options &options,
                       const Tolerance &tolerance) {
  const EntryInfo &entry = session.entry(index);
  std::set<std::string> kept = blockNames(entry), wanted = wantedValues(entry, options);
  for (const std::string &name : wanted)
    if (place(expected, name) == expected.size())
      fail(ErrorCode::InvalidArgument, "--values: '", name, "' is not in ", from);
  for (const NamedTensor &item : expected)
    if (kept.count(item.name))
      wanted.insert(item.name);
  BlockRecorder recorder(wanted);
  std::vector<Tensor> outputs;
  session.run(index, views, pins, outputs, &recorder);
  // NumPy lacks some types, whose numbers come in wider ones.
  auto report = [&](const std::string &name, const TensorView &found, const TensorView &wide) {
    Difference difference = compareTensors(found, wide, tolerance, npyType(found.type) != found.type);
    std::printf("%s: %s\n", oneLine(name).c_str(), differenceText(difference, found, wide).c_str());
    return difference.isWithin();
  };
  bool isWithin = true;
  for (const NamedTensor &block : recorder.blocks)
    if (size_t at = place(expected, block.name);
        at < expected.size() && place(entry.outputs, block.name) == entry.outputs.size())
      isWithin &= report("value " + block.name, block.tensor.view(), expected[at].tensor.view());
  for (size_t i = 0; i < outputs.size(); ++i)
    if (size_t at = place(expected, entry.outputs[i].name); at < expected.size())
      isWithin &= report(entry.outputs[i].name, outputs[i].view(), expected[at].tensor.view());
    else
      isWithin = reportOutputAlone(entry.outputs[i].name, options.package);
  for (const NamedTensor &item : expected)
    if (place(entry.outputs, item.name) == entry.outputs.size() && !kept.count(item.name))
      isWithin = reportOutputAlone(item.name, from);
  writeFound(entry, outputs, recorder.blocks, options);
  return isWithin ? 0 : 1;
}

// Against an npz, or against ONNX Runtime, which runs first: it is a child of a process of one thread.
int compareByName(const Options &options, const Tolerance &tolerance) {
  std::shared_ptr<const Package> package = loadPackage(options.package, options);
  size_t index = package->entryIndex(options.entry);
  const EntryInfo &called = package->variant().entries[index];
  wantedValues(called, options); // before minutes are spent elsewhere
  Pins pins = parsePins(options.dims);
  std::vector<std::string> madeUp;
  std::vector<Tensor> inputs = gatherInputs(called, options, pins, 0, &madeUp);
  std::vector<TensorView> views = viewsOf(inputs);
  std::vector<NamedTensor> expected;
  if (options.onnxRuntime.empty()) {
    expected = readNpz(options.other);
  } else {
    std::vector<NamedView> named;
    for (size_t i = 0; i < inputs.size(); ++i)
      named.push_back({called.inputs[i].name, views[i]});
    std::vector<std::string> once; // values may be given twice, members of a file may not
    for (const std::string &name : options.values)
      if (std::find(once.begin(), once.end(), name) == once.end())
        once.push_back(name);
    expected = runOnnxRuntime(options.onnxRuntime, named, once);
  }
  SessionOptions sessionOptions;
  sessionOptions.threads = options.threads;
  Session session(package, sessionOptions);
  restoreStates(session, options, 0);
  int code = compareWithTensors(session, session.choose(index, views, pins), views, pins, expected,
                                options.onnxRuntime.empty() ? options.other : "ONNX Runtime", options, tolerance);
  noteRandomInputs(madeUp, options);
  return code;
}

int compareWithFolder(Session &session, size_t index, const Options &options, const Tolerance &tolerance) {
  const EntryInfo &entry = session.entry(index);
  std::vector<Tensor> inputs = readTestData(options.other, "input", entry.inputs.size());
  std::vector<Tensor> expected = readTestData(options.other, "output", entry.outputs.size()), outputs;
  session.run(index, viewsOf(inputs), parsePins(options.dims), outputs);
  bool isWithin = true;
  for (size_t i = 0; i < outputs.size(); ++i)
    isWithin &= reportOutput(entry.outputs[i].name, outputs[i].view(), expected[i].view(), tolerance);
  return isWithin ? 0 : 1;
}

// The second package's inputs by the first's, by name.
std::vector<TensorView> matchInputs(const EntryInfo &from, const std::vector<Tensor> &inputs, const EntryInfo &to) {
  std::vector<TensorView> views;
  for (const TensorInfo &info : to.inputs) {
    size_t at = place(from.inputs, info.name);
    if (at == from.inputs.size())
      fail(ErrorCode::ShapeMismatch, "input '", info.name, "' of the second package is no input of the first");
    views.push_back(inputs[at].view());
  }
  return views;
}

// Dimensions that only one of the packages still has are pinned in the other.
Pins pinsFor(const EntryInfo &entry, const Pins &pins) {
  Pins known;
  for (const SymbolInfo &symbol : entry.symbols)
    if (pins.count(symbol.name))
      known[symbol.name] = pins.at(symbol.name);
  return known;
}

void reportAlone(const std::string &name, const std::string &package) {
  std::printf("block %s: only in %s\n", oneLine(name).c_str(), oneLine(package).c_str());
}

// What is in the first of two sets only.
void reportMissing(const std::set<std::string> &names, const std::set<std::string> &others,
                   const std::string &package) {
  for (const std::string &name : names)
    if (!others.count(name))
      reportAlone(name, package);
}

void reportBlocks(const BlockRecorder &recorder, const BlockComparer &comparer, const Options &options) {
  size_t compared = 0;
  const std::string *first = nullptr;
  for (const NamedTensor &block : recorder.blocks) {
    auto text = comparer.texts.find(block.name);
    if (text == comparer.texts.end()) { // it ran more often there
      reportAlone(block.name, options.package);
      continue;
    }
    ++compared;
    if (!first && comparer.different.count(block.name))
      first = &block.name;
    std::printf("block %s: %s\n", oneLine(block.name).c_str(), text->second.c_str());
  }
  for (const std::string &name : comparer.alone)
    reportAlone(name, options.other);
  if (first)
    std::printf("first block that differs: %s (%zu of %zu differ)\n", oneLine(*first).c_str(),
                comparer.different.size(), compared);
  else
    std::printf("%zu blocks compared, none differs\n", compared);
}

int compareWithPackage(Session &session, size_t index, const Options &options, const Tolerance &tolerance) {
  Options otherOptions = options;
  otherOptions.mcpu.clear(); // names a variant of the first
  std::shared_ptr<const Package> other = loadPackage(options.other, otherOptions);
  SessionOptions sessionOptions;
  sessionOptions.threads = session.threads();
  Session otherSession(other, sessionOptions);
  // What is called is the entry that callers know; what is compared are the blocks of those that run.
  const EntryInfo &called = session.entry(index);
  size_t otherIndex = other->entryIndex(called.name);
  const EntryInfo &otherCalled = otherSession.entry(otherIndex);

  Pins pins = parsePins(options.dims);
  for (const auto &[name, value] : pins)
    if (!pinsFor(called, pins).count(name) && !pinsFor(otherCalled, pins).count(name))
      fail(ErrorCode::InvalidArgument, "no dimension '", name, "' in either package");
  std::vector<std::string> madeUp;
  std::vector<Tensor> inputs = gatherInputs(called, options, pinsFor(called, pins), 0, &madeUp), outputs, expected;
  std::vector<TensorView> views = viewsOf(inputs), otherViews = matchInputs(called, inputs, otherCalled);
  index = session.choose(index, views, pinsFor(called, pins));
  otherIndex =
      annotated(options.other, [&] { return otherSession.choose(otherIndex, otherViews, pinsFor(otherCalled, pins)); });
  const EntryInfo &entry = session.entry(index), &otherEntry = otherSession.entry(otherIndex);
  std::set<std::string> mine = blockNames(entry), theirs = blockNames(otherEntry), common;
  std::set_intersection(mine.begin(), mine.end(), theirs.begin(), theirs.end(), std::inserter(common, common.end()));

  annotated(options.other, [&] { restoreStates(otherSession, options, 0); });
  BlockRecorder recorder(common);
  session.run(index, views, pinsFor(entry, pins), outputs, &recorder);
  BlockComparer comparer(common, recorder.blocks, tolerance);
  annotated(options.other,
            [&] { otherSession.run(otherIndex, otherViews, pinsFor(otherEntry, pins), expected, &comparer); });
  noteRandomInputs(madeUp, options);
  reportMissing(mine, theirs, options.package);
  reportMissing(theirs, mine, options.other);
  reportBlocks(recorder, comparer, options);

  bool isWithin = true;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::string &name = entry.outputs[i].name;
    size_t at = place(otherEntry.outputs, name);
    if (at < expected.size())
      isWithin &= reportOutput(name, outputs[i].view(), expected[at].view(), tolerance);
    else
      isWithin = reportOutputAlone(name, options.package);
  }
  for (const TensorInfo &info : otherEntry.outputs)
    if (place(entry.outputs, info.name) == outputs.size())
      isWithin = reportOutputAlone(info.name, options.other);
  auto viewsOfStates = [](StateStore &states) { return states.views(); };
  isWithin &= reportStates(entry.states, session.withStates(viewsOfStates), otherEntry.states,
                           otherSession.withStates(viewsOfStates), options, tolerance);
  return isWithin ? 0 : 1;
}

} // namespace

int compareCommand(const Options &options) {
  Tolerance tolerance{options.rtol, options.atol};
  if (options.other.empty() == options.onnxRuntime.empty())
    fail(ErrorCode::InvalidArgument,
         options.other.empty() ? "nothing to compare with: expected OTHER or --onnxruntime=MODEL.onnx"
                               : "--onnxruntime: found '" + options.other + "', too, expected one to compare with");
  const std::string ending = ".npz";
  bool isNpz = options.other.size() > ending.size() &&
               options.other.compare(options.other.size() - ending.size(), ending.size(), ending) == 0;
  if (isNpz || !options.onnxRuntime.empty())
    return compareByName(options, tolerance);
  if (!isFolder(options.other))
    fail(ErrorCode::InvalidArgument, "'", options.other,
         "' is not a folder, expected a test_data_set_* folder, a package or outputs as FILE.npz");
  if (!options.values.empty() || !options.output.empty())
    fail(ErrorCode::InvalidArgument, options.values.empty() ? "--output" : "--values",
         ": is for outputs as FILE.npz and for --onnxruntime; two packages are compared by all of their values");
  std::shared_ptr<const Package> package = loadPackage(options.package, options);
  SessionOptions sessionOptions;
  sessionOptions.threads = options.threads;
  Session session(package, sessionOptions);
  restoreStates(session, options, 0);
  size_t index = package->entryIndex(options.entry);
  if (isThere(options.other + "/manifest.json"))
    return compareWithPackage(session, index, options, tolerance);
  if (!options.inputs.empty() || !options.inputsFrom.empty())
    fail(ErrorCode::InvalidArgument, "--input and --inputs are for two packages, '", options.other,
         "' holds inputs of its own");
  return compareWithFolder(session, index, options, tolerance);
}

} // namespace ds
