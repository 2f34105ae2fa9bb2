#include "tools/ds-run/profile/ModuleNames.h"

#include <algorithm>
#include <cctype>

namespace ds {

static bool isNumber(const std::string &text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c); });
}

static ModulePath partsOf(const std::string &name, char separator) {
  ModulePath parts;
  for (size_t at = 0; at <= name.size();) {
    size_t end = std::min(name.find(separator, at), name.size());
    std::string part = name.substr(at, end - at);
    if (isNumber(part) && !parts.empty())
      parts.back() += "." + part;
    else if (!part.empty())
      parts.push_back(std::move(part));
    at = end + 1;
  }
  return parts;
}

ModulePath scopeOf(const std::string &name) {
  ModulePath parts = partsOf(name, name.find('/') != std::string::npos ? '/' : '.');
  if (!parts.empty())
    parts.pop_back();
  constexpr size_t deepest = 32; // names are anybody's
  parts.resize(std::min(parts.size(), deepest));
  return parts;
}

std::string classOf(const std::string &module) {
  size_t end = module.size();
  while (end > 0 && std::isdigit(static_cast<unsigned char>(module[end - 1])))
    --end;
  bool isIndexed = end < module.size() && end > 1 && (module[end - 1] == '.' || module[end - 1] == '_');
  return isIndexed ? module.substr(0, end - 1) : module;
}

// Of "layer.0.query.weight" layer.0 and query; a name without dots is a module by itself, as tables are.
static ModulePath moduleOfParameter(const std::string &name) {
  ModulePath scope = scopeOf(name);
  return scope.empty() ? ModulePath{name} : scope;
}

// What exporters call weights that have lost their names says nothing: "onnx::MatMul_123".
static bool isMadeUp(const std::string &parameter) { return parameter.find("::") != std::string::npos; }

static ModulePath commonOf(const ModulePath &a, const ModulePath &b) {
  ModulePath common;
  for (size_t i = 0; i < std::min(a.size(), b.size()) && a[i] == b[i]; ++i)
    common.push_back(a[i]);
  return common;
}

ModuleNames::ModuleNames(const Manifest &manifest, const EntryInfo &entry) {
  std::map<std::string, ModulePath> ofParameters; // by the node that reads them
  for (const ParameterInfo &parameter : manifest.parameters) {
    parameters[parameter.name] = &parameter;
    if (!isMadeUp(parameter.name) && scopeOf(parameter.node).empty())
      ofParameters.emplace(parameter.node, moduleOfParameter(parameter.name));
  }
  std::vector<const NodeWork *> flat; // in order
  for (const LaunchInfo &launch : entry.launches)
    for (const NodeWork &work : launch.work)
      if (work.role == WorkRole::Forward && !work.node.empty()) {
        bool isScoped = !scopeOf(work.node).empty();
        hasScopes |= isScoped;
        flat.push_back(&work);
        if (auto own = ofParameters.find(work.node); !isScoped && own != ofParameters.end())
          nodes[work.node] = own->second;
      }
  std::vector<ModulePath> known;
  for (const NodeWork *work : flat) {
    auto own = nodes.find(work->node);
    known.push_back(own != nodes.end() ? own->second : scopeOf(work->node));
  }
  std::vector<const ModulePath *> after(flat.size()); // the next one that is known
  const ModulePath none, *next = &none;
  for (size_t i = flat.size(); i-- > 0;) {
    after[i] = next;
    next = known[i].empty() ? next : &known[i];
  }
  const ModulePath *before = &none;
  for (size_t i = 0; i < flat.size(); ++i)
    if (known[i].empty())
      nodes.emplace(flat[i]->node, commonOf(*before, *after[i]));
    else
      before = &known[i];
}

ModulePath ModuleNames::pathOf(const NodeWork &work) const {
  if (!work.part.empty())
    return {"(" + work.part + ")"};
  if (!work.parameter.empty()) {
    auto found = parameters.find(work.parameter);
    return found == parameters.end() ? moduleOfParameter(work.parameter) : pathOf(*found->second);
  }
  ModulePath path = scopeOf(work.node);
  if (auto own = nodes.find(work.node); path.empty() && own != nodes.end())
    path = own->second;
  return path.empty() ? ModulePath{work.op} : path;
}

ModulePath ModuleNames::pathOf(const ParameterInfo &parameter) const {
  ModulePath path = scopeOf(parameter.node);
  return path.empty() ? moduleOfParameter(parameter.name) : path;
}

} // namespace ds
