// Writes the unit tests' package where the command line says, for tests of the ds-run command.
#include "test/unit/runtime/PackageBuilder.h"

int main(int argc, char **argv) {
  if (argc != 2)
    return 2;
  ds::test::writePackage(argv[1]);
  return 0;
}
