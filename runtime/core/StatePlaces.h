// Where states live: in the memory of the device, in that of the host, or in files (ZeRO-Offload and ZeRO-Infinity,
// Ren et al. 2101.06840 and Rajbhandari et al. 2104.07857).
#ifndef DEEPSTRIDE_RUNTIME_CORE_STATEPLACES_H
#define DEEPSTRIDE_RUNTIME_CORE_STATEPLACES_H

#include <cstdint>
#include <limits>
#include <string>

namespace ds {

// Residual: what a codec has left out, for the next time.
enum class StateClass : uint8_t { Parameter, Gradient, Optimizer, Residual, Other };
enum class StatePlace : uint8_t { Device, Host, File };

// Of the states of one class.
struct PlaceSettings {
  StatePlace place = StatePlace::Device;
  std::string folder;  // for files, which have no names there and are gone with the process
  int64_t buffers = 1; // states of files, or pieces of these, that are in memory at a time
  int64_t pieceElements =
      std::numeric_limits<int64_t>::max(); // of a state of a file: more than that are several pieces
  int64_t hostElements = 0;                // so many stay in host memory before files begin

  // Of a state for which files are the place, where states before it have left so many elements in host memory.
  bool staysInHost(int64_t before, int64_t elements) const { return before + elements <= hostElements; }
  bool isLonger(int64_t elements) const { return elements > pieceElements; } // than a piece
  uint64_t pieceBytes(uint64_t bytes, size_t width, bool isCut) const {
    return isCut ? static_cast<uint64_t>(pieceElements) * width : bytes;
  }
};

struct StatePlaces {
  PlaceSettings parameters, optimizer;
  uint64_t deviceBytes = 0; // that states and the workspace of entries may take there; 0: as many as there are

  const PlaceSettings *of(StateClass kind) const {
    return kind == StateClass::Parameter ? &parameters : kind == StateClass::Optimizer ? &optimizer : nullptr;
  }
};

// Bytes of states by where they are, and what files have moved.
struct PlacedBytes {
  uint64_t device = 0, host = 0, file = 0;
  uint64_t fileParameters = 0, fileOptimizer = 0; // whole pages that files have set aside
  uint64_t read = 0, written = 0;                 // by files
  uint64_t resident = 0;                          // pieces of files, the most that were in memory at a time
  uint64_t residentBytes = 0;                     // of them
};

} // namespace ds
#endif
