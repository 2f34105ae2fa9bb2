#include "tools/ds-run/GraphFold.h"

#include "runtime/core/Error.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <tuple>
#include <utility>

namespace ds {
namespace {

bool isDigit(char c) { return c >= '0' && c <= '9'; }
bool isLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool isOfName(char c) { return isLetter(c) || isDigit(c) || c == '_' || c == '.' || c == '/'; }

// "past.3.key" as "past.*.key".
std::string withoutNumbers(const std::string &name) {
  std::string result;
  for (size_t i = 0; i < name.size(); ++i)
    if (!isDigit(name[i]))
      result += name[i];
    else if (i == 0 || !isDigit(name[i - 1]))
      result += '*';
  return result;
}

// What makes two ends of a graph the same: kind, shape, name but for numbers, and neighbours.
struct End {
  std::string kind, shape, name;
  std::set<size_t> readers, writers;
  bool operator<(const End &other) const {
    return std::tie(kind, shape, name, readers, writers) <
           std::tie(other.kind, other.shape, other.name, other.readers, other.writers);
  }
};

// The graph with each node at its new place; several may share one.
void moveNodes(Graph &graph, const std::vector<size_t> &target) {
  std::vector<size_t> place(graph.nodes.size());
  std::vector<GraphNode> nodes;
  std::vector<GraphSection> sections;
  for (const GraphSection &section : graph.sections) {
    size_t first = nodes.size();
    for (size_t i = section.first; i < section.first + section.count; ++i)
      if (target[i] == i) {
        place[i] = nodes.size();
        nodes.push_back(std::move(graph.nodes[i]));
      }
    if (nodes.size() > first)
      sections.push_back({first, nodes.size() - first, section.repetitions, section.title});
  }
  std::set<std::pair<size_t, size_t>> seen;
  std::vector<GraphEdge> edges;
  for (const GraphEdge &edge : graph.edges)
    if (GraphEdge moved{place[target[edge.from]], place[target[edge.to]], edge.isCarried};
        seen.insert({moved.from, moved.to}).second)
      edges.push_back(moved);
  graph.nodes = std::move(nodes);
  graph.edges = std::move(edges);
  graph.sections = std::move(sections);
}

} // namespace

void foldEqualEnds(Graph &graph) {
  std::vector<std::set<size_t>> readers(graph.nodes.size()), writers(graph.nodes.size());
  for (const GraphEdge &edge : graph.edges) {
    readers[edge.from].insert(edge.to);
    writers[edge.to].insert(edge.from);
  }
  std::map<End, std::vector<size_t>> same;
  std::vector<size_t> target(graph.nodes.size());
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    target[i] = i;
    const GraphNode &node = graph.nodes[i];
    if (node.kind == "input" || node.kind == "state" || node.kind == "output")
      same[{node.kind, node.detail, withoutNumbers(node.label), readers[i], writers[i]}].push_back(i);
  }
  for (const auto &[end, members] : same) {
    if (members.size() == 1)
      continue;
    graph.nodes[members[0]].label = concat(end.name, " (", members.size(), " times)");
    for (size_t member : members)
      target[member] = members[0];
  }
  moveNodes(graph, target);
}

std::map<std::string, std::string> shortDimensions(const EntryInfo &entry) {
  constexpr size_t longest = 3;
  std::map<std::string, std::string> result;
  std::set<std::string> taken;
  for (const SymbolInfo &symbol : entry.symbols)
    if (symbol.name.size() <= longest)
      taken.insert(symbol.name);
  for (const SymbolInfo &symbol : entry.symbols) {
    if (symbol.kind != SymbolKind::Dim || symbol.name.size() <= longest)
      continue;
    auto first = std::find_if(symbol.name.begin(), symbol.name.end(), isLetter);
    std::string letter(1, first == symbol.name.end() ? 'N' : static_cast<char>(std::toupper(*first))), name = letter;
    for (unsigned number = 2; !taken.insert(name).second; ++number)
      name = concat(letter, number);
    result[symbol.name] = name;
  }
  return result;
}

std::string withShortNames(const std::string &expression, const std::map<std::string, std::string> &shortNames) {
  std::string result;
  for (size_t at = 0; at < expression.size();) {
    const std::pair<const std::string, std::string> *found = nullptr;
    bool isStart = at == 0 || !isOfName(expression[at - 1]);
    for (const auto &item : shortNames) { // the longest: a name may begin with another
      size_t end = at + item.first.size();
      bool fits = isStart && expression.compare(at, item.first.size(), item.first) == 0 &&
                  (end >= expression.size() || !isOfName(expression[end]));
      if (fits && (!found || item.first.size() > found->first.size()))
        found = &item;
    }
    result += found ? found->second : std::string(1, expression[at]);
    at += found ? found->first.size() : 1;
  }
  return result;
}

} // namespace ds
