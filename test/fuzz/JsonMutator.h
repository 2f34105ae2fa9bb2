// Mutates JSON documents as documents.
#ifndef DEEPSTRIDE_TEST_FUZZ_JSONMUTATOR_H
#define DEEPSTRIDE_TEST_FUZZ_JSONMUTATOR_H

#include "test/fuzz/Random.h"

namespace deepstride::fuzz {

/// Text that is no JSON is mutated as bytes.
void mutateJson(std::string &text, Random &random);

} // namespace deepstride::fuzz

#endif
