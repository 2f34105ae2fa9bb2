// What manifest.json says (docs/package-format.md), checked: after reading, every index is in range and every size
// expression refers to known symbols.
#ifndef DEEPSTRIDE_RUNTIME_CORE_MANIFEST_H
#define DEEPSTRIDE_RUNTIME_CORE_MANIFEST_H

#include "runtime/core/ElementType.h"
#include "runtime/core/SizeExpr.h"
#include "runtime/core/Tensor.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ds {

struct ConstantInfo {
  std::string name, layout;
  uint64_t offset = 0, bytes = 0;
  ElementType type = ElementType::F32;
  Shape shape;
};

// Mesh: how many ranks an axis has ("mesh.data"), or which of them this one is ("mesh.data.index").
enum class SymbolKind : uint8_t { Dim, Element, Computed, Mesh };

struct SymbolInfo {
  std::string name;
  SymbolKind kind = SymbolKind::Dim;
  uint32_t input = 0; // of an element symbol
  uint64_t index = 0;
};

enum class Relation : uint8_t { Equal, Broadcast, AtLeast };

struct ConstraintInfo {
  Relation relation = Relation::Equal;
  SizeExpr lhs, rhs;
  std::string where;
};

// What must be so for a guarded entry to be the one that a call runs.
struct GuardInfo {
  SizeExpr condition;
  bool holds = true; // the condition is not 0
};

using SymbolicShape = std::vector<SizeExpr>;

struct TensorInfo {
  std::string name;
  ElementType type = ElementType::F32;
  SymbolicShape shape;
  std::optional<int64_t> bound; // inputs: values are in [0, bound)
};

// Where a state of a unit lies: in memory of its own; as a tensor in the unit's whole space; as the part of that space
// which this rank owns (a view of the same memory); or as that part alone. Worker: all of such a space in memory of its
// own, with other values on each rank: of the logical tensor, which has an axis of ranks in front, a rank has one row.
enum class StatePart : uint8_t { Own, Tensor, View, Shard, Worker };

struct StateInfo {
  std::string name;
  ElementType type = ElementType::F32;
  SymbolicShape shape;
  std::optional<uint32_t> initial; // constant; zeros without
  bool isStatistic = false;        // a running statistic: training moves it without a gradient
  StatePart part = StatePart::Own;
  uint32_t unit = 0;  // of a part: index of the variant's units
  std::string suffix; // of a part: the unit's tensors are called NAME + suffix there
};

// A tensor in the flat space of a unit.
struct UnitTensor {
  std::string name;
  int64_t offset = 0; // elements, a multiple of the unit's block
  Shape shape;
  std::optional<uint32_t> initial; // constant
};

// Parameters that ranks share among one another, one behind another in a flat space of ranks * shard(ranks) elements,
// of which rank r owns those from r * shard on (ZeRO, Rajbhandari et al. 1910.02054).
struct UnitInfo {
  std::string name;
  int64_t block = 1, elements = 0; // elements: up to the end of the last tensor, a multiple of the block
  // What parameters are rounded to, from masters of f32.
  std::optional<ElementType> rounded;
  std::vector<UnitTensor> tensors; // by offset

  int64_t shard(int64_t ranks) const { return (elements + ranks * block - 1) / (ranks * block) * block; }
};

// Of the masters of a unit's parameters: what updates go on from, and checkpoints hold as the parameters.
inline constexpr char masterSuffix[] = "/master";

enum class BufferRole : uint8_t { Constant, Input, Output, State, Workspace };

struct BufferInfo {
  BufferRole role = BufferRole::Workspace;
  uint32_t index = 0;           // of the constant, input, output or state
  uint32_t bytes = 0;           // workspace: size index
  uint32_t first = 0, last = 0; // workspace: launches during which it lives
};

struct LaunchResult {
  uint32_t buffer = 0;
  std::string value;
  ElementType type = ElementType::F32;
  SymbolicShape shape;
  std::optional<SizeExpr> writes; // bytes that are written of it; all of them without
};

// In which part of a step something is computed; Recompute: what was there on the way forward, once more.
enum class WorkRole : uint8_t { Forward, Backward, Recompute, Update };
inline constexpr size_t workRoles = 4;

// What a launch does for one node of the model, parameter, or part of the program ("loss", "optimizer"): one of the
// three names is not empty, unless the op has none.
struct NodeWork {
  std::string node, parameter, part, op;
  WorkRole role = WorkRole::Forward;
  SizeExpr macs, flops, bytes;
  bool mayBeLess = false; // the kernel leaves out what is masked for good
};

