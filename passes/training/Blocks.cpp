// Exporters give weights of products names without a path; nodes keep it.
#include "passes/training/Blocks.h"

#include "llvm/ADT/StringExtras.h"

#include <set>

using namespace mlir;

namespace deepstride {

/// ".a.b.3.c." of "/a/b.3/c", so that parts can be looked for with their ends.
static std::string dotted(StringRef name) {
  std::string text = "." + name.str() + ".";
  std::replace(text.begin(), text.end(), '/', '.');
  return text;
}

/// The number behind the path in a name, if it is one of a layer; modules may be called as the path is, without one.
static std::optional<int64_t> layerIn(StringRef name, StringRef path, int64_t layers) {
  std::string text = dotted(name);
  for (size_t at = text.find(path); at != std::string::npos; at = text.find(path, at + 1)) {
    int64_t number = 0;
    StringRef digits = StringRef(text).drop_front(at + path.size()).take_until([](char c) { return c == '.'; });
    if (!digits.getAsInteger(10, number) && number >= 0 && number < layers)
      return number;
  }
  return std::nullopt;
}

FailureOr<Blocks> findBlocks(func::FuncOp model, const BlockSettings &settings) {
  if (settings.layers < 0)
    return model.emitError() << "layers: expected 0 or more, found " << settings.layers;
  Blocks blocks;
  blocks.layers = settings.layers;
  std::string path = dotted(settings.layerName);
  std::set<int64_t> found;
  SmallVector<StringRef> names;
  for (const WholeParameter &parameter : wholeParametersOf(model)) {
    if (!blocks.of.contains(parameter.name))
      names.push_back(parameter.name.getValue());
    std::optional<int64_t> layer = layerIn(parameter.name.getValue(), path, settings.layers);
    for (Operation *user : parameter.value.getUsers())
      if (auto named = user->getLoc()->findInstanceOf<NameLoc>(); named && !layer)
        layer = layerIn(named.getName().getValue(), path, settings.layers);
    auto known = blocks.of.try_emplace(parameter.name, settings.layers).first;
    if (layer) {
      known->second = *layer;
      found.insert(*layer);
    }
  }
  for (int64_t layer = 0; layer < settings.layers; ++layer)
    if (found.count(layer) == 0)
      return model.emitError() << "eigenvalue.layer_name: no parameter, and no node that reads one, has '"
                               << settings.layerName << "." << layer << "' in its name, expected layers 0 to "
                               << settings.layers - 1 << "; parameters are " << listed(names);
  return blocks;
}

} // namespace deepstride
