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
  std::string display_name{};     ///< what VisualDL calls the run; empty: the folder's name
};

/// Writes a record file that `visualdl --logdir` reads while it grows: Paddle's LogWriter.
///
///     VisualDLWriter log("runs/a/visualdl");
///     log.add_scalar("train/loss", loss, step);
///
/// Each record is one write. Unlike LogWriter's thread, which loses its queue with the program, a
/// kill costs at most the record that was being written. Which rank writes is the caller's matter.
///
/// Thread-safe. Errors: DataError "events.visualdl" from the constructor, where folder or file
/// cannot be made; UsageError for "%" in a tag, which VisualDL cannot show, and from add_image. A
/// disk that fills up later ends no training: as with TensorBoardWriter.
/// Source: VisualDL 2.5.3 (writer.py, record.proto).
class VisualDLWriter final {
 public:
  /// The wall clock; the default, the epoch itself, stands for now. Kept in milliseconds.
  using WallTime = std::chrono::system_clock::time_point;

  explicit VisualDLWriter(const std::string& folder, const VisualDLOptions& options = {});
  ~VisualDLWriter();
  VisualDLWriter(const VisualDLWriter&) = delete;
  VisualDLWriter& operator=(const VisualDLWriter&) = delete;
  VisualDLWriter(VisualDLWriter&&) noexcept;
  VisualDLWriter& operator=(VisualDLWriter&&) = delete;

  /// Kept as float.
  void add_scalar(std::string_view tag, double value, int64_t step, WallTime at = {});
  /// Several values in one plot.
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
  /// Over `buckets` of one width; values that are not finite are left out.
  void add_histogram(std::string_view tag,
                     std::span<const float> values,
                     int64_t step,
                     int buckets = 10,
                     WallTime at = {});
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
