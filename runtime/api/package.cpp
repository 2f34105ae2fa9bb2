// Packages in the C API: what is loaded, and what it says about its entries.
#include "runtime/api/Internal.h"

#include <set>

using namespace ds::api;

namespace {

// A guarded entry's output: each size is that of the entry which a call runs.
void mergeOutput(InfoStorage &storage, const ds::EntryInfo &entry, const ds::SymbolicShape &shape) {
  if (storage.info.rank != shape.size()) { // DS_RANK_VARIES stays what it is
    storage.info.rank = DS_RANK_VARIES;
    storage.info.shape = nullptr;
    return;
  }
  std::string holds;
  for (const ds::GuardInfo &guard : entry.guards)
    holds += (holds.empty() ? "" : "*") +
             (guard.holds ? "(" + guard.condition.text() + ")" : "eq(" + guard.condition.text() + ", 0)");
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    std::string &dim = storage.dims[axis];
    if (dim != shape[axis].text())
      dim = "select(" + holds + ", " + shape[axis].text() + ", " + dim + ")";
    storage.texts[axis] = dim.c_str();
  }
}

InfoList outputsOf(const ds::VariantInfo &variant, const ds::EntryGroup &group) {
  InfoList outputs;
  for (auto at = group.entries.rbegin(); at != group.entries.rend(); ++at) {
    const ds::EntryInfo &entry = variant.entries[*at];
    for (size_t i = 0; i < entry.outputs.size(); ++i)
      if (at == group.entries.rbegin())
        outputs.push_back(makeInfo(entry.outputs[i].name, entry.outputs[i].type, entry.outputs[i].shape, 0));
      else
        mergeOutput(*outputs[i], entry, entry.outputs[i].shape);
  }
  return outputs;
}

// What the C API tells of a package.
std::unique_ptr<ds_package> describe(std::shared_ptr<const ds::Package> loaded) {
  auto result = std::make_unique<ds_package>();
  result->package = std::move(loaded);
  const ds::VariantInfo &variant = result->package->variant();
  for (const ds::EntryGroup &group : variant.groups) {
    InfoList inputs, states;
    for (const ds::TensorInfo &info : variant.entries[group.entries[0]].inputs)
      inputs.push_back(makeInfo(info.name, info.type, info.shape, info.bound.value_or(0)));
    std::set<std::string> known;
    for (size_t entry : group.entries)
      for (const ds::StateInfo &info : variant.entries[entry].states)
        if (known.insert(info.name).second)
          states.push_back(makeInfo(info.name, info.type, info.shape, 0));
    result->lists[DS_INPUTS].push_back(std::move(inputs));
    result->lists[DS_OUTPUTS].push_back(outputsOf(variant, group));
    result->lists[DS_STATES].push_back(std::move(states));
  }
  return result;
}

ds::LoadOptions readLoadOptions(const ds_load_options *given) {
  ds_load_options options = readOptions(given, "ds_load_options");
  ds::LoadOptions load;
  load.verify = !options.skip_verification;
  load.mcpu = options.variant ? options.variant : "";
  load.copyWeights = !options.map_weights;
  return load;
}

ds::PackageFiles readFiles(const ds_file *files, size_t count) {
  std::vector<ds::MemoryFile> found;
  for (size_t i = 0; i < count; ++i) {
    auto refuse = [&](const char *what) { ds::fail(ds::ErrorCode::InvalidArgument, "file ", i, ": ", what); };
    if (files[i].struct_size < sizeof(ds_file))
      refuse("struct_size is too small, expected sizeof(ds_file)");
    if (!files[i].name)
      refuse("name is null");
    if (!files[i].data && files[i].size != 0)
      refuse("data is null");
    found.push_back({files[i].name, files[i].data, files[i].size});
  }
  return ds::PackageFiles(std::move(found));
}

} // namespace

extern "C" {

ds_status *ds_package_load(const char *path, const ds_load_options *options, ds_package **package) {
  return guarded([&] {
    require(path && package, "path or package");
    *package = describe(ds::Package::load(path, readLoadOptions(options))).release();
  });
}

ds_status *ds_package_load_memory(const ds_file *files, size_t count, const ds_load_options *options,
                                  ds_package **package) {
  return guarded([&] {
    require(package && (files || count == 0), "files or package");
    *package = describe(ds::Package::load(readFiles(files, count), readLoadOptions(options))).release();
  });
}

void ds_package_free(ds_package *package) { delete package; }

size_t ds_package_variant_count(const ds_package *package) {
  return package ? package->package->manifest().variants.size() : 0;
}

const char *ds_package_variant_name(const ds_package *package, size_t index) {
  return index < ds_package_variant_count(package) ? package->package->manifest().variants[index].mcpu.c_str()
                                                   : nullptr;
}

const char *ds_package_chosen_variant(const ds_package *package) {
  return package ? package->package->variant().mcpu.c_str() : nullptr;
}

size_t ds_package_entry_count(const ds_package *package) {
  return package ? package->package->variant().groups.size() : 0;
}

const char *ds_package_entry_name(const ds_package *package, size_t entry) {
  return entry < ds_package_entry_count(package) ? package->package->variant().groups[entry].name.c_str() : nullptr;
}

size_t ds_package_tensor_count(const ds_package *package, size_t entry, ds_tensor_list list) {
  if (!package || static_cast<unsigned>(list) > DS_STATES || entry >= package->lists[list].size())
    return 0;
  return package->lists[list][entry].size();
}

const ds_tensor_info *ds_package_tensor(const ds_package *package, size_t entry, ds_tensor_list list, size_t index) {
  return index < ds_package_tensor_count(package, entry, list) ? &package->lists[list][entry][index]->info : nullptr;
}

} // extern "C"
