// The command as a whole: what it prints, writes and exits with.
#include "test/unit/runtime/PackageBuilder.h"

#include "tools/ds-run/Inputs.h"

#include "runtime/io/Npz.h"
#include "runtime/io/TensorProto.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace ds;
using namespace ds::test;
using Json = nlohmann::json;

namespace {

struct Result {
  int code;
  std::string text; // stdout and stderr together
};

Result execute(const std::string &arguments) {
  FILE *pipe = popen((std::string(DS_RUN) + " " + arguments + " 2>&1").c_str(), "r");
  Result result{-1, ""};
  char part[4096];
  while (size_t length = fread(part, 1, sizeof(part), pipe))
    result.text.append(part, length);
  int status = pclose(pipe);
  if (WIFEXITED(status))
    result.code = WEXITSTATUS(status);
  return result;
}

class DsRun : public ::testing::Test {
protected:
  DsRun() : package(writePackage(folder.path())) {}

  void expect(int code, const std::string &part, const std::string &arguments) {
    Result result = execute(arguments);
    EXPECT_EQ(result.code, code) << arguments << "\n" << result.text;
    EXPECT_NE(result.text.find(part), std::string::npos) << arguments << "\n" << result.text;
  }

  TemporaryFolder folder;
  std::string package;
};

TEST_F(DsRun, HelpsInEightyLines) {
  for (const char *arguments : {"--help", "compare --help", "bench --help", "inspect --help", "profile --help"}) {
    Result result = execute(arguments);
    EXPECT_EQ(result.code, 0);
    EXPECT_LE(std::count(result.text.begin(), result.text.end(), '\n'), 80);
  }
  expect(0, "ds-run 0.", "--version");
}

TEST_F(DsRun, PrintsShapeTypeAndDigest) {
  Result result = execute(package + " --input 'x=[[1,1,1,1],[2,2,2,2]]'");
  EXPECT_EQ(result.code, 0);
  EXPECT_EQ(result.text.substr(0, 23), "y: f32 [2, 4] sha256:" + result.text.substr(21, 2));
  EXPECT_NE(result.text.find(" 2 3 4 5 4 6 ..."), std::string::npos) << result.text;
  EXPECT_EQ(execute(package + " --dim rows=3 --dim n=4 --seed=5 --threads=1").text,
            execute(package + " --dim=rows=3 --dim=n=4 --seed 5 --threads 3").text);
}

TEST_F(DsRun, WritesAnNpzByOutputNames) {
  std::string file = folder.file("out.npz");
  expect(0, "", package + " --input 'x=[[1,1,1,1]]' --output " + file);
  auto tensors = readNpz(file);
  ASSERT_EQ(tensors.size(), 1u);
  EXPECT_EQ(tensors[0].name, "y");
}

TEST_F(DsRun, ExitsTwoForUsage) {
  expect(2, "ds-run: error: dimension 'rows' has no value", package);
  expect(2, "no dimension 'cols'", package + " --dim cols=3");
  expect(2, "expected NAME=VALUE", package + " --dim rows");
  expect(2, "no entry 'other'", package + " --entry other");
  expect(2, "no package given", "");
  expect(2, "--frobnicate", package + " --frobnicate");
  expect(2, "--threads", package + " --threads=0");
  expect(2, "no input 'z'", package + " --input z=1");
  expect(2, "expected {rank} in it", package + " -n 2 --transport=threads --output o.npz");
}

TEST_F(DsRun, ExitsOneForDiagnoses) {
  expect(1, "cannot open", package + " --inputs " + folder.file("none.npz"));
  expect(1, "wrong rank, found [3]", package + " --input 'x=[1,2,3]'");
  expect(1, "ds-run: error: /nowhere.dsp: not a package directory, nothing is there\n", "/nowhere.dsp");
  expect(1, "not a package directory but a model, compile it first: ds-opt a/m.onnx -o a/m.dsp\n", "bench a/m.onnx");
  expect(1,
         "kernel 'gather' at '/embeddings/Gather': index out of range, input 'indices' has 3 at [1], expected 0 to 2\n",
         package + " --entry lookup --input 'table=[1,2,3]' --input 'indices=[-3,3]'");
  expect(1, "cannot create a file there", package + " --dim rows=1 --dim n=4 --output /nowhere/o.npz");
}

TEST_F(DsRun, NamesAPathOnce) {
  auto isOnce = [&](const std::string &path, const std::string &arguments) {
    Result result = execute(arguments);
    EXPECT_EQ(result.code, 1) << result.text;
    size_t first = result.text.find(path);
    EXPECT_NE(first, std::string::npos) << result.text;
    EXPECT_EQ(result.text.find(path, first + 1), std::string::npos) << result.text;
  };
  for (const char *name : {"none.npy", "none.pb"})
    isOnce(folder.file(name), package + " --input x=@" + folder.file(name));
  isOnce(folder.file("none.npz"), package + " --inputs " + folder.file("none.npz"));
  isOnce(folder.file("none.npz"), package + " --dim rows=1 --dim n=4 --state-in " + folder.file("none.npz"));
  for (const char *member : {"/manifest.json", "/SHA256SUMS", "/weights.bin"}) {
    std::string bytes = readFile(package + member);
    std::filesystem::remove(package + member);
    isOnce(package, package);
    std::filesystem::create_directory(package + member);
    isOnce(package, package);
    std::filesystem::remove(package + member);
    writeFile(package + member, bytes);
  }
  writeFile(package + "/manifest.json", "{");
  isOnce(package, package + " --no-verify");
}

TEST_F(DsRun, SaysWhatWasMeant) {
  auto says = [&](const std::string &text, const std::string &arguments) {
    Result result = execute(arguments);
    EXPECT_EQ(result.code, 2) << arguments;
    EXPECT_EQ(result.text, "ds-run: error: " + text + "\n") << arguments;
  };
  says("'bnech' is no command and no package, did you mean 'bench'?", "bnech " + package);
  says("'inspekt' is no command and no package, did you mean 'inspect'?", "inspekt");
  says("unknown option '--thread', did you mean '--threads'? (see ds-run bench --help)", "bench --thread=3 " + package);
  says("unknown option '--ranx', did you mean '--ranks'? (see ds-run --help)", package + " --ranx=3");
  says("unknown option '--frobnicate' (see ds-run --help)", package + " --frobnicate");
  says("--transport: expected shm, tcp, mpi or threads, found 'thread', did you mean 'threads'?",
       package + " -n 2 --transport=thread");
  says("ACTION: expected inspect, verify, diff or export, found 'verfy', did you mean 'verify'?", "checkpoint verfy x");
}

TEST_F(DsRun, RefusesVariablesThatAreNone) {
  auto says = [&](const std::string &variable, const std::string &text) {
    setenv(variable.substr(0, variable.find('=')).c_str(), variable.substr(variable.find('=') + 1).c_str(), 1);
    for (const std::string &arguments : {package + " --dim rows=1 --dim n=4 --threads=1", "inspect " + package}) {
      Result result = execute(arguments);
      EXPECT_EQ(result.code, text.empty() ? 0 : 2) << variable << " " << arguments << result.text;
      EXPECT_TRUE(text.empty() || result.text == "ds-run: error: " + text + "\n") << result.text;
    }
    unsetenv(variable.substr(0, variable.find('=')).c_str());
  };
  for (const char *value : {"0", "x", "-1", "1025", "2.5", " 2", "99999999999"})
    says(std::string("DS_NUM_THREADS=") + value,
         std::string("DS_NUM_THREADS: expected a number of 1 to 1024, found '") + value + "'");
  says("DS_NUM_THREADS=", "");
  says("DS_NUM_THREADS=2", "");
  says("DS_TRANSPORT=smoke", "DS_TRANSPORT: found 'smoke', expected shm, tcp or mpi");
  says("DS_TIMEOUT=0", "DS_TIMEOUT: found '0', expected seconds, more than 0 and at most 1000000");
  says("DS_TIMEOUT=nan", "DS_TIMEOUT: found 'nan', expected seconds, more than 0 and at most 1000000");
  says("DS_WORLD=two", "DS_WORLD: found 'two', expected a number");
  says("DS_LOCAL_RANK=-1", "DS_LOCAL_RANK: found '-1', expected a number");
}

TEST_F(DsRun, EveryDiagnosisIsOneLine) {
  Result result = execute(package + " --input 'x=[1,2,3]'");
  EXPECT_EQ(std::count(result.text.begin(), result.text.end(), '\n'), 1);
}

TEST_F(DsRun, VerifiesUnlessToldNotTo) {
  std::string weights = readFile(package + "/weights.bin");
  weights[0] ^= 1;
  writeFile(package + "/weights.bin", weights);
  expect(1, "weights.bin:0+64: checksum mismatch", package + " --dim rows=1 --dim n=4");
  expect(0, "y: f32 [1, 4]", package + " --dim rows=1 --dim n=4 --no-verify");
}

TEST_F(DsRun, SaysWhichInputsAreRandom) {
  std::string random = "ds-run: input 'x': random numbers (seed 0); give --input x=...\n",
              dims = " --dim rows=1 --dim n=4";
  expect(0, random, package + dims);
  expect(0, random, "bench " + package + dims + " --duration=0.05 --threads=1");
  expect(0, random, "profile " + package + dims + " --duration=0.05 --threads=1");
  expect(0, random, "compare " + package + " " + package + dims);
  auto isSilent = [&](const std::string &arguments) {
    Result result = execute(arguments);
    EXPECT_EQ(result.code, 0);
    EXPECT_EQ(result.text.find("random"), std::string::npos) << result.text;
  };
  isSilent(package + dims + " --seed=0"); // asked for
  isSilent(package + dims + " --input x=1");
  isSilent("compare " + package + " " + package + dims + " --seed=0");
  std::string lookup = package + " --entry lookup --dim n=3 --dim count=2";
  expect(0, "ds-run: inputs 'table', 'indices': random numbers (seed 0); give --inputs or --input table=...\n", lookup);
  expect(0, "ds-run: input 'table': random numbers (seed 4); give --input table=...\n",
         lookup + " --input indices=1 --seed=4");
  Result ranks = execute(package + " --entry reduce -n 2 --transport=threads --dim n=2");
  EXPECT_EQ(ranks.text.find("random"), ranks.text.rfind("random")) << ranks.text; // once
}

TEST_F(DsRun, DiagnosesWhatCannotBeRead) {
  std::string data = folder.file("data");
  std::filesystem::create_directory(data);
  writeFile(folder.file("empty"), "");
  writeFile(folder.file("empty.npz"), "");
  writeFile(folder.file("empty.npy"), "");
  writeFile(folder.file("empty.pb"), "");
  std::string dims = " --dim rows=1 --dim n=4", long1 = folder.path() + "/" + std::string(300, 'x');
  for (const std::string &name : {folder.file("none"), folder.file("empty"), data, long1, folder.file("empty/x")}) {
    for (const char *command : {"", "bench ", "profile ", "inspect "})
      expect(1, name, command + name);
    expect(1, name, package + dims + " --inputs " + name + (name == data ? "/x" : ""));
    expect(1, name, package + dims + " --state-in " + name);
  }
  for (const char *name : {"none", "empty", "empty/x"})
    expect(2, name, "compare " + package + " " + folder.file(name) + dims);
  expect(1, data, "compare " + package + " " + data + dims);
  for (const char *name : {"empty.npz", "none.npz"})
    expect(1, name, package + dims + " --inputs " + folder.file(name));
  for (const char *name : {"empty.npy", "none.npy", "empty.pb", "none.pb"})
    expect(1, name, package + dims + " --input x=@" + folder.file(name));
}

TEST_F(DsRun, DiagnosesWhatCannotBeWritten) {
  std::string dims = " --dim rows=1 --dim n=4 --seed=1", count = package + " --entry count --input 'x=[1,1,1,1]'";
  std::filesystem::create_directory(folder.file("taken.svg"));
  for (const std::string &name : {std::string("/dev/full"), folder.file("taken.svg"), std::string("/nowhere/x.svg")}) {
    expect(1, name, package + dims + " --output " + name);
    expect(1, name, count + " --state-out " + name);
    expect(1, name, "bench " + package + dims + " --duration=0.05 --threads=1 --json " + name);
    expect(1, name, "profile " + package + dims + " --duration=0.05 --threads=1 --trace " + name);
    if (name != "/dev/full") // no name of a picture
      expect(1, name, "inspect " + package + " --graph " + name);
  }
  std::filesystem::create_symlink("/dev/full", folder.file("full.svg"));
  expect(1, "No space left", "inspect " + package + " --graph " + folder.file("full.svg"));
  // Standard output, too.
  for (const std::string &arguments :
       {package + dims, "inspect " + package, "inspect --json " + package, "profile " + package + dims,
        "compare " + package + " " + package + dims, std::string("--help"), std::string("--version")}) {
    int status = std::system((std::string(DS_RUN) + " " + arguments + " >/dev/full 2>/dev/null").c_str());
    EXPECT_EQ(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 1) << arguments;
  }
  // A limit on the size of files is a full disk of another kind; nothing remains of the file.
  for (const char *shell : {"ulimit -f 1; ", ""}) {
    std::string command = std::string(shell) + DS_RUN + " " + package +
                          " --dim rows=1000 --dim n=4 --seed=1 --output " + folder.file("o.npz") + " 2>" +
                          folder.file("errors");
    int status = std::system(command.c_str());
    EXPECT_EQ(WIFEXITED(status) ? WEXITSTATUS(status) : -1, *shell ? 1 : 0) << command;
    std::string text = readFile(folder.file("errors"));
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), *shell ? 1 : 0) << text;
    EXPECT_EQ(std::filesystem::exists(folder.file("o.npz")), *shell == 0);
  }
  size_t files = 0;
  for (const auto &item : std::filesystem::directory_iterator(folder.path())) {
    EXPECT_EQ(item.path().string().find(".tmp"), std::string::npos) << item.path();
    ++files;
  }
  EXPECT_EQ(files, 5u); // the package, the folder, the link, o.npz and errors
}

