#include "tools/ds-run/Options.h"
#include "runtime/core/Error.h"
namespace ds {
int benchCommand(const Options &) { fail(ErrorCode::InvalidArgument, "bench: not there yet"); }
}
