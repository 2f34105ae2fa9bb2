// The folder that a run's checkpoints lie in:
//   latest        text: the tag of the newest complete one
//   TAG/          one checkpoint; it appears under its name only when everything in it is on the disk
//   .tmp-TAG      what a save that was killed left; the next save removes it
#ifndef DEEPSTRIDE_RUNTIME_TRAINING_CHECKPOINTFOLDER_H
#define DEEPSTRIDE_RUNTIME_TRAINING_CHECKPOINTFOLDER_H

#include <string>
#include <vector>

namespace ds {

constexpr const char *checkpointInfoName = "checkpoint.json";

// Throws Error(InvalidArgument) where a tag could not be the name of a folder.
void checkTag(const std::string &tag);

// The tags that are there, sorted as people count: global_step9 before global_step10. Empty without the folder.
std::vector<std::string> checkpointTags(const std::string &folder);

// The tag in `latest`. Throws Error naming the folder, and the tags that are there, where there is none.
std::string latestTag(const std::string &folder);

// The path of a checkpoint; an empty tag means the latest one. Throws Error naming the tags that are there.
std::string checkpointPath(const std::string &folder, const std::string &tag);

// One save. Holds the folder, so that two processes never write to it at once; what an earlier one left is removed.
class CheckpointSave {
public:
  // Makes the folder where it is not there.
  CheckpointSave(const std::string &folder, const std::string &tag);
  CheckpointSave(const CheckpointSave &) = delete;
  CheckpointSave &operator=(const CheckpointSave &) = delete;
  ~CheckpointSave(); // without publish(), nothing remains

  // Where the files go.
  const std::string &path() const { return temporary; }
  // Gives the files their place, replacing a checkpoint of the same tag, and makes it the latest. Each of the two
  // happens at once or not at all, the second after the first is on the disk.
  void publish();
  // Then: removes the oldest checkpoints but for `keep`, which is not 0; never the one that was published.
  void removeOldest(unsigned keep);

private:
  void removeLeftovers();
  void replace();

  std::string folder, tag, temporary;
  int descriptor = -1;
};

} // namespace ds
#endif
