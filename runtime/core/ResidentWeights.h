// Constants that calls read, copied from the file to memory of this process.
#ifndef DEEPSTRIDE_RUNTIME_CORE_RESIDENTWEIGHTS_H
#define DEEPSTRIDE_RUNTIME_CORE_RESIDENTWEIGHTS_H

#include "runtime/core/Manifest.h"
#include "runtime/core/MappedFile.h"

#include <memory>
#include <vector>

namespace ds {

// A mapped file has pages of 4 KiB, which products that stream weights spend a twentieth of their time on
// (docs/rationale/measuring.md); memory has huge ones (BufferMemory.h). What is mapped is shared by processes and comes
// when it is read; so this is for packages that are called again and again.
class ResidentWeights {
public:
  ResidentWeights() = default;

  // Copies what entries of the variant read, by so many threads, and gives back the pages of the file. Copies nothing
  // where that is too little for huge pages, or more than half of the memory that is available.
  ResidentWeights(const VariantInfo &variant, const MappedFile &weights, unsigned threads);

  // Null: not copied, read from the file.
  const uint8_t *constant(size_t index) const { return index < constants.size() ? constants[index] : nullptr; }
  size_t bytes() const { return size; }

private:
  std::shared_ptr<uint8_t> memory;
  std::vector<const uint8_t *> constants; // by index
  size_t size = 0;
};

// Bytes that this process can still take: of the machine, of its control group and of its own addresses, where these
// are limited.
size_t availableMemory();

} // namespace ds
#endif