TEST_F(DsRun, FilesFollowTheUmaskAndLinksAreFollowed) {
  std::string call = "--input 'x=[[1,1,1,1]]' --output ", target = folder.file("target.npz"),
              link = folder.file("l.npz");
  for (const char *mask : {"022", "077", "002"}) {
    std::filesystem::remove(target);
    std::string command = std::string("umask ") + mask + "; " + DS_RUN + " " + package + " " + call + target;
    ASSERT_EQ(std::system(command.c_str()), 0);
    unsigned mode = static_cast<unsigned>(std::filesystem::status(target).permissions());
    EXPECT_EQ(mode, 0666u & ~static_cast<unsigned>(std::strtoul(mask, nullptr, 8))) << mask;
  }
  std::filesystem::create_symlink("target.npz", link);
  writeFile(target, "old");
  expect(0, "", package + " " + call + link);
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_EQ(readNpz(target).size(), 1u);
}

// Peak memory of ds-run itself, in bytes.
double peakOf(const std::string &arguments, int &code) {
  pid_t child = fork();
  if (child == 0) {
    execl("/bin/sh", "sh", "-c", ("exec " + std::string(DS_RUN) + " " + arguments + " >/dev/null").c_str(), nullptr);
    _exit(127);
  }
  int status = -1;
  rusage usage{};
  wait4(child, &status, 0, &usage);
  code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return static_cast<double>(usage.ru_maxrss) * 1024;
}

