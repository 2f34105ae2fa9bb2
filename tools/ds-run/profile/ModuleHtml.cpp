#include "runtime/core/Error.h"
#include "tools/ds-run/Markup.h"
#include "tools/ds-run/profile/ModuleReport.h"

#include <cstdio>

namespace ds {

static std::string percent(double part, double whole) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.1f %%", whole > 0 ? 100 * part / whole : 0);
  return text;
}

static std::string valueCell(double value, const std::string &shown) {
  return concat("<td data-value=\"", Json(value).dump(), "\">", shown, "</td>");
}

static std::string figureCells(const Figures &own, const Figures &all) {
  return valueCell(own.parameters, countText(own.parameters)) + valueCell(own.allMacs(), countText(own.allMacs())) +
         valueCell(own.allMs(), timeText(own.allMs())) +
         valueCell(all.allMs() > 0 ? own.allMs() / all.allMs() : 0, percent(own.allMs(), all.allMs())) +
         valueCell(own.rate(), rateText(own.rate())) + valueCell(own.ofPeak(), percent(own.ofPeak(), 1));
}

static std::string summaryOf(const std::string &name, const Figures &own, const Figures &all) {
  return concat("<span class=\"module\" title=\"", escapeMarkup(name), "\">", escapeMarkup(shortenName(name)),
                "</span> ", countText(own.parameters), " parameters, ", countText(own.allMacs()), " MACs, ",
                timeText(own.allMs()), " (", percent(own.allMs(), all.allMs()), "), ", rateText(own.rate()), " (",
                percent(own.ofPeak(), 1), " of peak)");
}

static std::string treeOf(const Module &module, const Figures &all, size_t depth) {
  std::string line = summaryOf(module.name, module.total, all);
  std::string place = concat(" data-value=\"", Json(module.total.allMs()).dump(), "\"");
  if (module.children.empty())
    return concat("<div class=\"module\"", place, ">", line, "</div>\n");
  std::string below;
  if (module.self.allMs() > 0 || module.self.parameters > 0)
    below += concat("<div class=\"self\" data-value=\"", Json(module.self.allMs()).dump(), "\">",
                    summaryOf("(itself)", module.self, all), "</div>\n");
  for (const Module &child : module.children)
    below += treeOf(child, all, depth + 1);
  return concat("<details class=\"module\"", depth < 2 ? " open=\"open\"" : "", place, "><summary>", line,
                "</summary>\n", below, "</details>\n");
}

std::string moduleReportHtml(const ModuleProfile &profile, const StepFacts &facts, const ModuleReportOptions &options) {
  const Figures &all = profile.root.total;
  std::string rows;
  for (const OperatorFigures &row : profile.operators)
    rows += concat("<tr><td class=\"name\" title=\"", escapeMarkup(row.op), "\">", escapeMarkup(shortenName(row.op)),
                   "</td>", figureCells(row.figures, all), "</tr>\n");
  std::string page = concat("<h2>Modules</h2>\n<p>", escapeMarkup(facts.title), ": ", timeText(facts.wallMs),
                            ", of which ", timeText(facts.betweenMs), " between launches; ",
                            profile.areNodesNamed ? "modules are those of the names of nodes"
                                                  : "modules are those of the names of parameters, and operators",
                            ". The time of a kernel is shared among its nodes by their rooflines; parts add up to what "
                            "they are parts of.</p>\n");
  if (options.isDetailed)
    page += treeOf(profile.root, all, 0);
  return page +
         "<h2>Operators</h2>\n<table id=\"operators\"><thead><tr><th class=\"name\">operator</th>"
         "<th>parameters</th><th>MACs</th><th>time</th><th>share</th><th>FLOPS</th><th>of peak</th></tr></thead>"
         "<tbody>\n" +
         rows + "</tbody></table>\n";
}

} // namespace ds
