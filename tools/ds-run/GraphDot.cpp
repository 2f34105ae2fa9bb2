// A graph in the language of Graphviz, for those who want to lay it out themselves.
#include "tools/ds-run/Graph.h"

#include "runtime/core/Error.h"

namespace ds {

static std::string quoted(const std::string &text) {
  std::string result = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\')
      result += '\\';
    result += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  }
  return result + "\"";
}

std::string graphAsDot(const Graph &graph) {
  std::string label = quoted(graph.title);
  if (!graph.legend.empty()) {
    label.pop_back();
    label += "\\n" + quoted(graph.legend).substr(1);
  }
  std::string text = concat("digraph ", quoted(graph.title), " {\n  label=", label,
                            ";\n  node [shape=box, style=\"filled,rounded\", fontname=\"sans-serif\"];\n");
  for (size_t number = 0; number < graph.sections.size(); ++number) {
    const GraphSection &section = graph.sections[number];
    bool isBox = section.repetitions > 1;
    if (isBox)
      text += concat("  subgraph cluster_", number, " {\n  label=", quoted(section.title), ";\n");
    for (size_t i = section.first; i < section.first + section.count; ++i) {
      const GraphNode &node = graph.nodes[i];
      // Within a label, a backslash and n stand for a new line.
      std::string label = quoted(node.kind);
      label.pop_back();
      label += "\\n" + quoted(node.label).substr(1);
      text += concat("  n", i, " [label=", label, ", fillcolor=", quoted(colourOf(node.kind)),
                     ", tooltip=", quoted(node.detail), "];\n");
    }
    if (isBox)
      text += "  }\n";
  }
  for (const GraphEdge &edge : graph.edges)
    text +=
        concat("  n", edge.from, " -> n", edge.to, edge.isCarried ? " [style=dashed, constraint=false]" : "", ";\n");
  return text + "}\n";
}

} // namespace ds