TEST_F(DsRun, SavesAndRestoresLargeStatesWithoutACopy) {
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
  GTEST_SKIP() << "sanitizers take memory of their own";
#endif
#endif
  constexpr double bytes = 256 << 20;
  auto manifest = testManifest();
  for (auto &entry : manifest["variants"][0]["entries"])
    for (auto &state : entry["states"])
      if (state["name"] == "total") {
        state["shape"] = {"67108864"};
        state["initial"] = nullptr;
      }
  std::string large = writePackage(folder.path(), manifest, "large.dsp"), file = folder.file("s.npz");
  std::string call = large + " --entry count --input 'x=[1,2,3,4]' --threads=1";
  int code = -1;
  double peak = peakOf(call + " --state-out " + file, code);
  EXPECT_EQ(code, 0);
  EXPECT_GT(peak, bytes);
  EXPECT_LT(peak, 1.3 * bytes) << "saving";
  EXPECT_GT(std::filesystem::file_size(file), static_cast<uintmax_t>(bytes));
  peak = peakOf(call + " --state-in " + file + " --state-out " + file, code);
  EXPECT_EQ(code, 0);
  EXPECT_GT(peak, bytes);
  EXPECT_LT(peak, 1.3 * bytes) << "restoring";
  expect(0, "3 6 9 12", call + " --state-in " + file);
}

