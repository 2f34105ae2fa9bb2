#include "runtime/core/Error.h"
#include "tools/ds-run/profile/ModuleReport.h"

#include <algorithm>
#include <cstdio>

namespace ds {

static std::string number(double value, const char *format = "%.2f") {
  char text[64];
  std::snprintf(text, sizeof(text), format, value);
  return text;
}

// With the largest of the units that leaves at least 1.
static std::string withUnit(double value, std::initializer_list<std::pair<double, const char *>> units) {
  for (auto [size, unit] : units)
    if (value >= size)
      return number(value / size) + " " + unit;
  return "";
}

std::string countText(double count) {
  std::string text = withUnit(count, {{1e9, "G"}, {1e6, "M"}, {1e3, "K"}});
  return text.empty() ? number(count, "%.0f") : text;
}

std::string timeText(double ms) {
  std::string text = withUnit(ms, {{1e3, "s"}, {1, "ms"}});
  return text.empty() ? number(ms * 1e3) + " us" : text;
}

std::string rateText(double rate) {
  std::string text = withUnit(rate, {{1e12, "TFLOPS"}, {1e9, "GFLOPS"}, {1e6, "MFLOPS"}, {1e3, "KFLOPS"}});
  return text.empty() ? number(rate) + " FLOPS" : text;
}

static std::string percent(double part, double whole) { return number(whole > 0 ? 100 * part / whole : 0) + " %"; }

// Names are anybody's: what would move a terminal's cursor is left out.
static std::string shownName(const std::string &name) {
  std::string shown;
  for (char c : name)
    shown += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? ' ' : c;
  return shown;
}

std::vector<ModuleClass> classesAt(const Module &root, size_t depth) {
  std::vector<const Module *> level = {&root};
  for (size_t i = 0; i < depth; ++i) {
    std::vector<const Module *> next;
    for (const Module *module : level)
      for (const Module &child : module->children)
        next.push_back(&child);
    level = std::move(next);
  }
  std::vector<ModuleClass> classes;
  for (const Module *module : level) {
    std::string name = depth == 0 ? module->name : classOf(module->name);
    auto found = std::find_if(classes.begin(), classes.end(), [&](const ModuleClass &c) { return c.name == name; });
    if (found == classes.end())
      found = classes.insert(classes.end(), {name});
    found->parameters += module->total.parameters;
    found->macs += module->total.allMacs();
    found->ms += module->total.allMs();
  }
  return classes;
}

std::vector<ModuleClass> largestOf(std::vector<ModuleClass> classes, double ModuleClass::*quantity, int64_t top) {
  std::sort(classes.begin(), classes.end(), [&](const ModuleClass &a, const ModuleClass &b) {
    return a.*quantity != b.*quantity ? a.*quantity > b.*quantity : a.name < b.name;
  });
  classes.resize(std::min(classes.size(), static_cast<size_t>(top)));
  return classes;
}

size_t lastDepth(const ModuleProfile &profile, const ModuleReportOptions &options) {
  return options.depth < 0 ? profile.depth : std::min(profile.depth, static_cast<size_t>(options.depth));
}

namespace {

class TextReport {
public:
  TextReport(const ModuleProfile &profile, const StepFacts &facts, const ModuleReportOptions &options)
      : profile(profile), facts(facts), options(options), all(profile.root.total) {}

  std::string run() {
    text = "\nprofile of " + shownName(facts.title) + "\n";
    explain();
    header();
    operators();
    aggregated();
    if (options.isDetailed) {
      text += "\neach module: parameters, multiply-adds, time, operations per second; with their shares of the model, "
              "of the step and of the measured peak\n";
      module(profile.root, 0);
    }
    return text + "end of the profile of " + shownName(facts.title) + "\n";
  }

private:
  void line(const std::string &name, const std::string &value) {
    constexpr size_t width = 38;
    text += name + ":" + std::string(name.size() < width ? width - name.size() : 1, ' ') + value + "\n";
  }

  void explain() {
    text += "MACs are multiply-adds of products, convolutions and attention in the program that ran, on the way back, "
            "too; flops are all operations, two for each multiply-add.\n"
            "FLOPS are operations per second. A kernel's time is shared among the nodes that it computes: each gets "
            "what its operations take at the measured peak, and of the rest a part in proportion to its roofline.\n";
    text += profile.areNodesNamed ? "Modules are what the names of ONNX nodes have before their last slash or dot.\n"
                                  : "The names of ONNX nodes have no modules: they are those of the parameters' names, "
                                    "and operators.\n";
    text += "\n";
  }

