#include "test/unit/runtime/comm/Streams.h"

#include <algorithm>

namespace ds::test {

// As streams are filled: older collectives first, and what goes to owners in the order of starts.
bool Streams::send(unsigned from, unsigned to, Phase phase) {
  std::deque<Message> &stream = underWay[{from, to, phase}];
  if (stream.size() >= 2)
    return false;
  for (size_t number = 0; number < tasks[from].size(); ++number) {
    Message message;
    message.header.sequence = number;
    if (tasks[from][number]->next(to, phase, message.header, message.payload, 0)) {
      if (message.payload.size() != message.header.bytes || message.payload.size() > chunkBytes)
        fault = "a message of " + std::to_string(message.payload.size()) + " bytes";
      stream.push_back(std::move(message));
      return true;
    }
    if (phase == Phase::ToOwner && tasks[from][number]->holdsBack(to))
      return false;
  }
  return false;
}

bool Streams::receive(unsigned from, unsigned to, Phase phase) {
  std::deque<Message> &stream = underWay[{from, to, phase}];
  if (stream.empty())
    return false;
  CollectiveTask &task = *tasks[to][stream.front().header.sequence];
  if (!task.expects(from, phase, stream.front().header)) {
    fault = "a message that nobody waits for";
    return false;
  }
  if (!task.hasRoom(from, phase, stream.front().header))
    return false;
  task.take(from, phase, stream.front().payload);
  stream.pop_front();
  return true;
}

bool Streams::tryOne(unsigned from, unsigned to, unsigned what) {
  if (what == 0) {
    bool hasMoved = false;
    for (auto &task : tasks[from])
      hasMoved |= task->advance();
    return hasMoved;
  }
  Phase phase = what % 2 == 0 ? Phase::ToOwner : Phase::FromOwner;
  return from != to && (what < 3 ? send(from, to, phase) : receive(from, to, phase));
}

bool Streams::isDone() const {
  return std::all_of(tasks.begin(), tasks.end(), [](const auto &own) {
    return std::all_of(own.begin(), own.end(), [](const auto &task) { return task->isDone(); });
  });
}

bool Streams::tryDrawn(unsigned late) {
  for (unsigned i = 0; i < 40 * world; ++i) {
    auto from = static_cast<unsigned>(random() % world), to = static_cast<unsigned>(random() % world);
    auto what = static_cast<unsigned>(random() % 5);
    if ((what != 0 || from != late) && tryOne(from, to, what))
      return true;
  }
  return false;
}

// The late rank's computing comes last.
bool Streams::tryAll() {
  for (unsigned what : {1u, 2u, 3u, 4u, 0u})
    for (unsigned from = 0; from < world; ++from)
      for (unsigned to = 0; to < world; ++to)
        if (tryOne(from, to, what))
          return true;
  return false;
}

std::string Streams::run(unsigned late) {
  while (fault.empty() && (tryDrawn(late) || tryAll()))
    ;
  return !fault.empty() || isDone() ? fault : "nothing goes on";
}

} // namespace ds::test
