// Any bytes are a hostfile or an error of one line that names the file; whatever filter its last line asks for gives
// slots that the hosts have, each once. The same bytes are read as variables of an environment file.
#include "runtime/core/Error.h"
#include "test/fuzz/TemporaryFile.h"
#include "test/fuzz/ZipMutator.h"
#include "tools/ds-run/launch/Environment.h"
#include "tools/ds-run/launch/Hostfile.h"
#include "tools/ds-run/launch/Ranks.h"

#include <algorithm>
#include <cstring>
#include <set>

using namespace deepstride::fuzz;

namespace {

void checkMessage(const ds::Error &error) {
  std::string text = error.what();
  bool isOneLine = !text.empty() && text.size() < 4000 &&
                   std::none_of(text.begin(), text.end(), [](unsigned char c) { return c < ' ' || c == 0x7f; });
  if (!isOneLine)
    finding("an error is not one line: " + text);
}

void checkFilter(const std::vector<ds::Host> &hosts, const ds::HostFilter &filter) {
  try {
    std::vector<ds::Host> left = filterHosts(hosts, filter);
    std::set<std::pair<std::string, unsigned>> seen;
    for (const ds::RankPlace &place : placeRanks(left))
      if (!seen.emplace(place.host, place.slot).second)
        finding("a slot has two ranks");
    // Hosts keep their order, and have no slots but their own.
    if (seen.empty() || slotCount(leftOf(left, hosts)) != seen.size())
      finding("a filter gives slots that no host has");
    if (slotCount(firstSlots(left, 3)) != std::min<size_t>(3, seen.size()))
      finding("the first slots are not as many as asked for");
  } catch (const ds::Error &error) {
    checkMessage(error);
  }
}

void checkHosts(const std::string &text, const std::string &filter) {
  try {
    std::vector<ds::Host> hosts = ds::parseHostfile(text, "h");
    std::string again;
    for (const ds::Host &host : hosts)
      again += host.name + " slots=" + std::to_string(host.slots.size()) + "\n";
    std::vector<ds::Host> same = ds::parseHostfile(again, "h");
    if (same.size() != hosts.size() || slotCount(same) != slotCount(hosts))
      finding("hosts that were read are written as others");
    checkFilter(hosts, {filter, "", {}, {}});
    checkFilter(hosts, {"", filter, {}, {}});
    checkFilter(hosts, {"", "", static_cast<unsigned>(filter.size() % 4), static_cast<unsigned>(filter.size() % 5)});
  } catch (const ds::Error &error) {
    checkMessage(error);
  }
}

void checkEnvironment(const std::string &text) {
  ds::Variables variables;
  try {
    parseEnvironment(text, "e", variables);
  } catch (const ds::Error &error) {
    checkMessage(error);
  }
  std::string again;
  for (const auto &[name, value] : variables)
    again += ds::concat(name, "=", value, "\r\n"); // of a value that ends in \r, only one is taken off
  ds::Variables same;
  parseEnvironment(again, "e", same); // what was read is legal
  for (const auto &[name, value] : variables)
    if (const std::string *found = same.find(name); !found || *found != value)
      finding("a variable that was read is written as another one");
}

const char *const words[] = {"a",  "b.c",  "localhost", "slots=", "slots=2", "slots=0",  "slots=4096",
                             "\n", "\r\n", " ",         "\t",     "#",       "=",        ":",
                             "@",  ",",    "1",         "0",      "A=",      "DS_RANK=1"};

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string text(reinterpret_cast<const char *>(data), size);
  size_t last = text.rfind('\n');
  std::string filter = last == std::string::npos ? text : text.substr(last + 1);
  checkHosts(text.substr(0, last == std::string::npos ? text.size() : last), filter);
  checkEnvironment(text);
  return 0;
}

// Words of the grammar between random bytes.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t maxSize, unsigned seed) {
  Random random(seed);
  std::string text(reinterpret_cast<char *>(data), size);
  for (size_t i = 1 + random.below(4); i > 0; --i) {
    size_t at = random.below(text.size() + 1);
    if (random.oneIn(3))
      text.erase(at, 1 + random.below(6));
    else if (random.oneIn(4))
      text.insert(at, 1, static_cast<char>(random.below(256)));
    else
      text.insert(at, words[random.below(std::size(words))]);
  }
  return store(text, data, size, maxSize);
}
