// Stable topological sort of nodes; the values that a subgraph takes from around it count as inputs
// of the node that holds the subgraph, and the values that a Gradient names as inputs of it.

#include "frontends/onnx/reader/NodeOrder.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

#include <queue>

using namespace llvm;
using ::onnx::GraphProto;
using ::onnx::NodeProto;

namespace deepstride::onnx {

static void collectUses(const NodeProto &node, StringSet<> &uses);

/// Names that a graph uses and does not define.
static void collectFreeNames(const GraphProto &graph, StringSet<> &free) {
  StringSet<> uses;
  for (const NodeProto &node : graph.node())
    collectUses(node, uses);
  for (const auto &output : graph.output())
    uses.insert(output.name());

  for (const NodeProto &node : graph.node())
    for (const std::string &output : node.output())
      uses.erase(output);
  for (const auto &input : graph.input())
    uses.erase(input.name());
  for (const auto &tensor : graph.initializer())
    uses.erase(tensor.name());
  for (const auto &tensor : graph.sparse_initializer())
    uses.erase(tensor.values().name());
  for (const auto &use : uses)
    free.insert(use.getKey());
}

bool namesValues(const NodeProto &node) {
  return node.op_type() == "Gradient" && node.domain() == "ai.onnx.preview.training";
}

static void collectUses(const NodeProto &node, StringSet<> &uses) {
  for (const std::string &input : node.input())
    uses.insert(input);
  for (const auto &attribute : node.attribute()) {
    if (namesValues(node)) {
      uses.insert(attribute.s());
      for (const std::string &name : attribute.strings())
        uses.insert(name);
    }
    if (attribute.has_g())
      collectFreeNames(attribute.g(), uses);
    for (const GraphProto &graph : attribute.graphs())
      collectFreeNames(graph, uses);
  }
}

namespace {
/// Which nodes wait for which: edges from the producer of a value to its users.
struct Dependences {
  explicit Dependences(const Nodes &nodes) : users(nodes.size()), missing(nodes.size()), uses(nodes.size()) {
    for (int i = 0; i < nodes.size(); ++i)
      for (const std::string &output : nodes[i].output())
        producers.try_emplace(output, i);
    for (int i = 0; i < nodes.size(); ++i) {
      StringSet<> names;
      collectUses(nodes[i], names);
      names.erase("");
      for (const auto &name : names) {
        auto producer = producers.find(name.getKey());
        if (producer == producers.end())
          continue;
        users[producer->second].push_back(i);
        uses[i].push_back(producer);
        ++missing[i];
      }
    }
  }

  StringMap<int> producers;
  std::vector<std::vector<int>> users;
  std::vector<int> missing;
  std::vector<std::vector<StringMap<int>::iterator>> uses;
};
} // namespace

/// Follows unavailable values backwards until a node comes up again: that one is on a cycle.
static Cycle findCycle(const Dependences &graph) {
  int node = static_cast<int>(llvm::find_if(graph.missing, [](int m) { return m > 0; }) - graph.missing.begin());
  std::vector<bool> visited(graph.missing.size());
  std::string value;
  while (!visited[node]) {
    visited[node] = true;
    for (const auto &use : graph.uses[node])
      if (graph.missing[use->second] > 0) {
        value = use->getKey().str();
        node = use->second;
        break;
      }
  }
  return {node, value};
}

std::vector<int> orderNodes(const Nodes &nodes, std::optional<Cycle> &cycle) {
  Dependences graph(nodes);
  std::priority_queue<int, std::vector<int>, std::greater<int>> ready;
  for (int i = 0; i < nodes.size(); ++i)
    if (graph.missing[i] == 0)
      ready.push(i);

  std::vector<int> order;
  order.reserve(nodes.size());
  while (!ready.empty()) {
    int node = ready.top();
    ready.pop();
    order.push_back(node);
    for (int user : graph.users[node])
      if (--graph.missing[user] == 0)
        ready.push(user);
  }
  if (static_cast<int>(order.size()) == nodes.size())
    return order;
  cycle = findCycle(graph);
  return {};
}

} // namespace deepstride::onnx
