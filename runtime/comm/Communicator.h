// Collectives between the ranks of one program, in start/wait form. Every rank starts the same collectives in the same
// order; the interface hides whether ranks are threads, processes or machines.
#ifndef DEEPSTRIDE_RUNTIME_COMM_COMMUNICATOR_H
#define DEEPSTRIDE_RUNTIME_COMM_COMMUNICATOR_H

#include "runtime/core/ElementType.h"

#include <cstdint>
#include <string>

namespace ds {

enum class Reduction : uint8_t { Sum, Mean, Max };

struct CollectiveRequest {
  std::string value, site; // for messages: which tensor, at which node of the model
  ElementType type = ElementType::F32;
  Reduction reduction = Reduction::Sum;
  int64_t count = 0;
  const void *source = nullptr; // stays unchanged until the wait, may be read until then
};

// One rank's end. Used by one thread at a time.
class Communicator {
public:
  virtual ~Communicator() = default;

  virtual unsigned rank() const = 0;
  virtual unsigned world() const = 0;

  // Posts this rank's part of an all-reduce and returns at once; the ticket names it in the wait.
  virtual uint64_t startAllReduce(const CollectiveRequest &request) = 0;

  // Completes it into the destination, which may be the source. The result has the same bits on every rank and in every
  // run. Throws Error(Collective) naming value, site and rank when a rank fails, asks for something else or is missing.
  virtual void wait(uint64_t ticket, void *destination) = 0;

  // Says that this rank posts nothing more: normally (empty reason), or because it failed. Ranks that wait for it
  // return at once.
  virtual void leave(const std::string &reason) = 0;
};

} // namespace ds
#endif
