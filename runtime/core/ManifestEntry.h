// Reading one entry of manifest.json.
#ifndef DEEPSTRIDE_RUNTIME_CORE_MANIFESTENTRY_H
#define DEEPSTRIDE_RUNTIME_CORE_MANIFESTENTRY_H

#include "runtime/core/JsonReader.h"
#include "runtime/core/Manifest.h"

namespace ds {

// Of a variant with so many constants and these units. Throws as readManifest does.
EntryInfo readEntry(const JsonReader &json, size_t constants, const std::vector<UnitInfo> &units);

template <typename Enum>
Enum readEnum(const JsonReader &json, std::initializer_list<std::pair<const char *, Enum>> values) {
  std::string text = json.string();
  std::string legal;
  for (const auto &[name, value] : values) {
    if (text == name)
      return value;
    legal += (legal.empty() ? "" : ", ") + std::string(name);
  }
  json.refuse("found '", text, "', expected one of ", legal);
}

inline ElementType readType(const JsonReader &json) {
  std::string name = json.string();
  if (auto type = typeFromName(name))
    return *type;
  json.refuse("unknown element type '", name,
              "', expected one of f64, f32, f16, bf16, i64, i32, i16, i8, u64, u32, u16, "
              "u8, i1, f8e4m3fn, f8e4m3fnuz, f8e5m2, f8e5m2fnuz, f8e8m0, f4e2m1, i4, u4, i2, u2");
}

} // namespace ds
#endif
