// Any manifest.json and any SHA256SUMS load or give an Error, and what loads can be planned for any sizes. Checksums
// would stop every change at the door: manifests are loaded without them, and SHA256SUMS gets its own digest anew.
// The code is never opened: it runs as part of the process, so that its checksum is all that stands before it.
#include "runtime/core/Binding.h"
#include "runtime/core/Checksums.h"
#include "runtime/core/Error.h"
#include "runtime/core/Package.h"
#include "runtime/core/Plan.h"
#include "test/fuzz/JsonMutator.h"
#include "test/fuzz/TemporaryFile.h"

#include <filesystem>
#include <fstream>

using namespace deepstride::fuzz;

namespace {

/// What an input is, by its first byte: a manifest begins with a brace, and so does nothing that SHA256SUMS may hold.
bool isManifest(const std::string &text) { return !text.empty() && text[0] == '{'; }

void tryTo(void (*action)(const ds::EntryInfo &, const std::vector<ds::ConstantInfo> &, const ds::Pins &),
           const ds::EntryInfo &entry, const std::vector<ds::ConstantInfo> &constants, const ds::Pins &pins) {
  try {
    action(entry, constants, pins);
  } catch (const ds::Error &) {
  }
}

/// As for a call with inputs of these sizes, where constraints hold or not.
void plan(const ds::EntryInfo &entry, const std::vector<ds::ConstantInfo> &constants, const ds::Pins &pins) {
  std::vector<bool> known;
  std::vector<int64_t> symbols = ds::bindPins(entry, pins, known);
  tryTo([](const ds::EntryInfo &entry, const std::vector<ds::ConstantInfo> &,
           const ds::Pins &) { ds::checkConstraints(entry, std::vector<int64_t>(entry.symbols.size(), 1)); },
        entry, constants, pins);
  ds::Plan made = ds::makePlan(entry, constants, ds::ComputedParts(entry), symbols);
  for (size_t i = 0; i < entry.buffers.size(); ++i)
    if (entry.buffers[i].role == ds::BufferRole::Workspace &&
        (made.offsets[i] > made.workspaceBytes || made.bufferBytes[i] > made.workspaceBytes - made.offsets[i]))
      finding("a buffer lies outside of the workspace");
  for (const ds::LaunchInfo &launch : entry.launches) {
    launch.flops.evaluate(symbols);
    for (const std::optional<ds::SizeExpr> &bytes : launch.reads)
      if (bytes)
        bytes->evaluate(symbols);
    for (const ds::LaunchResult &result : launch.results)
      if (result.writes)
        result.writes->evaluate(symbols);
    for (const ds::NodeWork &work : launch.work)
      for (const ds::SizeExpr *size : {&work.macs, &work.flops, &work.bytes})
        size->evaluate(symbols);
  }
}

/// A folder with weights and a file whose content is the input; utils/fuzz makes a SHA256SUMS that fits these weights.
struct Folder {
  static std::string made(const std::string &path, const std::string &name) {
    std::filesystem::create_directory(path);
    return name + "/";
  }

  Folder(const char *name, const char *file) : path(temporaryFolder() + "/" + name), input(made(path, name) + file) {
    std::ofstream(path + "/weights.bin") << std::string(4096, 'w');
  }

  std::string path;
  TemporaryFile input;
};

void loadManifest(const std::string &text) {
  static Folder folder("manifest", "manifest.json");
  folder.input.write(text.data(), text.size());
  ds::LoadOptions options;
  options.verify = false;
  options.openCode = false;
  auto package = ds::Package::load(folder.path, options);
  for (const ds::VariantInfo &variant : package->manifest().variants)
    for (const ds::EntryInfo &entry : variant.entries)
      for (int64_t size : {int64_t(0), int64_t(1), int64_t(7), int64_t(1) << 31, INT64_MAX}) {
        ds::Pins pins;
        for (const ds::SymbolInfo &symbol : entry.symbols)
          if (symbol.kind == ds::SymbolKind::Dim)
            pins[symbol.name] = size;
        tryTo(plan, entry, variant.constants, pins);
      }
}

void verify(std::string text) {
  static Folder folder("sums", "SHA256SUMS");
  // The last line is the digest of all before it.
  size_t end = text.empty() ? std::string::npos : text.find_last_of('\n', text.size() - 2);
  if (end != std::string::npos && text.size() - end > 65)
    text.replace(end + 1, 64, ds::sha256Hex(text.data(), end + 1));
  folder.input.write(text.data(), text.size());
  ds::Checksums(ds::PackageFiles(folder.path)).verify(1, [](const ds::ChecksumLine &) { return true; });
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string text(reinterpret_cast<const char *>(data), size);
  try {
    isManifest(text) ? loadManifest(text) : verify(text);
  } catch (const ds::Error &) {
  }
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t maxSize, unsigned seed) {
  Random random(seed);
  std::string text(reinterpret_cast<char *>(data), size);
  isManifest(text) ? mutateJson(text, random) : random.mutate(text);
  return store(text, data, size, maxSize);
}
