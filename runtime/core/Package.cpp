#include "runtime/core/Package.h"

#include "runtime/core/Error.h"
#include "runtime/core/OfFile.h"

#include <algorithm>
#include <cstring>
#include <dlfcn.h>
#include <elf.h>
#include <tuple>

namespace ds {
namespace {

constexpr size_t maxManifestBytes = size_t(1) << 30;

std::string join(const std::vector<std::string> &names) {
  std::string text;
  for (const std::string &name : names)
    text += (text.empty() ? "" : ", ") + name;
  return text;
}

// The dynamic loader trusts program headers: a truncated file would kill the process instead of being refused.
void checkSharedObject(const std::string &name, const MappedFile &file) {
  Elf64_Ehdr header;
  if (file.size() < sizeof(header))
    fail(ErrorCode::BadPackage, name, ": not a shared object, found ", file.size(), " bytes");
  std::memcpy(&header, file.data(), sizeof(header));
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_type != ET_DYN)
    fail(ErrorCode::BadPackage, name, ": not a 64-bit shared object");
  uint64_t tableBytes = uint64_t(header.e_phnum) * sizeof(Elf64_Phdr);
  if (header.e_phentsize != sizeof(Elf64_Phdr) || header.e_phoff > file.size() ||
      tableBytes > file.size() - header.e_phoff)
    fail(ErrorCode::BadPackage, name, ": program headers lie outside the file (truncated?)");
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    std::memcpy(&segment, file.data() + header.e_phoff + i * sizeof(segment), sizeof(segment));
    if (segment.p_type != PT_LOAD && segment.p_type != PT_DYNAMIC)
      continue;
    if (segment.p_offset > file.size() || segment.p_filesz > file.size() - segment.p_offset)
      fail(ErrorCode::BadPackage, name, ": segment ", i, " lies outside the file (truncated?)");
  }
}

// Names the constants that a damaged chunk of weights.bin touches.
std::string constantsIn(const Manifest &manifest, uint64_t offset, uint64_t length) {
  std::vector<std::string> names;
  for (const VariantInfo &variant : manifest.variants)
    for (const ConstantInfo &constant : variant.constants)
      if (constant.offset < offset + length && constant.offset + constant.bytes > offset &&
          std::find(names.begin(), names.end(), constant.name) == names.end())
        names.push_back(constant.name);
  if (names.empty())
    return " (padding)";
  size_t total = names.size();
  if (total > 3)
    names.resize(3);
  return " (holds " + join(names) + (total > 3 ? concat(" and ", total - 3, " more") : "") + ")";
}

} // namespace

size_t chooseVariant(const Manifest &manifest, const CpuFeatures &features, const std::string &mcpu) {
  auto rank = [&](size_t i) {
    const VariantInfo &variant = manifest.variants[i];
    return std::make_tuple(variant.vectorBits, variant.features.size());
  };
  size_t best = manifest.variants.size();
  std::vector<std::string> refusals, names;
  for (size_t i = 0; i < manifest.variants.size(); ++i) {
    const VariantInfo &variant = manifest.variants[i];
    names.push_back(variant.mcpu);
    if (!mcpu.empty() && variant.mcpu != mcpu)
      continue;
    std::vector<std::string> missing = features.missing(variant.features);
    if (!missing.empty())
      refusals.push_back(variant.mcpu + " needs " + join(missing));
    else if (best == manifest.variants.size() || rank(i) > rank(best))
      best = i;
  }
  if (best != manifest.variants.size())
    return best;
  if (refusals.empty())
    fail(ErrorCode::InvalidArgument, "no variant '", mcpu, "', expected one of ", join(names));
  bool isAmx = std::any_of(manifest.variants.begin(), manifest.variants.end(), [](const VariantInfo &variant) {
    return std::count(variant.features.begin(), variant.features.end(), "amx_tile") != 0;
  });
  fail(ErrorCode::UnsupportedCpu, "this processor lacks features of every variant: ", join(refusals),
       isAmx && features.areTilesRefused() ? " (it has AMX, which the system does not let this process use)" : "");
}

// Who gives a model where a package is expected wants to know how the one becomes the other.
static void refuseNoFolder(const std::string &path) {
  for (const std::string ending : {".onnx", ".mlir"})
    if (path.size() > ending.size() && path.compare(path.size() - ending.size(), ending.size(), ending) == 0)
      fail(ErrorCode::BadPackage, "not a package directory but a model, compile it first: ds-opt ", path, " -o ",
           path.substr(0, path.size() - ending.size()), ".dsp");
  fail(ErrorCode::BadPackage, "not a package directory", isThere(path) ? "" : ", nothing is there");
}

std::shared_ptr<const Package> Package::load(const std::string &directory, const LoadOptions &options) {
  PackageFiles files = ofFile(directory, [&] {
    if (!isFolder(directory))
      refuseNoFolder(directory);
    return PackageFiles(directory);
  });
  return load(std::move(files), options);
}

std::shared_ptr<const Package> Package::load(PackageFiles files, const LoadOptions &options) {
  auto package = std::make_shared<Package>(std::move(files));
  ofFile(package->path(), [&] { package->open(options); });
  return package;
}

