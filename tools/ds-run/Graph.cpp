// From launches to nodes: who wrote what a launch reads, and which stretches of launches repeat. Identical layers share
// their kernels, so that a repetition is a sequence of kernel names that comes again at once.
#include "tools/ds-run/Graph.h"

#include "runtime/core/Error.h"
#include "tools/ds-run/GraphFold.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

namespace ds {

std::string kernelKind(const std::string &kernel) {
  size_t end = kernel.find_last_not_of("0123456789");
  bool isNumbered = end != std::string::npos && end > 0 && end + 1 < kernel.size() && kernel[end] == '_';
  return isNumbered ? kernel.substr(0, end) : kernel;
}

namespace {

struct Repetition {
  size_t period = 1, count = 1;
};

/// The longest repetition that starts at `at`; of equally long ones the one with the shortest period.
Repetition repetitionAt(const std::vector<LaunchInfo> &launches, size_t at) {
  // Shorter ones are no layers (three projections side by side), longer ones are too slow to look for.
  constexpr size_t shortest = 4, longest = 400;
  Repetition best;
  for (size_t period = shortest; period <= longest && at + 2 * period <= launches.size(); ++period) {
    size_t same = 0;
    while (at + period + same < launches.size() && launches[at + same].kernel == launches[at + period + same].kernel)
      ++same;
    size_t count = same / period + 1;
    if (count > 1 && count * period > best.count * best.period)
      best = {period, count};
  }
  return best;
}

/// How many launches behind the repetition are those that each of its parts begins with: more than half of a part is
/// one more, which ends differently. The first layer may begin with what all share, so that parts begin within it.
size_t partBehind(const std::vector<LaunchInfo> &launches, size_t at, const Repetition &repetition) {
  size_t end = at + repetition.period * repetition.count, same = 0;
  while (same < repetition.period && end + same < launches.size() &&
         launches[end + same].kernel == launches[at + same].kernel)
    ++same;
  return 2 * same > repetition.period ? same : 0;
}

/// The folders, as it were, that the names of all these nodes begin with.
std::string commonPath(const std::vector<LaunchInfo> &launches, size_t first, size_t count) {
  std::string common = launches[first].site;
  common.resize(std::min(common.size(), common.rfind('/') == std::string::npos ? 0 : common.rfind('/')));
  for (size_t i = first + 1; i < first + count; ++i)
    while (!common.empty() && launches[i].site.compare(0, common.size() + 1, common + "/") != 0)
      common.resize(common.rfind('/') == std::string::npos ? 0 : common.rfind('/'));
  return common;
}

class Builder {
public:
  Builder(const EntryInfo &entry, const std::string &title)
      : entry(entry), writers(entry.buffers.size(), none), shortNames(shortDimensions(entry)) {
    graph.title = title;
    for (const auto &[name, letter] : shortNames)
      graph.legend += (graph.legend.empty() ? "" : ", ") + letter + " = " + name;
  }

  Graph build() {
    addInputs();
    for (size_t at = 0; at < entry.launches.size();) {
      Repetition repetition = repetitionAt(entry.launches, at);
      if (repetition.count > 1)
        addRepetition(at, repetition);
      else
        addLaunch(at);
      at += repetition.period * repetition.count;
    }
    addOutputs();
    foldEqualEnds(graph);
    return std::move(graph);
  }

private:
  static constexpr size_t none = SIZE_MAX;

  std::string shapeText(ElementType type, const SymbolicShape &shape) const {
    std::string text = concat(typeName(type), " [");
    for (size_t i = 0; i < shape.size(); ++i)
      text += (i ? ", " : "") + withShortNames(shape[i].text(), shortNames);
    return text + "]";
  }

  /// A new node, in the last section or in a new one if that one repeats.
  size_t addNode(GraphNode node) {
    if (graph.sections.empty() || graph.sections.back().repetitions > 1)
      graph.sections.push_back({graph.nodes.size(), 0, 1, ""});
    ++graph.sections.back().count;
    graph.nodes.push_back(std::move(node));
    return graph.nodes.size() - 1;
  }

  void addEdge(size_t from, size_t to, bool isCarried) {
    if (from != none && seen.insert({from, to}).second)
      graph.edges.push_back({from, to, isCarried});
  }

  void addInputs() {
    for (size_t i = 0; i < entry.buffers.size(); ++i) {
      const BufferInfo &buffer = entry.buffers[i];
      if (buffer.role == BufferRole::Input) {
        const TensorInfo &input = entry.inputs[buffer.index];
        writers[i] = addNode({"input", input.name, shapeText(input.type, input.shape)});
      } else if (buffer.role == BufferRole::State) {
        const StateInfo &state = entry.states[buffer.index];
        writers[i] = addNode({"state", state.name, shapeText(state.type, state.shape)});
      }
    }
  }

