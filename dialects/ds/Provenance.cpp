#include "dialects/ds/Provenance.h"

#include "dialects/ds/DsDialect.h"

#include <optional>

using namespace mlir;

namespace deepstride {

StringRef toString(WorkRole role) {
  switch (role) {
  case WorkRole::Forward: return "forward";
  case WorkRole::Backward: return "backward";
  case WorkRole::Recompute: return "recompute";
  case WorkRole::Update: return "update";
  }
  llvm_unreachable("all roles are named");
}

static std::optional<WorkRole> roleNamed(StringRef name) {
  for (WorkRole role : {WorkRole::Forward, WorkRole::Backward, WorkRole::Recompute, WorkRole::Update})
    if (toString(role) == name)
      return role;
  return std::nullopt;
}

static Location marked(Location where, WorkRole role, StringRef key = "", StringRef value = "") {
  Builder b(where.getContext());
  NamedAttrList fields;
  fields.set("role", b.getStringAttr(toString(role)));
  if (!key.empty())
    fields.set(key, b.getStringAttr(value));
  return FusedLoc::get({where}, fields.getDictionary(where.getContext()), where.getContext());
}

Location withRole(Location where, WorkRole role) { return marked(where, role); }

Location withParameter(Location where, WorkRole role, StringRef parameter) {
  return marked(where, role, "parameter", parameter);
}

Location withPart(Location where, WorkRole role, StringRef part) { return marked(where, role, "part", part); }

Location withShares(MLIRContext *context, ArrayRef<Location> places, ArrayRef<int64_t> shares) {
  // Equal locations are one in a fused location.
  llvm::MapVector<Location, int64_t> sums;
  for (auto [place, share] : llvm::zip_equal(places, shares))
    sums[place] += share;
  SmallVector<Location> different;
  SmallVector<int64_t> numbers;
  for (auto [place, share] : sums) {
    different.push_back(place);
    numbers.push_back(share);
  }
  Builder b(context);
  NamedAttrList fields;
  fields.set("shares", b.getDenseI64ArrayAttr(numbers));
  return FusedLoc::get(different, fields.getDictionary(context), context);
}

namespace {
/// What locations around the one that is looked at have said.
struct Said {
  std::optional<WorkRole> role;
  std::string parameter, part;
  int64_t share = 1;
};
} // namespace

static void find(Location location, Said said, SmallVectorImpl<WorkPlace> &places) {
  auto fused = dyn_cast<FusedLoc>(location);
  if (!fused) {
    auto name = location->findInstanceOf<NameLoc>();
    WorkPlace place;
    place.role = said.role.value_or(WorkRole::Forward);
    place.share = said.share;
    place.parameter = said.parameter;
    place.part = said.parameter.empty() ? said.part : "";
    if (name && place.parameter.empty() && place.part.empty())
      place.node = name.getName().str();
    places.push_back(place);
    return;
  }
  DenseI64ArrayAttr shares;
  if (auto fields = dyn_cast_if_present<DictionaryAttr>(fused.getMetadata())) {
    if (auto role = fields.getAs<StringAttr>("role"); role && !said.role)
      said.role = roleNamed(role.getValue());
    for (auto [key, text] : {std::pair("parameter", &said.parameter), std::pair("part", &said.part)})
      if (auto value = fields.getAs<StringAttr>(key); value && text->empty())
        *text = value.str();
    shares = fields.getAs<DenseI64ArrayAttr>("shares");
  }
  ArrayRef<Location> parts = fused.getLocations();
  if (shares && shares.size() == static_cast<int64_t>(parts.size())) {
    for (auto [part, share] : llvm::zip_equal(parts, shares.asArrayRef())) {
      Said own = said;
      own.share = said.share * share;
      find(part, own, places);
    }
    return;
  }
  // Of a location that something else made of several, the first name stands for all, as in messages.
  auto *named = llvm::find_if(parts, [](Location part) { return part->findInstanceOf<NameLoc>() != nullptr; });
  find(named == parts.end() ? parts.front() : *named, said, places);
}

SmallVector<WorkPlace> workPlacesOf(Operation *op) {
  SmallVector<WorkPlace> places;
  find(op->getLoc(), {}, places);
  auto isForward = [](const WorkPlace &place) { return place.role == WorkRole::Forward; };
  if (llvm::none_of(places, isForward))
    return places;
  for (Operation *around = op->getParentOp(); around; around = around->getParentOp()) {
    if (isa<ds::FusedOp>(around)) // of ops of all roles
      continue;
    SmallVector<WorkPlace> outer;
    find(around->getLoc(), {}, outer);
    if (outer.front().role != WorkRole::Backward)
      continue;
    for (WorkPlace &place : places)
      if (isForward(place))
        place.role = WorkRole::Recompute;
    break;
  }
  return places;
}

} // namespace deepstride
