// What somebody may have meant who wrote a name that is none.
#ifndef DEEPSTRIDE_TOOLS_COMMANDLINE_NEAREST_H
#define DEEPSTRIDE_TOOLS_COMMANDLINE_NEAREST_H

#include <string>
#include <vector>

namespace ds::commandline {

// How many letters must be inserted, left out, replaced or exchanged with their neighbours to make one word the other.
unsigned editDistance(const std::string &a, const std::string &b);

// The legal word that is nearest, the first of several; empty where none is within two steps, or one for short words.
std::string nearest(const std::string &word, const std::vector<std::string> &legal);

// ", did you mean 'bench'?", or nothing.
std::string didYouMean(const std::string &word, const std::vector<std::string> &legal);

} // namespace ds::commandline
#endif