void Package::open(const LoadOptions &options) {
  if (!files.has("manifest.json"))
    fail(ErrorCode::BadPackage, "manifest.json: missing, expected a package that ds-opt wrote");
  std::optional<Checksums> sums;
  if (options.verify)
    sums.emplace(openSums());
  bool isShared = options.ranks > 1 && options.openCode;
  if (sums)
    require(sums->verify(options.threads, [&](const ChecksumLine &line) { return !isShared || !line.isChunk; }));
  contents = readContents();
  if (files.has("weights.bin"))
    weights = files.open("weights.bin");
  if (reinterpret_cast<uintptr_t>(weights.data()) % 64 != 0)
    fail(ErrorCode::InvalidArgument, "weights.bin: expected memory that is 64-byte aligned");
  checkConstants();
  if (!options.openCode)
    return;
  chosen = chooseVariant(contents, options.features ? *options.features : CpuFeatures::host(), options.mcpu);
  if (sums && isShared)
    verifyShare(*sums, options);
  openCode();
  if (options.copyWeights && options.ranks == 1 && weights.isOfFile())
    resident = ResidentWeights(variant(), weights, options.threads);
}

Checksums Package::openSums() const {
  if (!files.has("SHA256SUMS"))
    fail(ErrorCode::BadPackage, "SHA256SUMS: missing");
  return Checksums(files);
}

Manifest Package::readContents() const { return readManifest(files.text("manifest.json", maxManifestBytes)); }

// Chunks that this rank reads, and of those that none reads every so many.
void Package::verifyShare(const Checksums &sums, const LoadOptions &options) {
  NeededWeights needed = neededWeights(variant(), options.rank, options.ranks);
  int64_t idle = 0;
  verified.emplace();
  require(sums.verify(options.threads, [&](const ChecksumLine &line) {
    if (!line.isChunk && line.file == "weights.bin")
      verified->add(0, weights.size()); // as a whole, before
    uint64_t end = line.offset + line.length;
    bool isIdle = line.isChunk && !needed.all.overlaps(line.offset, end);
    bool isMine =
        line.isChunk && (isIdle ? idle++ % options.ranks == options.rank : needed.own.overlaps(line.offset, end));
    if (isMine)
      verified->add(line.offset, end);
    return isMine;
  }));
}

void Package::requireVerified(size_t index, uint64_t begin, uint64_t end) const {
  const ConstantInfo &constant = variant().constants[index];
  if (verified && !verified->contains(constant.offset + begin, constant.offset + end))
    fail(ErrorCode::Internal, "bytes ", begin, " to ", end, " of constant '", constant.name, "' were not verified");
}

void Package::require(const std::vector<ChecksumFault> &faults) const {
  if (faults.empty())
    return;
  const ChecksumFault &fault = faults.front();
  std::string message = fault.message;
  if (fault.isChunk) // the manifest was not at fault, so it can tell what lies there
    message += constantsIn(readContents(), fault.offset, fault.length);
  if (faults.size() > 1)
    message += concat(" (and ", faults.size() - 1, " more)");
  throw Error(ErrorCode::BadPackage, message);
}

void Package::checkConstants() const {
  for (const VariantInfo &variant : contents.variants)
    for (const ConstantInfo &constant : variant.constants)
      if (constant.offset > weights.size() || constant.bytes > weights.size() - constant.offset)
        fail(ErrorCode::BadPackage, "weights.bin: constant '", constant.name, "' lies outside the file, found ",
             weights.size(), " bytes, expected at least ", constant.offset, "+", constant.bytes);
}

void Package::openCode() {
  const std::string &name = variant().code;
  if (!files.has(name))
    fail(ErrorCode::BadPackage, name, ": missing");
  checkSharedObject(name, files.open(name));
  code = files.openCode(name);
  if (!code)
    fail(ErrorCode::BadPackage, name, ": cannot be opened: ", dlerror());
  auto query = reinterpret_cast<ds_package_query_function>(code.symbol("ds_package_query"));
  if (!query)
    fail(ErrorCode::BadPackage, name, ": does not export ds_package_query");
  const ds_package_code *table = query(DS_ABI_VERSION);
  if (!table)
    fail(ErrorCode::BadPackage, name, ": was built for another ABI version, expected ", DS_ABI_VERSION);
  if (table->struct_size < sizeof(ds_package_code) || table->abi_version != DS_ABI_VERSION)
    fail(ErrorCode::BadPackage, name, ": unsupported ABI version, found ", table->abi_version, ", expected ",
         DS_ABI_VERSION);
  for (const EntryInfo &entry : variant().entries) {
    ds_entry function = nullptr;
    for (uint32_t i = 0; i < table->entry_count; ++i)
      if (entry.name == table->entries[i].name)
        function = table->entries[i].function;
    if (!function)
      fail(ErrorCode::BadPackage, name, ": has no entry '", entry.name, "', which the manifest lists");
    functions.push_back(function);
  }
}

void Package::releaseConstant(size_t index) const {
  weights.release(variant().constants[index].offset, variant().constants[index].bytes);
}

size_t Package::entryIndex(const std::string &name) const {
  if (name.empty())
    return 0;
  std::vector<std::string> names;
  for (const EntryGroup &group : variant().groups) {
    if (group.name == name)
      return group.entries[0];
    names.push_back(group.name);
  }
  for (size_t i = 0; i < variant().entries.size(); ++i) {
    const std::string &own = variant().entries[i].name;
    if (own == name)
      return i;
    if (std::find(names.begin(), names.end(), own) == names.end())
      names.push_back(own);
  }
  fail(ErrorCode::InvalidArgument, "no entry '", name, "', expected one of ", join(names));
}

} // namespace ds
