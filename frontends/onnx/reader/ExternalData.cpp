// Tensors whose elements are in a file of their own, placed by the entries of `external_data`.

#include "frontends/onnx/reader/ModelFile.h"

#include "frontends/onnx/reader/TypedFields.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Path.h"

using namespace llvm;
using ::onnx::TensorProto;

namespace deepstride::onnx {

namespace {
/// The entries of `external_data` that place a tensor.
struct Placement {
  std::string location;
  uint64_t offset = 0;
  uint64_t length = 0;
};
} // namespace

static Expected<Placement> readPlacement(const TensorProto &tensor, uint64_t size) {
  Placement place;
  place.length = size;
  StringMap<bool> seen;
  for (const ::onnx::StringStringEntryProto &entry : tensor.external_data()) {
    StringRef value = entry.value();
    if (!seen.try_emplace(entry.key(), true).second)
      return refuse("external data: expected each key once, found " + quoted(entry.key()) + " again");
    if (entry.key() == "location")
      place.location = value.str();
    if (entry.key() == "offset" && value.getAsInteger(10, place.offset))
      return refuse("external data: expected an offset of at least 0, found " + quoted(value));
    if (entry.key() == "length" && value.getAsInteger(10, place.length))
      return refuse("external data: expected a length of at least 0, found " + quoted(value));
  }
  if (!seen.count("location"))
    return refuse("external data: expected a location, found none");
  return place;
}

Error ModelFile::openExternal(StringRef location) {
  if (external.get() >= 0 && externalLocation == location)
    return Error::success();
  Expected<OpenFile> opened = openBelow(folderOf(path), location);
  if (!opened)
    return opened.takeError();
  Expected<uint64_t> size = opened->size();
  if (!size)
    return size.takeError();
  external = std::move(*opened);
  externalLocation = location.str();
  openedLocations.insert(externalLocation);
  externalSize = *size;
  return Error::success();
}

Error ModelFile::locateExternal(const TensorProto &tensor, uint64_t size, TensorData &data) {
  if (tensor.has_raw_data() || hasTypedFields(tensor))
    return refuse("expected external data only, found data in the model as well");
  Expected<Placement> place = readPlacement(tensor, size);
  if (!place)
    return place.takeError();
  if (Error error = openExternal(place->location))
    return refuse("external data: " + toString(std::move(error)));
  if (place->offset > externalSize || place->length > externalSize - place->offset)
    return refuse("external data: expected offset + length within the " + Twine(externalSize) + " bytes of " +
                  quoted(place->location) + ", found " + Twine(place->offset) + " + " + Twine(place->length));
  if (Error error = expectSize(size, place->length))
    return error;
  if (size <= limits.elementBytes) {
    Expected<std::string> bytes = external.read(place->offset, size);
    if (!bytes)
      return refuse("external data: " + toString(bytes.takeError()));
    data.bytes = std::move(*bytes);
    return Error::success();
  }
  SmallString<128> file(sys::path::parent_path(path));
  sys::path::append(file, place->location);
  data.inFile = true;
  data.file = file.str().str();
  data.range = {place->offset, size};
  return Error::success();
}

} // namespace deepstride::onnx