TEST_F(DsRun, SavesAndRestoresStates) {
  std::string file = folder.file("state.npz"), call = package + " --entry count --input 'x=[1,1,1,1]'";
  expect(0, "11 21 31 41", call + " --state-out " + file);
  expect(0, "12 22 32 42", call + " --state-in " + file + " --state-out " + file);
  expect(0, "13 23 33 43", call + " --state-in " + file);
}

TEST_F(DsRun, RunsRanksOnTheirOwnData) {
  for (int rank = 0; rank < 2; ++rank) {
    std::vector<NamedTensor> inputs;
    inputs.push_back({"x", parseValue(rank ? "[10, 20]" : "[1, 2]", ElementType::F32)});
    writeNpz(folder.file("in" + std::to_string(rank) + ".npz"), inputs);
  }
  std::string call = package + " --entry reduce -n 2 --transport=threads --inputs " + folder.file("in{rank}.npz");
  expect(0, "rank 1 y: f32 [2]", call);
  expect(0, "", call + " --output " + folder.file("out{rank}.npz"));
  for (int rank = 0; rank < 2; ++rank) {
    auto outputs = readNpz(folder.file("out" + std::to_string(rank) + ".npz"));
    EXPECT_EQ(loadDouble(ElementType::F32, outputs[0].tensor.data(), 1), 22);
  }
  expect(1, "rank 1: entry 'skipped'", package + " --entry skipped -n 2 --transport=threads --dim n=2");
}

