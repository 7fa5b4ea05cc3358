#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "argosy/image/image.h"

namespace argosy::events {

/// How a VisualDLWriter names its file and its run.
struct VisualDLOptions {
  std::string filename_suffix{};  ///< at the end of the file's name
  std::string display_name{};     ///< the run's name in VisualDL; empty: the folder's name
};

/// Writes a record file that `visualdl --logdir` reads while it grows: Paddle's LogWriter.
///
///     VisualDLWriter log("runs/a/visualdl");
///     log.add_scalar("train/loss", loss, step);
///
/// Each record is one write. So a kill costs at most the record that was being written, while
/// LogWriter's thread loses its queue with the program. The caller decides which rank writes.
///
/// Thread-safe.
/// Errors: DataError "events.visualdl" from the constructor when folder or file cannot be made;
/// UsageError from add_image, and for "%" in a tag, which VisualDL cannot show. A disk that fills
/// up later does not end a training, as with TensorBoardWriter.
/// Source: VisualDL 2.5.3 (writer.py, record.proto).
class VisualDLWriter final {
 public:
  /// A time of the wall clock, kept in milliseconds. The default, the epoch itself, means now.
  using WallTime = std::chrono::system_clock::time_point;

  explicit VisualDLWriter(const std::string& folder, const VisualDLOptions& options = {});
  ~VisualDLWriter();
  VisualDLWriter(const VisualDLWriter&) = delete;
  VisualDLWriter& operator=(const VisualDLWriter&) = delete;
  VisualDLWriter(VisualDLWriter&&) noexcept;
  VisualDLWriter& operator=(VisualDLWriter&&) = delete;

  /// Adds a value. It is kept as float.
  void add_scalar(std::string_view tag, double value, int64_t step, WallTime at = {});
  /// Adds several values to one plot.
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
  /// Adds a histogram over `buckets` of equal width. Values that are not finite are left out.
  void add_histogram(std::string_view tag,
                     std::span<const float> values,
                     int64_t step,
                     int buckets = 10,
                     WallTime at = {});
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
