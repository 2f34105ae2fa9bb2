#include "test/unit/runtime/PackageBuilder.h"

#include "runtime/core/Checksums.h"
#include "runtime/core/Package.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>

using namespace ds;
using namespace ds::test;
namespace fs = std::filesystem;

namespace {

// Thorough where it is fast enough; sanitizers look at every n-th byte.
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr size_t stride = 37;
#else
constexpr size_t stride = 1;
#endif
#else
constexpr size_t stride = 1;
#endif

std::string loadError(const std::string &package, LoadOptions options = {}) {
  return errorOf([&] { Package::load(package, options); });
}

TEST(Checksums, KnowsTheVectorOfTheStandard) {
  EXPECT_EQ(sha256Hex("abc", 3), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256Hex(nullptr, 0), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

TEST(Package, Loads) {
  TemporaryFolder folder;
  auto package = Package::load(writePackage(folder.path()));
  EXPECT_EQ(package->variant().mcpu, "x86-64");
  EXPECT_EQ(package->entryIndex("scale"), 1u);
  EXPECT_EQ(reinterpret_cast<const float *>(package->constant(1))[3], 40);
  EXPECT_NE(errorOf([&] { package->entryIndex("nothing"); }).find("no entry 'nothing', expected one of main, scale"),
            std::string::npos);
}

TEST(Package, RefusesEveryFlippedByteAndNamesTheFile) {
  TemporaryFolder folder;
  std::string package = writePackage(folder.path());
  LoadOptions options;
  options.openCode = false;
  options.threads = 1;
  for (const char *name : {"SHA256SUMS", "manifest.json", "code-x86-64.so", "weights.bin"}) {
    std::string path = package + "/" + name, bytes = readFile(path);
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary); // in place: truncating is slow
    auto put = [&](size_t at, char byte) { file.seekp(static_cast<std::streamoff>(at)).put(byte).flush(); };
    for (size_t i = 0; i < bytes.size(); i += stride) {
      put(i, static_cast<char>(bytes[i] ^ (i % 2 ? 0x01 : 0x20)));
      std::string error = loadError(package, options);
      ASSERT_NE(error.find(name), std::string::npos) << name << " byte " << i << ": " << error;
      put(i, bytes[i]);
    }
  }
  EXPECT_EQ(loadError(package), "");
}

TEST(Package, NamesTheChunkAndItsConstants) {
  TemporaryFolder folder;
  std::string package = writePackage(folder.path()), weights = readFile(package + "/weights.bin");
  weights[65] ^= 1;
  writeFile(package + "/weights.bin", weights);
  std::string error = loadError(package);
  EXPECT_NE(error.find("weights.bin:64+64: checksum mismatch, found "), std::string::npos) << error;
  EXPECT_NE(error.find("(holds start)"), std::string::npos) << error;
  LoadOptions trusting;
  trusting.verify = false;
  EXPECT_EQ(loadError(package, trusting), "");
}

TEST(Package, RefusesEveryTruncation) {
  TemporaryFolder folder;
  std::string package = writePackage(folder.path());
  for (const char *name : {"SHA256SUMS", "manifest.json", "code-x86-64.so", "weights.bin"}) {
    std::string path = package + "/" + name, bytes = readFile(path);
    for (size_t length : {size_t(0), size_t(1), bytes.size() / 2, bytes.size() - 1}) {
      writeFile(path, bytes.substr(0, length));
      std::string error = loadError(package);
      EXPECT_NE(error.find(name), std::string::npos) << name << " of " << length << " bytes: " << error;
    }
    writeFile(path, bytes);
    fs::remove(path);
    EXPECT_NE(loadError(package).find(std::string(name) + ": missing"), std::string::npos) << loadError(package);
    writeFile(path, bytes);
  }
}

TEST(Package, RefusesTruncatedFilesWithoutChecksumsToo) {
  TemporaryFolder folder;
  std::string package = writePackage(folder.path());
  LoadOptions trusting;
  trusting.verify = false;
  for (const char *name : {"manifest.json", "code-x86-64.so", "weights.bin"}) {
    std::string path = package + "/" + name, bytes = readFile(path);
    for (size_t length : {size_t(0), size_t(40), size_t(70)}) {
      writeFile(path, bytes.substr(0, length));
      EXPECT_NE(loadError(package, trusting), "") << name << " of " << length << " bytes";
    }
    writeFile(path, bytes);
  }
}

TEST(Package, RefusesAdditionalFiles) {
  TemporaryFolder folder;
  std::string package = writePackage(folder.path());
  writeFile(package + "/extra", "");
  EXPECT_NE(loadError(package).find("extra: additional file"), std::string::npos);
  fs::remove(package + "/extra");
  fs::create_directory(package + "/folder");
  EXPECT_NE(loadError(package).find("folder: additional file"), std::string::npos);
}

TEST(Package, RefusesWhatIsNoPackage) {
  TemporaryFolder folder;
  EXPECT_NE(loadError(folder.path() + "/none").find("not a package directory"), std::string::npos);
  EXPECT_NE(loadError(folder.path()).find("manifest.json: missing"), std::string::npos);
}

TEST(Checksums, RefusesGapsOverlapsAndBadNames) {
  std::string digest(64, 'a');
  auto error = [&](std::string text) {
    text += sha256Hex(text.data(), text.size()) + "  SHA256SUMS\n";
    return errorOf([&] { parseChecksums(text); });
  };
  EXPECT_EQ(error(digest + "  weights.bin:0+64\n" + digest + "  weights.bin:64+64\n"), "");
  EXPECT_NE(error(digest + "  weights.bin:0+64\n" + digest + "  weights.bin:65+64\n").find("do not tile"),
            std::string::npos);
  EXPECT_NE(error(digest + "  weights.bin:64+64\n").find("do not tile"), std::string::npos);
  EXPECT_NE(error(digest + "  weights.bin:0+8388609\n").find("chunk too large"), std::string::npos);
  EXPECT_NE(error(digest + "  a\n" + digest + "  a\n").find("listed twice"), std::string::npos);
  EXPECT_NE(error(digest + "  ../a\n").find("not a file name"), std::string::npos);
  EXPECT_NE(error(std::string(64, 'A') + "  a\n").find("expected '<64 hex digits>"), std::string::npos);
  EXPECT_NE(error(digest + " a\n").find("line 1"), std::string::npos);
}

TEST(Package, RefusesMissingFeaturesByName) {
  TemporaryFolder folder;
  auto manifest = testManifest();
  auto wide = manifest["variants"][0];
  wide["mcpu"] = "x86-64-v4";
  wide["features"] = {"sse2", "avx512f", "avx512_vnni"};
  wide["vector_bits"] = 512;
  wide["code"] = "code-x86-64-v4.so";
  manifest["variants"].push_back(wide);
  std::string package = writePackage(folder.path(), manifest);

  CpuFeatures all({"sse2", "avx512f", "avx512vnni"}), old({"sse2"}), none({"mmx"});
  LoadOptions options;
  options.features = &all;
  EXPECT_EQ(Package::load(package, options)->variant().mcpu, "x86-64-v4");
  options.mcpu = "x86-64";
  EXPECT_EQ(Package::load(package, options)->variant().mcpu, "x86-64");
  options.mcpu = "";
  options.features = &old;
  EXPECT_EQ(Package::load(package, options)->variant().mcpu, "x86-64");
  options.mcpu = "x86-64-v4";
  EXPECT_NE(loadError(package, options).find("x86-64-v4 needs avx512f, avx512_vnni"), std::string::npos);
  options.mcpu = "z80";
  EXPECT_NE(loadError(package, options).find("no variant 'z80', expected one of x86-64, x86-64-v4"), std::string::npos);
  options.mcpu = "";
  options.features = &none;
  EXPECT_NE(loadError(package, options).find("x86-64 needs sse2, x86-64-v4 needs sse2, avx512f, avx512_vnni"),
            std::string::npos);
}

TEST(Package, RefusesCodeThatDoesNotFitTheManifest) {
  TemporaryFolder folder;
  auto manifest = testManifest();
  manifest["variants"][0]["entries"][0]["name"] = "other";
  EXPECT_NE(loadError(writePackage(folder.path(), manifest)).find("has no entry 'other'"), std::string::npos);
}

// The loader takes a library under a path that it knows for the one that it has open.
TEST(Package, RunsItsOwnCodeWhereAnotherOneLay) {
  TemporaryFolder folder;
  std::string path = writePackage(folder.path());
  LoadedCode first = PackageFiles(path).openCode("code-x86-64.so");
  fs::rename(path, folder.file("old.dsp"));
  writePackage(folder.path());
  LoadedCode second = PackageFiles(path).openCode("code-x86-64.so");
  fs::path here = fs::current_path();
  fs::create_directory(folder.file("elsewhere"));
  fs::rename(folder.file("old.dsp"), folder.file("elsewhere/model.dsp"));
  fs::current_path(folder.path());
  LoadedCode third = PackageFiles("model.dsp").openCode("code-x86-64.so");
  fs::current_path(folder.file("elsewhere"));
  LoadedCode fourth = PackageFiles("model.dsp").openCode("code-x86-64.so");
  fs::current_path(here);
  auto query = [](const LoadedCode &code) { return code.symbol("ds_package_query"); };
  ASSERT_NE(query(first), nullptr);
  EXPECT_NE(query(first), query(second));
  EXPECT_EQ(query(second), query(third)); // one file is open once
  EXPECT_EQ(query(first), query(fourth));
}

TEST(CpuFeatures, KnowsBothSpellings) {
  CpuFeatures cpu({"avx512_vnni", "sse4_1", "pni", "abm"});
  EXPECT_TRUE(cpu.has("avx512vnni"));
  EXPECT_TRUE(cpu.has("sse4.1"));
  EXPECT_TRUE(cpu.has("sse3"));
  EXPECT_TRUE(cpu.has("lzcnt"));
  EXPECT_EQ(cpu.missing({"avx2", "sse3"}), (std::vector<std::string>{"avx2"}));
}

} // namespace
