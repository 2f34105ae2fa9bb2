// .npz: a zip of .npy files, one per tensor.
#ifndef DEEPSTRIDE_RUNTIME_IO_NPZ_H
#define DEEPSTRIDE_RUNTIME_IO_NPZ_H

#include "runtime/core/StateStore.h"
#include "runtime/io/Npy.h"
#include "runtime/io/Zip.h"

#include <string>
#include <vector>

namespace ds {

// Tensors in the order of the file, named without ".npy". Opening reads the headers only; Errors name file and member.
class NpzReader : public TensorSource {
public:
  explicit NpzReader(const std::string &path);

  const std::vector<Item> &items() const override { return list; }
  void check(size_t item, ElementType as) const override { transfer(item, as, nullptr); }
  void read(size_t item, ElementType as, void *data) const override {
    transfer(item, as, static_cast<uint8_t *>(data));
  }

private:
  void transfer(size_t item, ElementType as, uint8_t *data) const;

  std::string path;
  ZipReader zip;
  std::vector<Item> list;
};

std::vector<NamedTensor> readNpz(const std::string &path);

// Complete under its name or not there at all; written straight from the tensors' memory. Types that NumPy lacks are
// widened (npyType) as they are written.
void writeNpz(const std::string &path, const std::vector<NamedView> &tensors);
void writeNpz(const std::string &path, const std::vector<NamedTensor> &tensors);

} // namespace ds
#endif
