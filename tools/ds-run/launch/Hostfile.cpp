#include "tools/ds-run/launch/Hostfile.h"

#include "runtime/core/Error.h"
#include "runtime/core/Text.h"
#include "tools/ds-run/launch/TextLines.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <set>
#include <unordered_map>

namespace ds {
namespace {

// A name that begins with a dash would be an option of mpirun, and the others separate the parts of a filter.
bool isHostName(std::string_view name) {
  auto isLegal = [](unsigned char c) { return c > ' ' && c != 0x7f && !std::strchr(":@,=*'\"\\", c); };
  return !name.empty() && name[0] != '-' && std::all_of(name.begin(), name.end(), isLegal);
}

std::vector<unsigned> slotsUpTo(unsigned count) {
  std::vector<unsigned> slots(count);
  std::iota(slots.begin(), slots.end(), 0u);
  return slots;
}

Host parseHost(const TextLine &line) {
  std::vector<std::string_view> words = wordsOf(line.text);
  // What follows a '#' is a comment, not only where the line begins with it.
  auto comment = std::find_if(words.begin(), words.end(), [](std::string_view word) { return word[0] == '#'; });
  words.erase(comment, words.end());
  constexpr std::string_view key = "slots=";
  if (words.size() != 2 || words[1].substr(0, key.size()) != key)
    fail(ErrorCode::BadFile, line.place, ": found ", inQuotes(line.text), ", expected NAME slots=K");
  if (!isHostName(words[0]))
    fail(ErrorCode::BadFile, line.place, ": found ", inQuotes(words[0]),
         ", expected the name of a host without any of : @ , = * ' \" \\ and without a dash in front");
  std::string_view number = words[1].substr(key.size());
  std::optional<unsigned> slots = wholeNumber(number, mostRanks);
  if (slots.value_or(0) == 0)
    fail(ErrorCode::BadFile, line.place, ": host ", inQuotes(words[0]), " has slots=", escaped(number),
         ", expected 1 to ", mostRanks);
  return {std::string(words[0]), slotsUpTo(*slots)};
}

struct FilterPart {
  std::string_view host;
  std::vector<std::string_view> slots; // empty: all
};

std::vector<FilterPart> parseFilter(const char *option, std::string_view text) {
  std::vector<FilterPart> parts;
  for (std::string_view node : splitAt(text, '@')) {
    FilterPart part;
    size_t colon = node.find(':');
    part.host = node.substr(0, colon);
    if (part.host.empty())
      fail(ErrorCode::InvalidArgument, option, ": found ", inQuotes(text), ", expected NODE[:SLOT,SLOT]@NODE...");
    if (colon != std::string_view::npos)
      part.slots = splitAt(node.substr(colon + 1), ',');
    parts.push_back(part);
  }
  return parts;
}

std::string namesText(const std::vector<Host> &hosts) {
  constexpr size_t shown = 8;
  std::vector<std::string> names;
  for (const Host &host : hosts)
    if (names.size() < shown)
      names.push_back(host.name);
  std::string text = listText(names);
  return hosts.size() > shown ? concat(text, " and ", hosts.size() - shown, " more") : text;
}

// The slots that a part of a filter names, of a host that has slots 0 to its number.
std::vector<unsigned> namedSlots(const char *option, const FilterPart &part, const Host &host) {
  if (part.slots.empty())
    return host.slots;
  std::vector<unsigned> named;
  for (std::string_view text : part.slots) {
    std::optional<unsigned> slot = wholeNumber(text, mostRanks);
    if (!slot || *slot >= host.slots.size())
      fail(ErrorCode::InvalidArgument, option, ": host ", inQuotes(host.name), " has no slot ", inQuotes(text),
           ", expected 0 to ", host.slots.size() - 1);
    if (std::find(named.begin(), named.end(), *slot) != named.end())
      fail(ErrorCode::InvalidArgument, option, ": slot ", *slot, " of host ", inQuotes(host.name), " is named twice");
    named.push_back(*slot);
  }
  return named;
}

// What a filter names of each host, by host; nothing where it does not name the host.
std::vector<std::optional<std::vector<unsigned>>> namedOfEach(const char *option, const std::string &text,
                                                              const std::vector<Host> &hosts) {
  std::vector<std::optional<std::vector<unsigned>>> named(hosts.size());
  for (const FilterPart &part : parseFilter(option, text)) {
    auto host = std::find_if(hosts.begin(), hosts.end(), [&](const Host &h) { return h.name == part.host; });
    if (host == hosts.end())
      fail(ErrorCode::InvalidArgument, option, ": no host ", inQuotes(part.host), ", expected one of ",
           namesText(hosts));
    auto &slots = named[static_cast<size_t>(host - hosts.begin())];
    if (slots)
      fail(ErrorCode::InvalidArgument, option, ": host ", inQuotes(part.host), " is named twice");
    slots = namedSlots(option, part, *host);
  }
  return named;
}

std::vector<Host> included(std::vector<Host> hosts, const std::string &text) {
  auto named = namedOfEach("--include", text, hosts);
  for (size_t i = 0; i < hosts.size(); ++i)
    hosts[i].slots = named[i].value_or(std::vector<unsigned>());
  return hosts;
}

std::vector<Host> excluded(std::vector<Host> hosts, const std::string &text) {
  auto named = namedOfEach("--exclude", text, hosts);
  for (size_t i = 0; i < hosts.size(); ++i) {
    if (!named[i])
      continue;
    std::set<unsigned> out(named[i]->begin(), named[i]->end());
    auto &slots = hosts[i].slots;
    slots.erase(std::remove_if(slots.begin(), slots.end(), [&](unsigned slot) { return out.count(slot) > 0; }),
                slots.end());
  }
  return hosts;
}

std::vector<Host> firstOfEach(std::vector<Host> hosts, const HostFilter &filter) {
  if (filter.nodes && (*filter.nodes == 0 || *filter.nodes > hosts.size()))
    fail(ErrorCode::InvalidArgument, "--num_nodes: found ", *filter.nodes, ", expected 1 to ", hosts.size(),
         ", the number of hosts");
  hosts.resize(filter.nodes.value_or(hosts.size()));
  for (Host &host : hosts) {
    if (filter.slots && (*filter.slots == 0 || *filter.slots > host.slots.size()))
      fail(ErrorCode::InvalidArgument, "--num_gpus: found ", *filter.slots, ", expected 1 to ", host.slots.size(),
           ", the slots of host ", inQuotes(host.name));
    host.slots.resize(filter.slots.value_or(host.slots.size()));
  }
  return hosts;
}

} // namespace

std::vector<Host> parseHostfile(const std::string &text, const std::string &file) {
  constexpr size_t mostSlots = 1 << 16;
  std::vector<Host> hosts;
  std::unordered_map<std::string, std::string> places;
  size_t slots = 0;
  for (const TextLine &line : linesOf(text, file)) {
    Host host = parseHost(line);
    auto [first, isNew] = places.emplace(host.name, line.place);
    if (!isNew)
      fail(ErrorCode::BadFile, line.place, ": host ", inQuotes(host.name), " stands at ", first->second, ", too");
    slots += host.slots.size();
    if (slots > mostSlots)
      fail(ErrorCode::BadFile, line.place, ": more than ", mostSlots, " slots");
    hosts.push_back(std::move(host));
  }
  if (hosts.empty())
    fail(ErrorCode::BadFile, file, ": no host, expected lines of NAME slots=K");
  return hosts;
}

std::vector<Host> filterHosts(std::vector<Host> hosts, const HostFilter &filter) {
  bool countsFirst = filter.nodes || filter.slots;
  if (!filter.include.empty() && !filter.exclude.empty())
    fail(ErrorCode::InvalidArgument, "--include and --exclude: expected one of them, found both");
  if (countsFirst && !(filter.include.empty() && filter.exclude.empty()))
    fail(ErrorCode::InvalidArgument, filter.nodes ? "--num_nodes" : "--num_gpus", ": expected no ",
         filter.include.empty() ? "--exclude" : "--include", " beside it");
  if (!filter.include.empty())
    hosts = included(std::move(hosts), filter.include);
  else if (!filter.exclude.empty())
    hosts = excluded(std::move(hosts), filter.exclude);
  else
    hosts = firstOfEach(std::move(hosts), filter);
  hosts.erase(std::remove_if(hosts.begin(), hosts.end(), [](const Host &host) { return host.slots.empty(); }),
              hosts.end());
  if (hosts.empty())
    fail(ErrorCode::InvalidArgument, "--exclude: found ", inQuotes(filter.exclude), ", which leaves no slot");
  return hosts;
}

std::vector<Host> firstSlots(const std::vector<Host> &hosts, size_t count) {
  std::vector<Host> first;
  for (const Host &host : hosts) {
    if (count == 0)
      break;
    Host part = host;
    part.slots.resize(std::min(count, host.slots.size()));
    count -= part.slots.size();
    first.push_back(std::move(part));
  }
  return first;
}

size_t slotCount(const std::vector<Host> &hosts) {
  size_t count = 0;
  for (const Host &host : hosts)
    count += host.slots.size();
  return count;
}

} // namespace ds
