#include "tools/ds-run/Options.h"
#include "runtime/core/Error.h"
namespace ds {
int profileCommand(const Options &) { fail(ErrorCode::InvalidArgument, "profile: not there yet"); }
}