  void header() {
    if (facts.trains) {
      line("world size", std::to_string(facts.dataParallel * facts.modelParallel));
      line("data-parallel size", std::to_string(facts.dataParallel));
      line("model-parallel size", std::to_string(facts.modelParallel));
      line("batch size per rank",
           concat(facts.batch, ", ", facts.microBatches, " micro-batches, ", facts.samples, " samples in the step"));
    }
    line("threads", std::to_string(facts.threads));
    line("parameters per rank", countText(all.parameters));
    line("parameters of the model", countText(all.parameters * static_cast<double>(facts.modelParallel)));
    role("forward", WorkRole::Forward);
    if (facts.trains || all.flopsOf(WorkRole::Backward) > 0) {
      role("backward", WorkRole::Backward);
      role("recomputed", WorkRole::Recompute);
      line("forward and backward FLOPS", rates({WorkRole::Forward, WorkRole::Backward, WorkRole::Recompute}));
    }
    if (facts.trains)
      role("update", WorkRole::Update);
    line("between launches", timeText(facts.betweenMs));
    line(facts.trains ? "step latency" : "latency", timeText(facts.wallMs));
    if (facts.unwatchedMs)
      line("without being watched, the median", timeText(*facts.unwatchedMs));
    double peakMs = all.peakMs;
    line("FLOPS per rank over all of it", rateText(facts.wallMs > 0 ? all.rated / facts.wallMs * 1e3 : 0) + ", " +
                                              percent(peakMs, facts.wallMs) + " of the measured peak");
    if (facts.trains)
      line("samples/second",
           number(facts.wallMs > 0 ? static_cast<double>(facts.samples * facts.dataParallel) / facts.wallMs * 1e3 : 0));
    for (const auto &[arithmetic, peak] : profile.peaks)
      line("measured peak in " + arithmetic, rateText(peak));
  }

  std::string rates(std::initializer_list<WorkRole> roles) const {
    double flops = 0, ms = 0;
    for (WorkRole role : roles) {
      flops += all.flopsOf(role);
      ms += all.msOf(role);
    }
    return rateText(ms > 0 ? flops / ms * 1e3 : 0);
  }

  void role(const std::string &name, WorkRole which) {
    line(name + " MACs", countText(all.macsOf(which)));
    line(name + " flops", countText(all.flopsOf(which)));
    if (which == WorkRole::Forward)
      line(name + " flops of the model", countText(all.flopsOf(which) * static_cast<double>(facts.modelParallel)));
    line(name + " latency", timeText(all.msOf(which)));
    line(name + " FLOPS", rates({which}));
  }

  void operators() {
    text += "\noperators: nodes, multiply-adds, time, operations per second\n";
    for (const OperatorFigures &row : profile.operators)
      text += "  " + row.op + ": " + std::to_string(row.nodes) + ", " + countText(row.figures.allMacs()) + " MACs, " +
              timeText(row.figures.allMs()) + " (" + percent(row.figures.allMs(), all.allMs()) + "), " +
              rateText(row.figures.rate()) + " (" + percent(row.figures.ofPeak(), 1) + " of peak)\n";
  }

  void aggregated() {
    size_t last = lastDepth(profile, options);
    text += "\nlargest kinds of modules of each depth\n";
    for (size_t depth = 0; depth <= last; ++depth) {
      text += "  depth " + std::to_string(depth) + ":\n";
      top(depth, "parameters", &ModuleClass::parameters, countText);
      top(depth, "MACs", &ModuleClass::macs, countText);
      top(depth, "time", &ModuleClass::ms, timeText);
    }
  }

  void top(size_t depth, const char *what, double ModuleClass::*value, std::string (*shown)(double)) {
    std::vector<ModuleClass> classes = largestOf(classesAt(profile.root, depth), value, options.top);
    text += concat("    ", what, ":");
    for (size_t i = 0; i < classes.size(); ++i)
      text += (i ? ", " : " ") + shownName(classes[i].name) + " " + shown(classes[i].*value);
    text += "\n";
  }

  std::string byRole(const std::array<double, workRoles> &values, std::string (*shown)(double)) const {
    static const char *const names[] = {"forward", "backward", "recomputed", "update"};
    std::string list;
    size_t used = 0;
    for (size_t role = 0; role < workRoles; ++role)
      if (values[role] > 0) {
        list += (used++ ? ", " : "") + concat(names[role], " ", shown(values[role]));
      }
    return used > 1 ? " [" + list + "]" : "";
  }

  void figures(const std::string &name, const Figures &own, size_t depth) {
    text += std::string(2 * (depth + 1), ' ') + shownName(name) + ": " + countText(own.parameters) + " parameters (" +
            percent(own.parameters, all.parameters) + "), " + countText(own.allMacs()) + " MACs (" +
            percent(own.allMacs(), all.allMacs()) + ")" + byRole(own.macs, countText) + ", " + timeText(own.allMs()) +
            " (" + percent(own.allMs(), all.allMs()) + ")" + byRole(own.ms, timeText) + ", " + rateText(own.rate()) +
            " (" + percent(own.ofPeak(), 1) + " of peak)\n";
  }

  void module(const Module &which, size_t depth) {
    figures(which.name, which.total, depth);
    // What a module does by itself is a line of its own, so that the lines below one add up to it.
    if (!which.children.empty() && (which.self.allMs() > 0 || which.self.parameters > 0))
      figures("(itself)", which.self, depth + 1);
    for (const Module &child : which.children)
      module(child, depth + 1);
  }

  const ModuleProfile &profile;
  const StepFacts &facts;
  const ModuleReportOptions &options;
  const Figures &all;
  std::string text;
};

} // namespace

std::string moduleReportText(const ModuleProfile &profile, const StepFacts &facts, const ModuleReportOptions &options) {
  return TextReport(profile, facts, options).run();
}

} // namespace ds