struct LaunchInfo {
  std::string kernel, site, arithmetic;
  SizeExpr flops;
  std::optional<uint32_t> scratch;            // index of the bytes that each thread needs for itself
  std::vector<uint32_t> operands;             // buffers that it reads
  std::vector<std::optional<SizeExpr>> reads; // bytes of each operand, none: all of them; empty: of all operands
  std::vector<LaunchResult> results;
  std::vector<NodeWork> work;
  std::vector<uint32_t> writtenStates; // those among the results' buffers
  std::vector<uint32_t> elementwise;   // buffers of states of which item i of the grid touches element i alone
};

enum class CollectiveKind : uint8_t { AllReduce, ReduceScatter, AllGather, AllToAll, Broadcast, SendRecv };
enum class ReductionKind : uint8_t { Sum, Mean, Max };
enum class CodecKind : uint8_t { None, OneBit, SparseRows };

// A buffer in the flat space of a collective.
struct CollectivePiece {
  uint32_t buffer = 0;
  std::optional<uint32_t> source; // that is read in its place: all-reduce and broadcast only
  SizeExpr offset, count;         // elements
};

struct CollectivePartInfo {
  SizeExpr shard, begin, end; // elements that each rank owns, and the range that takes part
  std::vector<CollectivePiece> whole;
  std::optional<uint32_t> own; // the buffer of what this rank owns; a scatter without one combines in place
  std::optional<uint32_t> workerError, serverError; // buffers of what a codec leaves out
  int64_t rowLength = 0;                            // elements, of a table that travels by rows
};

struct CollectiveInfo {
  CollectiveKind kind = CollectiveKind::AllReduce;
  std::string op, site, axis;                                   // op: the kind as text
  ElementType type = ElementType::F32, wire = ElementType::F32; // in memory; that travels
  ReductionKind reduction = ReductionKind::Sum;
  int64_t by = 0;                    // of send_recv: to which rank from this one
  bool rotates = false;              // of send_recv: the first rank is behind the last one
  std::optional<uint32_t> condition; // the buffer of a boolean without which nothing is sent
  CodecKind codec = CodecKind::None;
  bool isDeferred = false; // goes on after the entry, until a state of it is used: a gather of states into states
  std::vector<CollectivePartInfo> parts;
  SizeExpr sent, received; // bytes of a call, on this rank
};

struct EntryInfo {
  std::string name, group; // group: under which callers know it, its own name unless it is guarded
  size_t groupIndex = 0;
  std::vector<GuardInfo> guards;
  std::vector<SymbolInfo> symbols;
  std::vector<SizeExpr> sizes;
  std::vector<ConstraintInfo> constraints;
  std::vector<TensorInfo> inputs, outputs;
  std::vector<StateInfo> states;
  std::vector<BufferInfo> buffers;
  std::vector<LaunchInfo> launches;
  std::vector<CollectiveInfo> collectives;

  bool dependsOnComputed(const SizeExpr &expr) const;
};

// What callers know as one entry: a call runs the first of its entries whose guards all hold. Inputs are the same in
// all of them; outputs have the same names and types, and shapes of their own.
struct EntryGroup {
  std::string name;
  std::vector<size_t> entries;
};

struct VariantInfo {
  std::string mcpu, code;
  std::vector<std::string> features;
  int64_t vectorBits = 0;
  std::vector<ConstantInfo> constants;
  std::vector<UnitInfo> units;
  std::vector<EntryInfo> entries;
  std::vector<EntryGroup> groups; // of all entries, in the order of their first ones

  const EntryGroup &groupOf(size_t entry) const { return groups[entries[entry].groupIndex]; }
};

struct ConfigValue {
  std::string name, value, origin;
};

// A weight that the model's file has and that is another one here.
struct TiedWeight {
  std::string name, of;
  bool isTransposed = false;
};

// A parameter of whose rounded values products read.
struct QuantizedParameter {
  std::string name;
  int64_t block = 0; // the parameters of a block have one width
};

// A parameter of the model and the node that reads it first.
struct ParameterInfo {
  std::string name, node;
  int64_t elements = 0;
};

// Of a package that trains.
struct TrainingInfo {
  std::string config;             // JSON text, of frontends/config
  std::string labels;             // the input that the loss judges by; empty: the model's own loss
  std::optional<int64_t> classes; // labels are below, or ignored
  int64_t ignoredLabel = -100;
  bool shiftsLabels = false; // logits at place i are judged by the label at i + 1
  std::vector<TiedWeight> tied;
  std::vector<std::string> layers;           // names of the blocks that a micro-batch may drop
  std::vector<QuantizedParameter> quantized; // sorted by name
};

struct Manifest {
  std::string compiler, model;
  std::vector<ConfigValue> config;
  std::optional<TrainingInfo> training;
  std::vector<ParameterInfo> parameters;
  std::vector<VariantInfo> variants;
};

// Throws Error(BadPackage): "manifest.json: <path inside>: what, found X, expected Y".
Manifest readManifest(const std::string &text);

} // namespace ds
#endif
