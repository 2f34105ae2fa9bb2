// The version of the compiler, from the build.
#ifndef DEEPSTRIDE_TOOLS_DSOPT_VERSION_H
#define DEEPSTRIDE_TOOLS_DSOPT_VERSION_H

#ifndef DS_VERSION
#error "the build defines DS_VERSION"
#endif

namespace deepstride {
inline constexpr const char *version = DS_VERSION;
} // namespace deepstride

#endif
