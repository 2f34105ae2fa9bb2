// A program with a model inside, in C++: ds/runtime.hpp. docs/embedding.md makes the model, which has an input x of f32
// [batch, 3] and an output y of f32 [batch, 2].
//
//   embed model.dsp
#include "ds/runtime.hpp"

#include <cstdio>

int main(int argc, char **argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: embed model.dsp\n");
    return 2;
  }
  try {
    ds::Package package(argv[1]);
    ds::Session session(package);

    // Inputs and outputs in memory of ours, 64-byte aligned: nothing is copied.
    alignas(64) float x[6] = {1, 2, 3, -1, -2, 4};
    alignas(64) float y[4];
    session.runInto({{"x", x, {2, 3}}}, {{"y", y, {2, 2}}});
    std::printf("y: %g %g, %g %g\n", y[0], y[1], y[2], y[3]);

    // Or outputs in memory of the library's, which grows with the sizes of the call.
    ds::Outputs outputs = session.run({{"x", x, {1, 3}}});
    for (float value : outputs["y"].as<float>())
      std::printf("%g\n", value);

    // What each kernel takes.
    long long nanoseconds = 0;
    session.observe([&](const ds_launch_event &event) { nanoseconds += event.nanoseconds; });
    session.run({{"x", x, {2, 3}}}, outputs); // into the memory of earlier outputs
    std::printf("kernels took %s\n", nanoseconds < 1000000000 ? "less than a second" : "long");

    // What does not fit is an exception with a code and one line.
    session.run({{"x", x, {3, 2}}});
  } catch (const ds::Error &error) {
    std::printf("error %d: %s\n", static_cast<int>(error.getCode()), error.what());
    return error.getCode() == DS_STATUS_SHAPE_MISMATCH ? 0 : 1;
  }
  return 1;
}
