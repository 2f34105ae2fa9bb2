// The folder of finished packages: what it gives back, what it refuses, what it drops.
#include "tools/ds-opt/PackageCache.h"

#include "codegen/TemporaryFolder.h"
#include "tools/ds-opt/ContentHash.h"

#include <chrono>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <thread>
#include <unistd.h>

namespace fs = std::filesystem;

namespace deepstride {
namespace {

std::string read(const fs::path &path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write(const fs::path &path, const std::string &text) { std::ofstream(path, std::ios::binary) << text; }

std::string keyOf(char digit) { return std::string(64, digit); }

class PackageCacheTest : public testing::Test {
protected:
  static fs::path newFolder() {
    std::string name = (fs::temp_directory_path() / "ds-package-cache-XXXXXX").string();
    return mkdtemp(name.data());
  }
  PackageCacheTest() { fs::create_directory(root / "cache"); }
  ~PackageCacheTest() override { fs::remove_all(root); }

  /// Files of a package under the name of a package, written before that name was given.
  fs::path package(const std::string &name, const std::string &weights) {
    fs::path growing = root / (name + ".growing");
    fs::create_directory(growing);
    write(growing / "manifest.json", "{}");
    std::string digest(64, '0');
    write(growing / "SHA256SUMS", digest + "  code-x.so\n" + digest + "  manifest.json\n" + digest +
                                      "  weights.bin:0+5\n" + digest + "  weights.bin:5+2\n" + digest +
                                      "  SHA256SUMS\n");
    write(growing / "code-x.so", "code");
    fs::permissions(growing / "code-x.so", fs::perms::owner_all);
    write(growing / "weights.bin", weights);
    fs::rename(growing, root / name);
    return root / name;
  }

  std::string keep(PackageCache &cache, const std::string &key, const fs::path &package, CachedPackage facts = {}) {
    int folder = open(package.c_str(), O_RDONLY | O_DIRECTORY);
    std::string reason = cache.keep(key, facts, folder);
    close(folder);
    return reason;
  }

  std::optional<CachedPackage> deliver(PackageCache &cache, const std::string &key, const std::string &name,
                                       const std::string &input = "") {
    return cache.deliver(key, input, (root / name).string(),
                         [&](const std::string &file) -> std::optional<std::string> {
                           auto found = digests.find(file);
                           return found == digests.end() ? std::nullopt : std::optional<std::string>(found->second);
                         });
  }

  std::vector<fs::path> entries() {
    std::vector<fs::path> found;
    for (const auto &item : fs::directory_iterator(root / "cache"))
      if (item.is_directory())
        found.push_back(item.path());
    return found;
  }

  fs::path root = newFolder();
  std::map<std::string, std::string> digests;
  PackageCache cache{(root / "cache").string(), 1 << 20};
};

TEST_F(PackageCacheTest, DigestsTellFilesApart) {
  std::string large(size_t(9) << 20, 'a'), other = large;
  other.back() = 'b';
  auto digest = [&](const std::string &text, unsigned threads) {
    write(root / "file", text);
    int file = open((root / "file").c_str(), O_RDONLY);
    auto result = fileDigest(file, threads);
    close(file);
    return result.value_or("");
  };
  EXPECT_EQ(digest(large, 1), digest(large, 4));
  EXPECT_NE(digest(large, 4), digest(other, 4));
  EXPECT_NE(digest("", 1), digest(std::string(1, '\0'), 1));
  // BLAKE3's own test vector for the empty text.
  EXPECT_EQ(contentDigest(""), "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262");
  int folder = open(root.c_str(), O_RDONLY);
  EXPECT_FALSE(fileDigest(folder).has_value());
  close(folder);
}

TEST_F(PackageCacheTest, GivesBackWhatItKept) {
  fs::path first = package("first", "weights");
  EXPECT_EQ(keep(cache, keyOf('a'), first, {{}, "m.onnx", "m.onnx: warning: odd\n"}), "");
  auto found = deliver(cache, keyOf('a'), "second", "m.onnx");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->diagnostics, "m.onnx: warning: odd\n");
  for (const char *name : {"manifest.json", "SHA256SUMS", "code-x.so", "weights.bin"})
    EXPECT_EQ(read(root / "second" / name), read(first / name));
  EXPECT_FALSE(fs::exists(root / "second/entry.json"));
  EXPECT_NE(fs::status(root / "second/code-x.so").permissions() & fs::perms::owner_exec, fs::perms::none);
  EXPECT_NE(fs::status(root / "second/weights.bin").permissions() & fs::perms::owner_write, fs::perms::none);
  EXPECT_EQ(fs::hard_link_count(root / "second/weights.bin"), 1u);
  EXPECT_FALSE(deliver(cache, keyOf('b'), "third"));
  EXPECT_FALSE(deliver(cache, keyOf('a'), "third", "./m.onnx")) << "the diagnostics name another path";
  EXPECT_FALSE(fs::exists(root / "third"));
  EXPECT_TRUE(fs::exists(root / "cache/CACHEDIR.TAG"));
}

TEST_F(PackageCacheTest, ReplacesAndLeavesOutputs) {
  keep(cache, keyOf('a'), package("first", "weights"));
  package("output", "other weights");
  ASSERT_TRUE(deliver(cache, keyOf('a'), "output"));
  EXPECT_EQ(read(root / "output/weights.bin"), "weights");
  struct stat before, after;
  stat((root / "output/weights.bin").c_str(), &before);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  ASSERT_TRUE(deliver(cache, keyOf('a'), "output"));
  stat((root / "output/weights.bin").c_str(), &after);
  EXPECT_EQ(before.st_ino, after.st_ino) << "a package that is there already is not written again";
  EXPECT_NE(before.st_mtim.tv_nsec, after.st_mtim.tv_nsec) << "but is as new as one that was";
  fs::create_directory(root / "foreign");
  write(root / "foreign/diary", "dear");
  EXPECT_FALSE(deliver(cache, keyOf('a'), "foreign"));
  EXPECT_EQ(read(root / "foreign/diary"), "dear");
  for (const auto &item : fs::directory_iterator(root))
    EXPECT_EQ(item.path().string().find(".tmp-"), std::string::npos) << item.path();
}

TEST_F(PackageCacheTest, OutputsAreApartFromTheCache) {
  fs::path first = package("first", "weights");
  keep(cache, keyOf('a'), first);
  ASSERT_TRUE(deliver(cache, keyOf('a'), "second"));
  write(first / "weights.bin", "WEIGHTS");
  write(root / "second/weights.bin", "WEIGHTS");
  ASSERT_TRUE(deliver(cache, keyOf('a'), "third"));
  EXPECT_EQ(read(root / "third/weights.bin"), "weights");
  ASSERT_TRUE(deliver(cache, keyOf('a'), "second"));
  EXPECT_EQ(read(root / "second/weights.bin"), "weights");
}

TEST_F(PackageCacheTest, ComparesDependencies) {
  keep(cache, keyOf('a'), package("one", "1"), {{{"w.bin", "one"}}, "", ""});
  keep(cache, keyOf('a'), package("two", "2"), {{{"w.bin", "two"}}, "", ""});
  EXPECT_EQ(entries().size(), 2u);
  EXPECT_FALSE(deliver(cache, keyOf('a'), "out"));
  digests["w.bin"] = "two";
  ASSERT_TRUE(deliver(cache, keyOf('a'), "out"));
  EXPECT_EQ(read(root / "out/weights.bin"), "2");
  digests["w.bin"] = "one";
  ASSERT_TRUE(deliver(cache, keyOf('a'), "out"));
  EXPECT_EQ(read(root / "out/weights.bin"), "1");
  digests["w.bin"] = "three";
  EXPECT_FALSE(deliver(cache, keyOf('a'), "out"));
}

TEST_F(PackageCacheTest, DropsDamagedEntries) {
  auto damage = [&](const std::string &name, auto change) {
    keep(cache, keyOf('a'), package("p-" + name + std::to_string(entries().size()), "weights"));
    ASSERT_EQ(entries().size(), 1u);
    fs::path file = entries()[0] / name;
    fs::permissions(file, fs::perms::owner_all);
    change(file);
    EXPECT_FALSE(deliver(cache, keyOf('a'), "out")) << name;
    EXPECT_FALSE(fs::exists(root / "out"));
    EXPECT_TRUE(entries().empty()) << name;
    fs::remove_all(root / ("p-" + name + "0"));
  };
  for (const char *name : {"weights.bin", "code-x.so", "manifest.json", "SHA256SUMS", "entry.json"}) {
    damage(name, [](const fs::path &file) {
      std::string text = read(file);
      text[text.size() / 2] ^= 1;
      write(file, text);
    });
    damage(name, [](const fs::path &file) { fs::resize_file(file, fs::file_size(file) - 1); });
    damage(name, [](const fs::path &file) { fs::remove(file); });
    damage(name, [](const fs::path &file) {
      fs::remove(file);
      fs::create_symlink("/etc/passwd", file);
    });
  }
}

TEST_F(PackageCacheTest, HoldsNoMoreThanItsBound) {
  PackageCache small((root / "cache").string(), 5000);
  for (char digit : {'a', 'b', 'c', 'd'}) {
    EXPECT_EQ(keep(small, keyOf(digit), package(std::string(1, digit), std::string(1200, digit))), "");
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    if (digit == 'b') {
      EXPECT_TRUE(deliver(small, keyOf('a'), "out")); // so that b is what was used longest ago
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  EXPECT_EQ(entries().size(), 2u);
  EXPECT_FALSE(deliver(small, keyOf('b'), "out"));
  EXPECT_FALSE(deliver(small, keyOf('a'), "out"));
  EXPECT_TRUE(deliver(small, keyOf('c'), "out"));
  EXPECT_TRUE(deliver(small, keyOf('d'), "out"));
  EXPECT_EQ(keep(small, keyOf('e'), package("e", std::string(5000, 'e'))), "");
  EXPECT_FALSE(deliver(small, keyOf('e'), "out")) << "larger than the whole cache";
  EXPECT_EQ(entries().size(), 2u) << "and nothing had to go for it";
}

TEST_F(PackageCacheTest, SparesWhatIsInUse) {
  PackageCache small((root / "cache").string(), 3000);
  keep(small, keyOf('a'), package("a", std::string(1200, 'a')));
  int reader = open(entries()[0].c_str(), O_RDONLY | O_DIRECTORY);
  ASSERT_EQ(flock(reader, LOCK_SH), 0);
  EXPECT_EQ(keep(small, keyOf('b'), package("b", std::string(1200, 'b'))), "");
  EXPECT_TRUE(deliver(small, keyOf('a'), "out"));
  EXPECT_FALSE(deliver(small, keyOf('b'), "out"));
  close(reader);
  EXPECT_EQ(keep(small, keyOf('b'), root / "b"), "");
  EXPECT_TRUE(deliver(small, keyOf('b'), "out"));
}

TEST_F(PackageCacheTest, KeepsNothingThatWasWrittenTo) {
  fs::path first = package("first", "weights");
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  write(first / "weights.bin", "changed");
  EXPECT_EQ(keep(cache, keyOf('a'), first), "");
  EXPECT_FALSE(deliver(cache, keyOf('a'), "out"));
}

/// Another process puts its package in the place of ours, and removes ours while it is being kept.
TEST_F(PackageCacheTest, KeepsNothingThatIsBeingRemoved) {
  for (const char *name : {"manifest.json", "SHA256SUMS", "code-x.so", "weights.bin"}) {
    fs::path first = package(std::string("without-") + name, "weights");
    fs::remove(first / name);
    EXPECT_EQ(keep(cache, keyOf('a'), first), "");
    EXPECT_TRUE(entries().empty()) << name;
  }
}

TEST_F(PackageCacheTest, RemovesWhatKilledProcessesLeft) {
  keep(cache, keyOf('a'), package("first", "weights"));
  fs::create_directory(root / "cache/new-0123abcd");
  write(root / "cache/new-0123abcd/weights.bin", "half");
  write(root / "cache/diary", "dear");
  keep(cache, keyOf('b'), package("second", "weights"));
  EXPECT_FALSE(fs::exists(root / "cache/new-0123abcd"));
  EXPECT_EQ(read(root / "cache/diary"), "dear");
}

TEST_F(PackageCacheTest, SaysWhyItCannotKeep) {
  write(root / "file", "");
  PackageCache none((root / "file/cache").string(), 1 << 20);
  EXPECT_EQ(keep(none, keyOf('a'), package("first", "weights")), "Not a directory");
  EXPECT_FALSE(deliver(none, keyOf('a'), "out"));
}

TEST_F(PackageCacheTest, ServesManyAtOnce) {
  PackageCache small((root / "cache").string(), 3000);
  std::atomic<int> wrong{0}, hits{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20; ++i) {
        char digit = static_cast<char>('a' + (t + i) % 3);
        std::string mine = std::to_string(t) + "-" + std::to_string(i), content(1200, digit);
        keep(small, keyOf(digit), package("p" + mine, content));
        if (small.deliver(keyOf(digit), "", (root / ("o" + mine)).string(), [](auto &) { return std::nullopt; })) {
          ++hits;
          wrong += read(root / ("o" + mine) / "weights.bin") != content;
        }
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(hits, 0);
}

} // namespace
} // namespace deepstride
