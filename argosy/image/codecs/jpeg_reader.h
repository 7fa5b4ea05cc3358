#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "argosy/image/codec.h"
#include "argosy/image/codecs/escape.h"
#include "argosy/image/codecs/libjpeg.h"

namespace argosy::image::codecs {

/// The damage that a JpegReader accepts, and its limits.
struct JpegLimits {
  Damaged damaged = Damaged::kRaise;
  int64_t most_pixels = Image::kMostPixels;
  int64_t most_working_bytes = int64_t{2} << 30;
};

/// Runs libjpeg's decompressor over bytes in memory. Its errors become DataError.
///
///     JpegReader reader;
///     reader.open(bytes, limits, name);                 // header read and checked
///     reader.info().out_color_space = JCS_RGB;
///     reader.run([&] { jpeg_start_decompress(&reader.info()); });
///
/// One object serves many pictures; only libjpeg's own few kilobytes are made anew for each.
/// Warnings of corrupt data are errors unless damage is accepted. A progressive picture may have
/// kMostScans scans: each covers the whole picture, so a small file could otherwise keep a
/// processor busy for minutes. Not thread-safe.
/// Lifetime: `bytes` and `name` must live until the last run() on them.
class JpegReader final {
 public:
  static constexpr int kMostScans = 100;

  JpegReader();
  ~JpegReader();
  JpegReader(const JpegReader&) = delete;
  JpegReader& operator=(const JpegReader&) = delete;

  /// Errors: DataError when there is no header, or it promises too much.
  void open(std::span<const uint8_t> bytes, const JpegLimits& limits, std::string_view name);

  [[nodiscard]] jpeg_decompress_struct& info() { return info_; }
  /// Returns the compressed bytes from the next unread one.
  [[nodiscard]] std::span<const uint8_t> unread() const {
    return {source_.next_input_byte, source_.bytes_in_buffer};
  }

  /// Runs steps of libjpeg (see Escape). Errors: DataError with libjpeg's words.
  template <typename Step>
  void run(Step step) {
    if (!escape_.run(step)) {
      fail();
    }
  }
  /// Runs steps of libjpeg. Returns false instead of an error, which fail() throws.
  template <typename Step>
  [[nodiscard]] bool try_run(Step step) {
    return escape_.run(step);
  }
  [[noreturn]] void fail();

  /// Ends a step from within it. `reason` must outlive the message.
  [[noreturn]] void leave(const char* reason);
  /// True if the last failed step ended by leave(reason).
  [[nodiscard]] bool left_for(const char* reason) const { return reason_ == reason; }

  /// Releases everything of the picture.
  void close();

  /// Returns the reader of `info`, for hooks into libjpeg. It is found through info().client_data.
  void* hook = nullptr;

 private:
  static JpegReader& of(j_common_ptr info) { return *static_cast<JpegReader*>(info->client_data); }
  static void on_error(j_common_ptr info);
  static void on_message(j_common_ptr info, int level);
  static void on_progress(j_common_ptr info);
  static boolean on_empty(j_decompress_ptr info);
  static void on_skip(j_decompress_ptr info, long count);
  void create();
  void check_header();
  [[nodiscard]] int64_t blocks() const;

  Escape escape_{};
  jpeg_error_mgr errors_{};
  jpeg_source_mgr source_{};
  jpeg_progress_mgr progress_{};
  jpeg_decompress_struct info_{};
  JpegLimits limits_{};
  std::span<const uint8_t> bytes_{};
  std::string_view name_{};
  const char* reason_ = nullptr;  // from leave(); nullptr: the message is libjpeg's
  bool ended_ = false;            // the bytes have run out
  bool created_ = false;          // info_ is libjpeg's
};

}  // namespace argosy::image::codecs
