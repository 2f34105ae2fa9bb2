#include "tools/ds-run/GraphPlaces.h"

#include "runtime/core/Error.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <utility>

namespace ds {
namespace {

constexpr double rowHeight = 72, gap = 18, margin = 28, titleHeight = 18, passWidth = 6, laneWidth = 9;

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.1f", value);
  return text;
}

// Positions in order, at least so far apart as `apart` says, that are nearest to the wanted ones: squares, by weight.
// Neighbours that want to be closer are moved as one (pool adjacent violators).
std::vector<double> nearestInOrder(const std::vector<double> &wanted, const std::vector<double> &weights,
                                   const std::vector<double> &apart) {
  struct Pool {
    double sum, weight;
    size_t count;
    double mean() const { return sum / weight; }
  };
  std::vector<Pool> pools;
  double offset = 0;
  std::vector<double> offsets;
  for (size_t i = 0; i < wanted.size(); ++i) {
    offset += i ? apart[i - 1] : 0;
    offsets.push_back(offset);
    pools.push_back({(wanted[i] - offset) * weights[i], weights[i], 1});
    while (pools.size() > 1 && pools[pools.size() - 2].mean() > pools.back().mean()) {
      Pool last = pools.back();
      pools.pop_back();
      pools.back() = {pools.back().sum + last.sum, pools.back().weight + last.weight, pools.back().count + last.count};
    }
  }
  std::vector<double> result;
  for (const Pool &pool : pools)
    for (size_t i = 0; i < pool.count; ++i)
      result.push_back(pool.mean() + offsets[result.size()]);
  return result;
}

class Layout {
public:
  Layout(const Graph &graph, const std::vector<double> &widths) : graph(graph), items(graph.nodes.size()) {
    for (size_t i = 0; i < widths.size(); ++i)
      items[i].width = widths[i];
  }

  GraphPlaces run(double heading, double textWidth) {
    assignRows();
    addPassages();
    for (int sweep = 0; sweep < 12; ++sweep) // few are needed, and a crossing more is no harm
      orderRows(sweep % 2 == 0);
    for (int sweep = 0; sweep < 24; ++sweep)
      spreadRows(sweep % 2 == 0);
    return finish(heading, textWidth);
  }

private:
  struct Item {                // a node, or where a line passes a row
    size_t row = 0, place = 0; // place: from the left
    double x = 0, y = 0, width = 0;
    std::vector<size_t> above, below;
    const std::vector<size_t> &towards(bool isUp) const { return isUp ? above : below; }
  };

  bool isUpwards(const GraphEdge &edge) const { return edge.isCarried || edge.from >= edge.to; }

  void assignRows() {
    std::vector<std::vector<size_t>> sources(graph.nodes.size());
    for (const GraphEdge &edge : graph.edges)
      if (!isUpwards(edge))
        sources[edge.to].push_back(edge.from);
    size_t next = 0;
    for (const GraphSection &section : graph.sections) {
      // Sections do not share rows, so that a frame surrounds its own nodes only.
      size_t base = next;
      for (size_t i = section.first; i < section.first + section.count; ++i) {
        items[i].row = base;
        for (size_t source : sources[i])
          items[i].row = std::max(items[i].row, items[source].row + 1);
        next = std::max(next, items[i].row + 1);
      }
    }
    rows.resize(next);
  }

  void link(size_t from, size_t to) {
    items[from].below.push_back(to);
    items[to].above.push_back(from);
  }

  // Lines from one box share their passages.
  void addPassages() {
    std::map<std::pair<size_t, size_t>, size_t> passages; // by box and row
    passed.resize(graph.edges.size());
    for (size_t e = 0; e < graph.edges.size(); ++e) {
      const GraphEdge &edge = graph.edges[e];
      if (isUpwards(edge))
        continue;
      size_t last = edge.from;
      for (size_t row = items[edge.from].row + 1; row < items[edge.to].row; ++row) {
        auto [place, isNew] = passages.emplace(std::pair(edge.from, row), items.size());
        if (isNew) {
          items.emplace_back();
          items.back().row = row;
          items.back().width = passWidth;
          link(last, place->second);
        }
        last = place->second;
        passed[e].push_back(last);
      }
      link(last, edge.to);
    }
    for (size_t i = 0; i < items.size(); ++i) {
      items[i].place = rows[items[i].row].size();
      rows[items[i].row].push_back(i);
    }
  }

  // By the mean place of neighbours in the row before.
  void orderRows(bool isDown) {
    for (size_t r = 0; r < rows.size(); ++r) {
      std::vector<size_t> &row = rows[isDown ? r : rows.size() - 1 - r];
      std::map<size_t, std::pair<double, size_t>> wanted; // and who was further left
      for (size_t item : row) {
        const std::vector<size_t> &near = items[item].towards(isDown);
        double sum = 0;
        for (size_t other : near)
          sum += (static_cast<double>(items[other].place) + 0.5) / static_cast<double>(rows[items[other].row].size());
        double mean = near.empty() ? (static_cast<double>(items[item].place) + 0.5) / static_cast<double>(row.size())
                                   : sum / static_cast<double>(near.size());
        wanted[item] = {mean, items[item].place};
      }
      std::sort(row.begin(), row.end(), [&](size_t a, size_t b) { return wanted[a] < wanted[b]; });
      for (size_t i = 0; i < row.size(); ++i)
        items[row[i]].place = i;
    }
  }

