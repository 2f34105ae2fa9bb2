// Scalars for TensorBoard: an event file of TFRecords, each with an Event message.
#ifndef DEEPSTRIDE_TOOLS_DS_RUN_TRAINING_TENSORBOARD_H
#define DEEPSTRIDE_TOOLS_DS_RUN_TRAINING_TENSORBOARD_H

#include <cstdint>
#include <cstdio>
#include <string>

namespace ds {

class TensorBoard {
public:
  // Makes the folder, and in it a file of its own. Throws Error(Io).
  explicit TensorBoard(const std::string &folder);
  TensorBoard(const TensorBoard &) = delete;
  TensorBoard &operator=(const TensorBoard &) = delete;
  ~TensorBoard();

  void add(const std::string &tag, double value, int64_t step);
  void flush();

private:
  void write(const std::string &event);
  std::string path;
  std::FILE *file = nullptr;
};

// CRC-32C (Castagnoli) of bytes, as the format masks it.
uint32_t maskedCrc(const std::string &bytes);

} // namespace ds
#endif
