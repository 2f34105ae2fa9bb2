// A loaded package: verified, mapped or where it lies in memory, with the one code variant that fits this processor
// opened. Immutable, shared by any number of sessions and threads.
#ifndef DEEPSTRIDE_RUNTIME_CORE_PACKAGE_H
#define DEEPSTRIDE_RUNTIME_CORE_PACKAGE_H

#include "runtime/abi/ds_abi.h"
#include "runtime/core/Checksums.h"
#include "runtime/core/Manifest.h"
#include "runtime/core/MappedFile.h"
#include "runtime/core/NeededWeights.h"
#include "runtime/core/PackageFiles.h"
#include "runtime/core/ResidentWeights.h"
#include "runtime/device/cpu/CpuFeatures.h"

#include <memory>
#include <optional>

namespace ds {

struct LoadOptions {
  bool verify = true;
  unsigned threads = 2;                  // for verification
  std::string mcpu;                      // a variant by name; empty: the best that fits
  const CpuFeatures *features = nullptr; // null: those of the host
  int64_t rank = 0, ranks = 1;           // that load it: each verifies what it reads of weights.bin, none skips a byte
  bool openCode = true;                  // false: manifest and checksums only, on any processor
  bool copyWeights = false;              // for many calls, where there is memory (ResidentWeights.h)
};

class Package {
public:
  static std::shared_ptr<const Package> load(const std::string &directory, const LoadOptions &options = {});
  // Files in memory must live as long as the package.
  static std::shared_ptr<const Package> load(PackageFiles files, const LoadOptions &options = {});

  explicit Package(PackageFiles files) : files(std::move(files)) {}

  const std::string &path() const { return files.path(); }
  const Manifest &manifest() const { return contents; }
  // The text of SHA256SUMS: alike where packages are.
  std::string checksums() const { return files.text("SHA256SUMS", size_t(1) << 30); }
  const VariantInfo &variant() const { return contents.variants[chosen]; }
  const uint8_t *constant(size_t index) const {
    const uint8_t *copied = resident.constant(index);
    return copied ? copied : weights.data() + variant().constants[index].offset;
  }
  // Of constants that were copied from the file; 0: all are read from there.
  size_t copiedBytes() const { return resident.bytes(); }

  // Says that a constant will not be read soon: its pages need not stay in memory. They come back when they are read.
  void releaseConstant(size_t index) const;

  // Throws Error(Internal) where bytes of a constant are to be read that this rank has left to others to verify.
  void requireVerified(size_t index, uint64_t begin, uint64_t end) const;

  // The entry's number; an empty name is the first. The name of a group gives the group's first entry, which stands for
  // all of them. Throws Error(InvalidArgument) with the legal names.
  size_t entryIndex(const std::string &name) const;
  ds_entry entryFunction(size_t index) const { return functions[index]; }

private:
  void open(const LoadOptions &options);
  Checksums openSums() const;
  void verifyShare(const Checksums &sums, const LoadOptions &options);
  void require(const std::vector<ChecksumFault> &faults) const; // that there are none
  void checkConstants() const;
  Manifest readContents() const;
  void openCode();

  PackageFiles files;
  Manifest contents;
  size_t chosen = 0;
  MappedFile weights;
  ResidentWeights resident;
  std::optional<ByteRanges> verified; // none: all that is
  LoadedCode code;
  std::vector<ds_entry> functions; // one per entry of the variant
};

// The variant to run: among those that the features allow, the one with the widest vectors, then most features, then
// the first. Throws Error(UnsupportedCpu) naming what is missing.
size_t chooseVariant(const Manifest &manifest, const CpuFeatures &features, const std::string &mcpu);

} // namespace ds
#endif
