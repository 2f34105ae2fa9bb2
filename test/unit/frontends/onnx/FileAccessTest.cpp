// Every way out of the model's folder is refused, by the kernel's resolution and by our own walk.

#include "test/unit/frontends/onnx/TemporaryFolder.h"

#include <sys/stat.h>

namespace fs = std::filesystem;
using namespace deepstride::onnx;

namespace {

class OpenBelow : public testing::TestWithParam<Beneath> {
protected:
  OpenBelow() {
    folder.write("outside.bin", "secret");
    folder.write("model/weights/w.bin", "weights");
  }

  /// The content of what is opened, or the message of the refusal.
  std::string open(const std::string &location) {
    auto file = openBelow(folder / "model", location, GetParam());
    if (!file)
      return llvm::toString(file.takeError());
    auto size = file->size();
    EXPECT_TRUE(bool(size));
    auto bytes = file->read(0, *size);
    return bytes ? *bytes : llvm::toString(bytes.takeError());
  }

  TemporaryFolder folder;
};

TEST_P(OpenBelow, opens_files_below_the_folder) {
  EXPECT_EQ(open("weights/w.bin"), "weights");
  EXPECT_EQ(open("./weights//./w.bin"), "weights");
}

TEST_P(OpenBelow, refuses_parent_folders) {
  expectContains(open("../outside.bin"), "found '..' in '../outside.bin'");
  expectContains(open("weights/../../outside.bin"), "found '..'");
  expectContains(open("weights/.."), "found '..'");
}

TEST_P(OpenBelow, refuses_absolute_paths) {
  expectContains(open(folder / "model/weights/w.bin"), "found the absolute path");
}

TEST_P(OpenBelow, refuses_symbolic_links_at_any_component) {
  fs::create_symlink(folder / "outside.bin", folder / "model/link.bin");
  fs::create_symlink("weights/w.bin", folder / "model/inside.bin");
  fs::create_directory_symlink("weights", folder / "model/folder");
  expectContains(open("link.bin"), "expected a file reached without symbolic links");
  expectContains(open("inside.bin"), "expected a file reached without symbolic links");
  expectContains(open("folder/w.bin"), "expected a file reached without symbolic links");
}

TEST_P(OpenBelow, refuses_hard_links) {
  fs::create_hard_link(folder / "outside.bin", folder / "model/hard.bin");
  expectContains(open("hard.bin"), "found 2 hard links");
}

TEST_P(OpenBelow, refuses_what_is_no_regular_file) {
  ASSERT_EQ(::mkfifo((folder / "model/pipe").c_str(), 0600), 0);
  expectContains(open("pipe"), "found a pipe, socket or device");
  expectContains(open("weights"), "found a folder");
  expectContains(open("weights/"), "found the folder");
  expectContains(open("."), "found the folder");
}

TEST_P(OpenBelow, refuses_names_that_are_none) {
  expectContains(open(""), "expected a file name, found nothing");
  expectContains(open(std::string("w\0.bin", 6)), "found a zero byte");
  expectContains(open("missing.bin"), "cannot open 'missing.bin': No such file");
  expectContains(open("weights/w.bin/x"), "cannot open");
  expectContains(open(std::string(10000, 'a')), "File name too long");
}

INSTANTIATE_TEST_SUITE_P(Ways, OpenBelow, testing::Values(Beneath::Kernel, Beneath::Walk),
                         [](const auto &info) { return info.param == Beneath::Kernel ? "kernel" : "walk"; });

TEST(FolderOf, a_bare_name_is_in_the_current_folder) {
  EXPECT_EQ(folderOf("m.onnx"), ".");
  EXPECT_EQ(folderOf("./m.onnx"), ".");
  EXPECT_EQ(folderOf("a/b/m.onnx"), "a/b");
  EXPECT_EQ(folderOf("/m.onnx"), "/");
}

} // namespace
