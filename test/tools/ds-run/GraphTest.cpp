// Graphs of entries: who reads what, what repeats, and that both ways to write them are well formed.
#include "tools/ds-run/Graph.h"
#include "tools/ds-run/Markup.h"

#include <algorithm>
#include <gtest/gtest.h>

using namespace ds;

namespace {

/// x -> embed -> layers of norm, linear, gelu, linear -> norm -> y, with "<&\"" in a name.
EntryInfo layeredEntry(unsigned layers) {
  EntryInfo entry;
  entry.name = "main";
  SymbolicShape shape = {SizeExpr::constant(4)};
  entry.inputs = {{"x<&\"", ElementType::F32, shape, std::nullopt}};
  entry.outputs = {{"y", ElementType::F32, shape, std::nullopt}};
  entry.buffers = {{BufferRole::Constant, 0}, {BufferRole::Input, 0}};
  uint32_t last = 1;
  auto add = [&](const std::string &kernel, BufferRole role) {
    entry.buffers.push_back({role, 0});
    auto buffer = static_cast<uint32_t>(entry.buffers.size() - 1);
    LaunchInfo launch;
    launch.kernel = kernel;
    launch.site = "/" + kernel;
    launch.operands = {last, 0};
    launch.results = {{buffer, "v", ElementType::F32, shape, std::nullopt}};
    entry.launches.push_back(launch);
    last = buffer;
  };
  add("gather_0", BufferRole::Workspace);
  for (unsigned layer = 0; layer < layers; ++layer)
    for (const char *kernel : {"layer_norm_1", "linear_2", "gelu_3", "linear_4"})
      add(kernel, BufferRole::Workspace);
  add("rms_norm_5", BufferRole::Output);
  return entry;
}

size_t count(const std::string &text, const std::string &part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++found;
  return found;
}

// What all layers share stands within the first one, and the last one has no norm behind it.
TEST(Graph, TheLastLayerMayEndDifferently) {
  EntryInfo entry = layeredEntry(4);
  LaunchInfo mask = entry.launches[0];
  mask.kernel = "mask_6";
  entry.launches.insert(entry.launches.begin() + 2, mask); // gather, norm, mask; linear, gelu, linear, norm; ...
  std::vector<Layer> layers = layersOf(entry);
  ASSERT_EQ(layers.size(), 6u);
  EXPECT_EQ(layers[0].count, 3u);
  EXPECT_EQ(layers[1].name, "layer 1 of 4");
  EXPECT_EQ(layers[3].count, 4u);
  EXPECT_EQ(layers[4].name, "layer 4 of 4");
  EXPECT_EQ(layers[4].count, 3u);
  EXPECT_EQ(layers[5].name, "after the layers");
  EXPECT_EQ(layers[5].first + layers[5].count, entry.launches.size());
  entry.launches.erase(entry.launches.end() - 2); // half of a part is none
  EXPECT_EQ(layersOf(entry)[3].name, "layer 3 of 3");
}

TEST(Graph, EveryRepetitionIsALayer) {
  std::vector<Layer> layers = layersOf(layeredEntry(3));
  ASSERT_EQ(layers.size(), 5u);
  const char *names[] = {"before the layers", "layer 1 of 3", "layer 2 of 3", "layer 3 of 3", "after the layers"};
  size_t next = 0;
  for (size_t i = 0; i < layers.size(); ++i) {
    EXPECT_EQ(layers[i].name, names[i]);
    EXPECT_EQ(layers[i].first, next);
    next += layers[i].count;
  }
  EXPECT_EQ(next, layeredEntry(3).launches.size());
  EntryInfo entry = layeredEntry(3);
  for (size_t i = 1; i + 1 < entry.launches.size(); ++i)
    entry.launches[i].site = "/encoder/layer." + std::to_string((i - 1) / 4) + (i % 2 ? "/a/b" : "/c");
  EXPECT_EQ(layersOf(entry)[2].name, "layer 2 of 3, /encoder/layer.1");
  entry.launches.resize(2);
  EXPECT_EQ(layersOf(entry)[0].name, "all");
  EXPECT_EQ(layersOf(entry)[0].count, 2u);
  entry.launches.clear();
  EXPECT_TRUE(layersOf(entry).empty());
}

TEST(Graph, NamesAreEscapedForXml) {
  EXPECT_EQ(escapeMarkup("<a href=\"x\">&'\x01\t\n"), "&lt;a href=&quot;x&quot;&gt;&amp;'   ");
  EXPECT_EQ(escapeMarkup("\xC3\xBC \xEF\xBF\xBE\xEF\xBF\xBF\xEF\xBF\xBD"), "\xC3\xBC   \xEF\xBF\xBD");
  std::string umlauts;
  for (int i = 0; i < 40; ++i)
    umlauts += "\xC3\xBC";
  EXPECT_EQ(shortenName(umlauts), umlauts.substr(0, 40) + "...");
}

TEST(Graph, ALayerThatRepeatsIsShownOnce) {
  Graph graph = buildGraph(layeredEntry(12), "model");
  ASSERT_EQ(graph.sections.size(), 3u);
  EXPECT_EQ(graph.sections[1].repetitions, 12u);
  EXPECT_EQ(graph.sections[1].count, 4u);
  EXPECT_EQ(graph.sections[1].title, "12 times");
  // x, gather, four of a layer, norm, y; constants are left out.
  ASSERT_EQ(graph.nodes.size(), 8u);
  EXPECT_EQ(graph.nodes[2].kind, "layer_norm");
  EXPECT_EQ(graph.nodes[2].label, "f32 [4]");
  auto carried = std::find_if(graph.edges.begin(), graph.edges.end(), [](auto &edge) { return edge.isCarried; });
  ASSERT_NE(carried, graph.edges.end());
  EXPECT_EQ(carried->from, 5u);
  EXPECT_EQ(carried->to, 2u);
  EXPECT_EQ(graph.edges.size(), 8u);
}

TEST(Graph, WithoutARepetitionThereIsOneSection) {
  Graph graph = buildGraph(layeredEntry(1), "model");
  ASSERT_EQ(graph.sections.size(), 1u);
  EXPECT_EQ(graph.sections[0].count, 8u);
  EXPECT_TRUE(std::none_of(graph.edges.begin(), graph.edges.end(), [](auto &edge) { return edge.isCarried; }));
}

TEST(Graph, EveryNodeAndEdgeIsWritten) {
  Graph graph = buildGraph(layeredEntry(3), "a \"title\" <&>");
  std::string dot = graphAsDot(graph), svg = graphAsSvg(graph);
  EXPECT_EQ(count(dot, " -> "), graph.edges.size());
  EXPECT_EQ(count(dot, "fillcolor"), graph.nodes.size());
  EXPECT_EQ(count(dot, "subgraph"), 1u);
  EXPECT_EQ(count(dot, "a \\\"title\\\" <&>"), 2u);
  EXPECT_EQ(count(svg, "<g>"), graph.nodes.size());
  EXPECT_EQ(count(svg, "marker-end"), graph.edges.size());
  EXPECT_EQ(count(svg, "3 times"), 1u);
  EXPECT_EQ(count(svg, "x&lt;&amp;&quot;"), 2u);
}

TEST(Graph, AnEntryWithoutLaunchesIsAPicture) {
  EntryInfo entry;
  EXPECT_NE(graphAsSvg(buildGraph(entry, "empty")).find("</svg>"), std::string::npos);
}

} // namespace
