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

/// How a TensorBoardWriter names its file, and what becomes of those that are there.
struct TensorBoardOptions {
  std::string filename_suffix{};  ///< at the end of the file's name
  /// What the folder's files have at this step and later is not shown any more: an earlier program
  /// wrote it that was killed, and this one writes it again. Of all tags; nothing is erased.
  /// Unset: both are shown.
  std::optional<int64_t> purge_step{};
};

/// Writes an event file that `tensorboard --logdir` reads while it grows.
///
///     TensorBoardWriter board("runs/a/tensorboard");
///     board.add_scalar("loss/train", loss, step);
///     board.add_image("samples", picture, step);
///
/// Each record is one write, checksums included: a killed program loses at most the record that it
/// was writing, and TensorBoard reads what stands before it. Which rank writes is the caller's
/// matter: usually the first alone. A tag's parts before "/" group it.
///
/// Thread-safe. Errors: DataError "events.tensorboard" from the constructor, where folder or file
/// cannot be made; UsageError from add_image. A disk that fills up later ends no training: the
/// first record that does not fit is told in the log (error), it and its followers are left out
/// whole, and dropped() counts them; writing goes on when there is room again. UsageError for a
/// purge_step below 0. Cost: a scalar takes 2 to 3 µs, most of it the system's write. Source:
/// PyTorch 2.15 SummaryWriter (names, and what is written), TensorBoard 2.21 (formats).
class TensorBoardWriter final {
 public:
  /// The wall clock; the default, the epoch itself, stands for now.
  using WallTime = std::chrono::system_clock::time_point;

  explicit TensorBoardWriter(const std::string& folder, TensorBoardOptions options = {});
  ~TensorBoardWriter();
  TensorBoardWriter(const TensorBoardWriter&) = delete;
  TensorBoardWriter& operator=(const TensorBoardWriter&) = delete;
  TensorBoardWriter(TensorBoardWriter&&) noexcept;
  TensorBoardWriter& operator=(TensorBoardWriter&&) = delete;

  /// Kept as float, as TensorBoard keeps it; NaN and infinities are shown as such.
  void add_scalar(std::string_view tag, double value, int64_t step, WallTime at = {});
  /// Several values in one plot: as PyTorch does it, each is a run of its own in the folder
  /// `<main_tag>_<name>` beside the file, under the tag `main_tag`.
  void add_scalars(std::string_view main_tag,
                   const std::map<std::string, double>& values,
                   int64_t step,
                   WallTime at = {});
  /// A picture of u8: gray, RGB or RGBA.
  void add_image(std::string_view tag, const image::Image& picture, int64_t step, WallTime at = {});
  /// The same, already a PNG.
  void add_image(std::string_view tag,
                 std::span<const uint8_t> png,
                 int64_t step,
                 WallTime at = {});
  /// Over TensorBoard's default limits; values that are not finite are left out. Cost: 15 ns each.
  void add_histogram(std::string_view tag,
                     std::span<const float> values,
                     int64_t step,
                     WallTime at = {});
  /// Markdown, as the text plug-in shows it.
  void add_text(std::string_view tag, std::string_view text, int64_t step, WallTime at = {});

  /// What was added is on the disk when this returns.
  void flush();
  /// Idempotent; what is added afterwards is an error of the caller (UsageError).
  void close();

  [[nodiscard]] const std::string& path() const;
  /// Records that could not be written.
  [[nodiscard]] int64_t dropped() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace argosy::events
