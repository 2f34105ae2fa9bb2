// Collectives between the ranks of one program, in start/wait form. Every rank starts the same collectives in the same
// order; the interface hides whether ranks are threads, processes or machines.
//
// A collective works on a *flat space* of `world * shard` elements, of which rank r owns [r * shard, (r + 1) * shard).
// Tensors lie in the space at offsets ("whole"); what no tensor covers counts as zeros, and travels, so that what is
// sent is known from shard, range and world alone. ZeRO's units are such spaces (docs/rationale/dist.md).
//
// all_reduce      every `whole` becomes the reduction over ranks.
// reduce_scatter  `own` becomes the reduction of the part that this rank owns; without it that part of `whole` does.
// all_gather      `own` of every rank goes into every `whole`.
// broadcast       what lies in the owner's `whole` goes into every other: a range inside one shard has one source; with
//                 shard = end it is rank 0.
// all_to_all      `own` has world * shard elements; block i becomes what rank i has in its `whole` where this rank
//                 owns.
// send_recv       what rank r has in its `whole` goes into `own` of rank r + by, where there is such a rank, or around
//                 the ring. One shard is all of the space.
#ifndef DEEPSTRIDE_RUNTIME_COMM_COMMUNICATOR_H
#define DEEPSTRIDE_RUNTIME_COMM_COMMUNICATOR_H

#include "runtime/core/ElementType.h"

#include <cstdint>
#include <string>
#include <vector>

namespace ds {

constexpr unsigned mostRanks = 4096; // of one program

enum class Reduction : uint8_t { Sum, Mean, Max };
enum class CollectiveOp : uint8_t { AllReduce, ReduceScatter, AllGather, AllToAll, Broadcast, SendRecv };
// None: every element travels as `wire`. OneBit: signs and one scale per rank, part and phase travel, and what they do
// not say is kept for the next time; for all_reduce of means over whole spaces, shards multiples of 8, f32 or f64
// (docs/rationale/collectives.md). SparseRows: rows that are not zeros travel with their numbers, or all elements where
// that is less, as all ranks find alike in each call; for sums or means of one table by all_reduce, or reduce_scatter
// without `own`. Zeros may lose their sign.
enum class Codec : uint8_t { None, OneBit, SparseRows };

// A tensor's elements in the flat space: [offset, offset + count). Memory of the caller's.
struct Segment {
  void *data = nullptr;
  int64_t offset = 0, count = 0; // elements
};

// One space, or a range of one: a bucket is several of them in one message per peer.
struct CollectivePart {
  int64_t shard = 0;          // elements that each rank owns
  int64_t begin = 0, end = 0; // only this range of the space takes part
  std::vector<Segment> whole; // by offset, disjoint. Read by reduce-scatter, all-to-all, and broadcast on the owner;
                              // written by all-gather, and broadcast elsewhere; both by all-reduce
  void *own = nullptr;        // element 0 is element rank * shard of the space, or, of all-to-all and send_recv, of
                       // what comes. Written by reduce-scatter and these, read by all-gather; may lie inside the memory
                       // of `whole` at its own place; null for all-reduce and broadcast
  // What rounding to one bit has left out so far, read and updated by Codec::OneBit: of every element of the space, as
  // this rank has sent it; and of the elements that this rank owns, as it has sent their means.
  void *workerError = nullptr; // world * shard elements of the request's type
  void *serverError = nullptr; // shard elements
  int64_t rowLength = 0;       // of the one tensor of Codec::SparseRows, elements
};

struct CollectiveRequest {
  CollectiveOp op = CollectiveOp::AllReduce;
  std::string value, site;             // for messages: which tensor, at which place of the program
  ElementType type = ElementType::F32; // in memory
  ElementType wire = ElementType::F32; // that travels: `type`, or a narrower float. What a rank contributes itself is
                                       // rounded to it, too; sums are in f32 (f64 where f64 travels) in rank order,
                                       // divided for a mean, then rounded once to it: all ranks hold the same bits
  Reduction reduction = Reduction::Sum;
  Codec codec = Codec::None;
  int64_t by = 0;                    // of send_recv: the rank that this one sends to, from this one on
  bool rotates = false;              // of send_recv: behind the last rank is the first
  std::vector<CollectivePart> parts; // memory stays the request's from start to wait: nothing is copied at the start
};

// What one site has moved so far, on this rank.
struct CollectiveCounters {
  std::string site, op;
  int64_t calls = 0, elements = 0;           // elements of the ranges, over all calls
  uint64_t sentBytes = 0, receivedBytes = 0; // payload: headers of transports do not count
  int64_t waitNanoseconds = 0;               // that the program stood in wait()
};

// One rank's end. Used by one thread at a time; data move by themselves between start and wait.
class Communicator {
public:
  virtual ~Communicator() = default;

  virtual unsigned rank() const = 0;
  virtual unsigned world() const = 0;

  // Returns at once; the ticket names the collective in the wait. Throws as the wait does where ranks have failed
  // before, and Error(Collective) for a request that makes no sense.
  virtual uint64_t start(const CollectiveRequest &request) = 0;

  // Returns when this rank has its results and nobody reads its memory any more. Throws Error(Collective) naming op,
  // value, site and step, and the rank that died, is stopped, is slow, left or asks for something else; then memory is
  // no longer touched, and all ranks learn of it at their next start or wait.
  virtual void wait(uint64_t ticket) = 0;

  // Says that this rank starts nothing more: normally (empty reason), or because it failed. Memory of what it has not
  // waited for is no longer touched. Ranks that wait for it return at once.
  virtual void leave(const std::string &reason) = 0;

  virtual void setStep(int64_t step) = 0; // for messages: "step 17"

  virtual std::vector<CollectiveCounters> counters() const = 0; // by first use
};

} // namespace ds
#endif
