// The launches of an entry as a picture: what was recognised in a model and how values flow between the blocks.
#ifndef DEEPSTRIDE_TOOLS_DS_RUN_GRAPH_H
#define DEEPSTRIDE_TOOLS_DS_RUN_GRAPH_H

#include "runtime/core/Manifest.h"

#include <string>
#include <vector>

namespace ds {

/// What a kernel is named after: an op, or "fused". The compiler adds a number.
std::string kernelKind(const std::string &kernel);

struct GraphNode {
  std::string kind;   // "attention": the kernel without its number; "input", "output" or "state"
  std::string label;  // of a block: its result's type and shape; else the tensor's name
  std::string detail; // kernel, site in the model, operations
};

struct GraphEdge {
  size_t from = 0, to = 0;
  bool isCarried = false; // from one repetition to the next
};

/// A run of nodes, one after another. A section that repeats, such as a transformer layer, is shown once.
struct GraphSection {
  size_t first = 0, count = 0;
  size_t repetitions = 1;
  std::string title; // "12 times"
};

struct Graph {
  std::string title;
  std::string legend; // what letters stand for: "B = batch_size, S = sequence_length"
  std::vector<GraphNode> nodes;
  std::vector<GraphEdge> edges;
  std::vector<GraphSection> sections; // cover all nodes, in order
};

/// A stretch of an entry's launches: one repetition of what repeats, or what lies before, between and behind.
struct Layer {
  size_t first = 0, count = 0;
  std::string name; // "layer 3 of 12", and what its nodes have in common: "layer 3 of 12, /encoder/layer.2"
};

/// Layers in the order of the program; they cover all launches. Names are unique.
std::vector<Layer> layersOf(const EntryInfo &entry);

/// Launches in the order of the program; constants are left out.
Graph buildGraph(const EntryInfo &entry, const std::string &title);

/// In the language of Graphviz.
std::string graphAsDot(const Graph &graph);

/// Drawn by layers: a node stands below all that it reads, and no line crosses a box.
std::string graphAsSvg(const Graph &graph);

/// A colour ("#rrggbb") for the background of a kind of block; what the compiler recognised stands out.
const char *colourOf(const std::string &kind);

} // namespace ds
#endif