  GraphNode describe(const LaunchInfo &launch) {
    std::string shape =
        launch.results.empty() ? "" : shapeText(launch.results.front().type, launch.results.front().shape);
    return {kernelKind(launch.kernel), shape,
            concat(launch.kernel, " at ", launch.site, ", ", launch.flops.text(), " operations")};
  }

  void connect(const LaunchInfo &launch, size_t node, bool isRepeated) {
    for (uint32_t operand : launch.operands)
      if (size_t writer = writers[operand]; writer != none && writer != node)
        addEdge(writer, node, isRepeated && writer > node);
      else if (writer == node)
        addEdge(node, node, true);
    for (const LaunchResult &result : launch.results)
      writers[result.buffer] = node;
  }

  void addLaunch(size_t at) { connect(entry.launches[at], addNode(describe(entry.launches[at])), false); }

  /// The nodes stand for all repetitions: what a later one reads from the one before is an edge that is carried.
  void addRepetition(size_t at, const Repetition &repetition) {
    size_t first = graph.nodes.size();
    graph.sections.push_back({first, repetition.period, repetition.count, concat(repetition.count, " times")});
    for (size_t i = 0; i < repetition.period; ++i)
      graph.nodes.push_back(describe(entry.launches[at + i]));
    for (size_t i = 0; i < repetition.period * repetition.count; ++i)
      connect(entry.launches[at + i], first + i % repetition.period, i >= repetition.period);
  }

  void addOutputs() {
    for (size_t i = 0; i < entry.buffers.size(); ++i) {
      const BufferInfo &buffer = entry.buffers[i];
      if (buffer.role != BufferRole::Output)
        continue;
      const TensorInfo &output = entry.outputs[buffer.index];
      addEdge(writers[i], addNode({"output", output.name, shapeText(output.type, output.shape)}), false);
    }
  }

  const EntryInfo &entry;
  Graph graph;
  std::vector<size_t> writers;                   // by buffer: the node that wrote it last
  std::map<std::string, std::string> shortNames; // of dimensions
  std::set<std::pair<size_t, size_t>> seen;
};

} // namespace

std::vector<Layer> layersOf(const EntryInfo &entry) {
  std::vector<Layer> layers;
  size_t stretches = 0, between = SIZE_MAX; // the layer that single launches go to
  for (size_t at = 0; at < entry.launches.size();) {
    Repetition repetition = repetitionAt(entry.launches, at);
    if (repetition.count == 1) {
      if (between == SIZE_MAX) {
        between = layers.size();
        layers.push_back({at, 0, stretches == 0 ? "before the layers" : concat("after layers ", stretches)});
      }
      ++layers[between].count;
      ++at;
      continue;
    }
    ++stretches;
    between = SIZE_MAX;
    size_t behind = partBehind(entry.launches, at, repetition), count = repetition.count + (behind > 0 ? 1 : 0);
    for (size_t i = 0; i < count; ++i) {
      size_t launches = i < repetition.count ? repetition.period : behind;
      std::string path = commonPath(entry.launches, at, launches);
      std::string stretch = stretches > 1 ? concat(" (", stretches, ")") : "";
      layers.push_back(
          {at, launches, concat("layer ", i + 1, " of ", count, stretch, path.empty() ? "" : ", " + path)});
      at += launches;
    }
  }
  if (stretches == 0 && !layers.empty())
    layers[0].name = "all";
  else if (stretches == 1 && between != SIZE_MAX && between != 0)
    layers[between].name = "after the layers";
  return layers;
}

Graph buildGraph(const EntryInfo &entry, const std::string &title) { return Builder(entry, title).build(); }

const char *colourOf(const std::string &kind) {
  static const struct {
    const char *part, *colour;
  } colours[] = {{"attention", "#f6c1c7"}, {"norm", "#cfe3c8"},   {"gelu", "#fbe3b0"},   {"softmax", "#f3d2ea"},
                 {"rotary", "#d9d0f2"},    {"linear", "#bcd7f2"}, {"matmul", "#bcd7f2"}, {"conv", "#bcd7f2"},
                 {"input", "#ffffff"},     {"output", "#ffffff"}, {"state", "#ffffff"}};
  for (const auto &[part, colour] : colours)
    if (kind.find(part) != std::string::npos)
      return colour;
  return "#ececec";
}

} // namespace ds