  // As near to the neighbours of the row before as the others allow; passages matter more, so that lines are straight.
  void spreadRows(bool isDown) {
    for (size_t r = 0; r < rows.size(); ++r) {
      const std::vector<size_t> &row = rows[isDown ? r : rows.size() - 1 - r];
      std::vector<double> wanted, weights, apart;
      for (size_t i = 0; i < row.size(); ++i) {
        const Item &item = items[row[i]];
        const std::vector<size_t> &near = item.towards(isDown);
        double sum = 0;
        for (size_t other : near)
          sum += items[other].x;
        wanted.push_back(near.empty() ? item.x : sum / static_cast<double>(near.size()));
        weights.push_back(near.empty() ? 0.1 : row[i] < graph.nodes.size() ? 1 : 4);
        if (i + 1 < row.size())
          apart.push_back((item.width + items[row[i + 1]].width) / 2 + gap);
      }
      std::vector<double> found = nearestInOrder(wanted, weights, apart);
      for (size_t i = 0; i < row.size(); ++i)
        items[row[i]].x = found[i];
    }
  }

  GraphPlaces finish(double heading, double textWidth) {
    double left = items.empty() ? 0 : items[0].x, right = left, y = heading + margin;
    for (const Item &item : items) {
      left = std::min(left, item.x - item.width / 2);
      right = std::max(right, item.x + item.width / 2);
    }
    GraphPlaces places;
    size_t row = 0;
    for (const GraphSection &section : graph.sections) {
      double top = y;
      if (section.repetitions > 1)
        y += titleHeight;
      size_t last = row;
      for (size_t i = section.first; i < section.first + section.count; ++i)
        last = std::max(last, items[i].row + 1);
      for (; row < last; ++row, y += rowHeight)
        for (size_t item : rows[row])
          items[item].y = y + rowHeight / 2;
      places.frames.push_back({top, y});
      y += section.repetitions > 1 ? gap : 0;
    }
    auto lanes = std::count_if(graph.edges.begin(), graph.edges.end(), [&](auto &edge) { return isUpwards(edge); });
    double extent = std::max(right - left + static_cast<double>(lanes) * laneWidth, textWidth);
    for (Item &item : items)
      item.x += 2 * margin - left;
    places.width = extent + 4 * margin;
    places.height = y + margin;
    for (size_t i = 0; i < graph.nodes.size(); ++i)
      places.boxes.push_back({items[i].row, items[i].x, items[i].y, items[i].width});
    size_t lane = 0;
    for (size_t e = 0; e < graph.edges.size(); ++e)
      if (isUpwards(graph.edges[e])) {
        ++lane;
        double side = right - left + 2 * margin + laneWidth * static_cast<double>(lane);
        places.lines.push_back(lineAround(graph.edges[e], side, lane));
      } else {
        places.lines.push_back(lineDown(graph.edges[e], passed[e]));
      }
    return places;
  }

  // Bends lie between rows; rows are passed straight.
  std::string lineDown(const GraphEdge &edge, const std::vector<size_t> &through) const {
    const Item &from = items[edge.from], &to = items[edge.to];
    double x = from.x, y = from.y + graphBoxHeight / 2;
    std::string path = concat("M", number(x), " ", number(y));
    auto bend = [&](double toX, double toY) {
      double middle = (y + toY) / 2;
      path += concat("C", number(x), " ", number(middle), " ", number(toX), " ", number(middle), " ", number(toX), " ",
                     number(toY));
      x = toX, y = toY;
    };
    for (size_t passage : through) {
      bend(items[passage].x, items[passage].y - graphBoxHeight / 2);
      y = items[passage].y + graphBoxHeight / 2;
      path += concat("V", number(y));
    }
    bend(to.x, to.y - graphBoxHeight / 2);
    return path;
  }

  // Along the right edge of the picture, where no box is.
  std::string lineAround(const GraphEdge &edge, double side, size_t lane) const {
    const Item &from = items[edge.from], &to = items[edge.to];
    double inset = 6 + static_cast<double>(lane % 4) * 3;
    double below = from.y + graphBoxHeight / 2, above = to.y - graphBoxHeight / 2;
    return concat("M", number(from.x), " ", number(below), "V", number(below + inset), "H", number(side), "V",
                  number(above - inset), "H", number(to.x), "V", number(above));
  }

  const Graph &graph;
  std::vector<Item> items;                       // nodes, then passages
  std::vector<std::vector<size_t>> rows, passed; // items by row, from the left; passages by edge
};

} // namespace

GraphPlaces placeGraph(const Graph &graph, const std::vector<double> &widths, double heading, double textWidth) {
  return Layout(graph, widths).run(heading, textWidth);
}

} // namespace ds