TEST_F(DsRun, DoesNotWaitForARankThatHangs) {
  expect(1, "rank 0: entry 'stuck': all_reduce 'grad' at 'grad': rank 1 did not arrive in 0.3 s",
         package + " --entry stuck -n 2 --transport=threads --dim n=2 --timeout 0.3");
}

TEST_F(DsRun, ComparesWithATestDataFolder) {
  std::string data = folder.file("test_data_set_0");
  std::filesystem::create_directory(data);
  writeTensorProto(data + "/input_0.pb", "x", parseValue("[[1, 1, 1, 1]]", ElementType::F32));
  auto expectOutput = [&](const Tensor &tensor) { writeTensorProto(data + "/output_0.pb", "y", tensor); };
  expectOutput(parseValue("[[2, 3, 4, 5]]", ElementType::F32));
  expect(0, "y: max abs 0, max rel 0, max ulp 0, cosine 1, snr inf dB: ok", "compare " + package + " " + data);
  expectOutput(parseValue("[[2, 3, 4, 5.1]]", ElementType::F32));
  expect(1, "1 of 4 outside, first at 3: found 5, expected 5.1", "compare " + package + " " + data);
  expect(0, ": ok", "compare " + package + " " + data + " --atol=0.2");
  Tensor nan = parseValue("[[2, 3, 4, 5]]", ElementType::F32);
  storeDouble(ElementType::F32, nan.data(), 3, std::nan(""));
  expectOutput(nan);
  expect(1, "max ulp inf", "compare " + package + " " + data + " --atol=1e30 --rtol=1e30");
  expectOutput(parseValue("[[2, 3, 4, 5]]", ElementType::F64));
  expect(1, "type differs, found f32, expected f64", "compare " + package + " " + data);
  expectOutput(parseValue("[2, 3, 4, 5]", ElementType::F32));
  expect(1, "shape differs, found [1, 4], expected [4]", "compare " + package + " " + data);
  std::filesystem::remove(data + "/output_0.pb");
  expect(1, "found 0 files output_*.pb, expected 1", "compare " + package + " " + data);
}

TEST_F(DsRun, ComparesPackagesBlockByBlock) {
  std::string other = writePackage(folder.path(), testManifest(), "other.dsp"), dims = " --dim rows=2 --dim n=4";
  expect(0, "2 blocks compared, none differs", "compare " + package + " " + other + dims);
  // Blocks go by name: those without one are not compared, those without a partner are listed.
  auto manifest = testManifest();
  Json &launches = manifest["variants"][0]["entries"][0]["launches"];
  launches[0]["results"][0]["value"] = "renamed";
  launches[1]["results"][0]["value"] = "";
  std::string renamed = writePackage(folder.path(), manifest, "renamed.dsp");
  expect(0,
         "block hidden: only in " + package + "\nblock y: only in " + package + "\nblock renamed: only in " + renamed +
             "\n0 blocks compared, none differs\ny: max abs 0, max rel 0, max ulp 0, cosine 1, snr inf dB: ok\n",
         "compare " + package + " " + renamed + dims);
  std::string unnamed = writePackage(
      folder.path(),
      [&] {
        launches[0]["results"][0]["value"] = "";
        return manifest;
      }(),
      "unnamed.dsp");
  expect(0, "0 blocks compared", "compare " + unnamed + " " + unnamed + dims);
  manifest = testManifest();
  manifest["variants"][0]["entries"][0]["outputs"][0]["name"] = "z";
  std::string z = writePackage(folder.path(), manifest, "z.dsp");
  expect(1, "y: only in " + package + ": differs\nz: only in " + z + ": differs\n",
         "compare " + package + " " + z + dims);
  std::string weights = readFile(other + "/weights.bin");
  weights[2] ^= 0x40;
  writeFile(other + "/weights.bin", weights);
  writeChecksums(other);
  expect(1, "first block that differs: hidden (2 of 2 differ)", "compare " + package + " " + other + dims);
  expect(2, "dimension 'n' has no value", "compare " + package + " " + other + " --dim rows=2");
}

