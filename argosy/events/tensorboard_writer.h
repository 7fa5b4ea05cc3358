#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "argosy/image/image.h"

namespace argosy::events {

/// How a TensorBoardWriter names its file, and what happens to files that exist already.
struct TensorBoardOptions {
  std::string filename_suffix{};  ///< at the end of the file's name
  /// Hides all values of the folder's files at this step and later, for all tags. An earlier
  /// program wrote them before it was killed, and this one writes them again. Nothing is erased.
  /// Unset: both are shown.
  std::optional<int64_t> purge_step{};
};

/// Writes an event file that `tensorboard --logdir` reads while it grows.
///
///     TensorBoardWriter board("runs/a/tensorboard");
///     board.add_scalar("loss/train", loss, step);
///     board.add_image("samples", picture, step);
///
/// Each record is one write, checksums included. So a killed program loses at most the record that
/// it was writing, and TensorBoard reads everything before it. The caller decides which rank
/// writes; usually it is the first. The parts of a tag before "/" group it.
///
/// Thread-safe.
/// Errors: DataError "events.tensorboard" from the constructor when folder or file cannot be made;
/// UsageError from add_image, and for a purge_step below 0. A disk that fills up later does not end
/// a training: the first record that does not fit is logged as an error, it and its followers are
/// left out whole, and dropped() counts them. Writing resumes when there is room again.
/// Cost: a scalar takes 2 to 3 µs, most of it in the system's write.
/// Source: PyTorch 2.15 SummaryWriter (names, and what is written), TensorBoard 2.21 (formats).
class TensorBoardWriter final {
 public:
  /// A time of the wall clock. The default, the epoch itself, means now.
  using WallTime = std::chrono::system_clock::time_point;

  explicit TensorBoardWriter(const std::string& folder, TensorBoardOptions options = {});
  ~TensorBoardWriter();
  TensorBoardWriter(const TensorBoardWriter&) = delete;
  TensorBoardWriter& operator=(const TensorBoardWriter&) = delete;
  TensorBoardWriter(TensorBoardWriter&&) noexcept;
  TensorBoardWriter& operator=(TensorBoardWriter&&) = delete;

  /// Adds a value. It is kept as float, as in TensorBoard. NaN and infinities are shown as such.
  void add_scalar(std::string_view tag, double value, int64_t step, WallTime at = {});
  /// Adds several values to one plot. As in PyTorch, each is a run of its own in the folder
  /// `<main_tag>_<name>` beside the file, under the tag `main_tag`.
  void add_scalars(std::string_view main_tag,
                   const std::map<std::string, double>& values,
                   int64_t step,
                   WallTime at = {});
  /// Adds a u8 picture: gray, RGB or RGBA.
  void add_image(std::string_view tag, const image::Image& picture, int64_t step, WallTime at = {});
  /// Adds a picture that is a PNG already.
  void add_image(std::string_view tag,
                 std::span<const uint8_t> png,
                 int64_t step,
                 WallTime at = {});
  /// Adds a histogram over TensorBoard's default limits. Values that are not finite are left out.
  /// Cost: 15 ns per value.
  void add_histogram(std::string_view tag,
                     std::span<const float> values,
                     int64_t step,
                     WallTime at = {});
  /// Adds Markdown, which the text plug-in shows.
  void add_text(std::string_view tag, std::string_view text, int64_t step, WallTime at = {});

  /// Returns when everything added is on the disk.
  void flush();
  /// Closes the file. Idempotent. Adding anything afterwards throws UsageError.
  void close();

  [[nodiscard]] const std::string& path() const;
  /// Returns how many records could not be written.
  [[nodiscard]] int64_t dropped() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace argosy::events
