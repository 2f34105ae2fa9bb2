// Mutates .npy files and zip files of them: lengths and checksums fit afterwards, mostly.
#ifndef DEEPSTRIDE_TEST_FUZZ_ZIPMUTATOR_H
#define DEEPSTRIDE_TEST_FUZZ_ZIPMUTATOR_H

#include "test/fuzz/Random.h"

namespace deepstride::fuzz {

void mutateNpy(std::string &bytes, Random &random);
void mutateZip(std::string &bytes, Random &random);

} // namespace deepstride::fuzz

#endif