TEST_F(DsRun, MeasuresAgainstCeilings) {
  std::string file = folder.file("bench.json");
  expect(0, "roofline", "bench " + package + " --dim rows=8 --dim n=4 --duration=0.05 --threads=1 --json " + file);
  auto json = nlohmann::json::parse(readFile(file));
  for (const char *key : {"min", "median", "mean", "p90", "p95", "p99"})
    EXPECT_GT(json["latency_ms"][key].get<double>(), 0) << key;
  EXPECT_EQ(json["bytes"], 16 + 2 * 8 * 4 * 4); // one constant, input, output
  EXPECT_EQ(json["flops"], 2 * 8 * 4);
  for (const char *key : {"stream_gbps", "working_set_gbps", "cache_gbps", "f32_gflops", "bf16_gflops", "int8_gops",
                          "int8_pairs_gops", "int16_gops", "amx_bf16_gflops", "amx_int8_gops"})
    ASSERT_TRUE(json["ceilings"].contains(key)) << key;
  for (const char *key : {"stream_gbps", "working_set_gbps", "cache_gbps", "f32_gflops"})
    EXPECT_GT(json["ceilings"][key].get<double>(), 0) << key;
  EXPECT_GE(json["rounds"].get<int>(), 3);
  double flops = 0;
  for (const auto &kernel : json["kernels"]) {
    EXPECT_GT(kernel["ms"].get<double>(), 0);
    EXPECT_GT(kernel["roofline_ms"].get<double>(), 0);
    flops += kernel["flops"].get<double>();
  }
  EXPECT_EQ(flops, json["flops"].get<double>());
  EXPECT_NEAR(json["roofline_fraction"].get<double>(),
              json["roofline_ms"].get<double>() / json["latency_ms"]["median"].get<double>(), 1e-12);
}

TEST_F(DsRun, InspectsAsTextAndJson) {
  expect(0, "launches: 2 of 2 kernels: add x1 scale_rows x1", "inspect " + package);
  expect(0, "bytes depend on n, rows (give --dim)", "inspect " + package);
  std::string svg = folder.path() + "/graph.svg", dot = folder.path() + "/graph.dot";
  expect(0, "launches", "inspect " + package + " --graph " + svg);
  expect(0, "launches", "inspect " + package + " --entry scale --graph " + dot);
  EXPECT_TRUE(std::filesystem::exists(svg));
  EXPECT_TRUE(std::filesystem::exists(dot));
  expect(2, "expected a file FILE.svg or FILE.dot", "inspect " + package + " --graph graph.png");
  expect(0, "128 bytes, 128 alive at once", "inspect " + package + " --dim rows=8 --dim n=4");
  expect(0, "config: quantize = none (default)", "inspect " + package);
  auto json = nlohmann::json::parse(execute("inspect --json " + package).text);
  EXPECT_EQ(json["variants"][0]["entries"][6]["collectives"][0]["site"], "grad");
  expect(2, "no dimension 'cols'", "inspect " + package + " --dim cols=1");
}

TEST_F(DsRun, InspectsPackagesForOtherProcessors) {
  auto manifest = testManifest();
  manifest["variants"][0]["features"] = {"sse2", "neon9000"};
  std::string foreign = writePackage(folder.path(), manifest, "foreign.dsp");
  expect(0, "this processor lacks neon9000", "inspect " + foreign);
  expect(1, "x86-64 needs neon9000", foreign + " --dim rows=1 --dim n=4");
}

TEST_F(DsRun, ProfilesLaunches) {
  std::string file = folder.file("trace.json");
  expect(0, "scale_rows (/layer/Mul)",
         "profile " + package + " --dim rows=2 --dim n=4 --duration=0.05 --threads=1 --trace " + file);
  auto trace = nlohmann::json::parse(readFile(file));
  ASSERT_EQ(trace["traceEvents"].size(), 2u);
  EXPECT_EQ(trace["traceEvents"][0]["ph"], "X");
}

} // namespace
