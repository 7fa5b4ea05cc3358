#include "argosy/image/codecs/jpeg_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "argosy/base/error.h"
#include "argosy/image/codecs/codecs.h"
#include "argosy/image/codecs/libjpeg.h"

namespace argosy::image::codecs {
namespace {

constexpr const char* kScans = "damaged: more than 100 scans";

/// Warnings that tell of lost or doubtful pixels. The others are of headers with odd versions.
bool is_refused(int code, Damaged damaged) {
  switch (code) {
    case JWRN_JPEG_EOF:
      return damaged != Damaged::kAccept;
    case JWRN_HIT_MARKER:
    case JWRN_HUFF_BAD_CODE:
    case JWRN_ARITH_BAD_CODE:
    case JWRN_MUST_RESYNC:
    case JWRN_EXTRANEOUS_DATA:
    case JWRN_BOGUS_PROGRESSION:
      return damaged == Damaged::kRaise;
    default:
      return false;
  }
}

}  // namespace

JpegReader::JpegReader() {
  source_.init_source = [](j_decompress_ptr) {};
  source_.fill_input_buffer = on_empty;
  source_.skip_input_data = on_skip;
  source_.resync_to_restart = jpeg_resync_to_restart;
  source_.term_source = [](j_decompress_ptr) {};
  progress_.progress_monitor = on_progress;
}

JpegReader::~JpegReader() {
  close();
}

// libjpeg keeps tables from one picture to the next, for those that bring none: what such a one
// became would depend on the one before it. So each gets a new decompressor, which costs a
// microsecond.
void JpegReader::close() {
  if (created_) {
    jpeg_destroy_decompress(&info_);
    created_ = false;
  }
}

void JpegReader::create() {
  close();
  info_ = {};
  info_.err = jpeg_std_error(&errors_);
  errors_.error_exit = on_error;
  errors_.emit_message = on_message;
  info_.client_data = this;  // jpeg_create keeps it and err
  run([&] { jpeg_create_decompress(&info_); });
  created_ = true;
  info_.src = &source_;
  info_.progress = &progress_;
}

void JpegReader::open(std::span<const uint8_t> bytes,
                      const JpegLimits& limits,
                      std::string_view name) {
  create();
  bytes_ = bytes;
  limits_ = limits;
  name_ = name;
  reason_ = nullptr;
  ended_ = false;
  source_.next_input_byte = bytes.data();
  source_.bytes_in_buffer = bytes.size();
  info_.mem->max_memory_to_use = static_cast<long>(limits.most_working_bytes);
  run([&] { jpeg_read_header(&info_, TRUE); });
  check_header();
}

int64_t JpegReader::blocks() const {
  int64_t count = 0;
  for (int i = 0; i < info_.num_components; ++i) {
    const jpeg_component_info& part = info_.comp_info[i];
    count += int64_t{part.width_in_blocks} * part.height_in_blocks;
  }
  return count;
}

// A block takes at least a bit for its DC coefficient and, in a sequential picture, one for the end
// of the others: what promises more blocks than that is damaged or an attack, and needs no memory.
// All coefficients are kept at once where they come in several scans.
void JpegReader::check_header() {
  (void)checked_size(
      info_.image_height, info_.image_width, limits_.most_pixels, "image.jpeg", name_);
  const bool progressive = info_.progressive_mode != FALSE;
  const bool scans = progressive || info_.comps_in_scan < info_.num_components;
  const int64_t kept = scans ? blocks() * static_cast<int64_t>(sizeof(JBLOCK)) : 0;
  check_working_bytes(kept, limits_.most_working_bytes, "image.jpeg", name_);
  const int64_t least = blocks() / (progressive ? 8 : 4);
  if (limits_.damaged != Damaged::kAccept && info_.arith_code == FALSE &&
      least > static_cast<int64_t>(bytes_.size())) {
    throw DataError(
        "image.jpeg",
        fmt::format("truncated or damaged: the header promises {} x {} pixels, which {} "
                    "bytes cannot hold",
                    info_.image_height,
                    info_.image_width,
                    bytes_.size()),
        {std::string(name_)});
  }
}

void JpegReader::leave(const char* reason) {
  reason_ = reason;
  escape_.leave();
}

void JpegReader::fail() {
  std::string what;
  if (reason_ != nullptr) {
    what = reason_;
  } else if (ended_) {
    what = "truncated";
  } else {
    std::array<char, JMSG_LENGTH_MAX> text{};
    errors_.format_message(reinterpret_cast<j_common_ptr>(&info_), text.data());
    what = text.data();
  }
  const int64_t offset =
      static_cast<int64_t>(bytes_.size() - (ended_ ? 0 : source_.bytes_in_buffer));
  if (info_.image_height > 0) {
    what +=
        "; " + rows_that_came(info_.output_scanline,
                              info_.output_height > 0 ? info_.output_height : info_.image_height);
  }
  throw DataError("image.jpeg", what, {std::string(name_), offset});
}

void JpegReader::on_error(j_common_ptr info) {
  of(info).escape_.leave();
}

void JpegReader::on_message(j_common_ptr info, int level) {
  JpegReader& reader = of(info);
  if (level < 0 && is_refused(info->err->msg_code, reader.limits_.damaged)) {
    reader.escape_.leave();
  }
}

void JpegReader::on_progress(j_common_ptr info) {
  JpegReader& reader = of(info);
  if (reader.info_.input_scan_number > kMostScans) {
    reader.leave(kScans);
  }
}

/// At the end of the bytes: a warning, and an end marker, after which libjpeg makes do with what
/// came.
boolean JpegReader::on_empty(j_decompress_ptr info) {
  static constexpr std::array<JOCTET, 2> kEnd{0xff, JPEG_EOI};
  of(reinterpret_cast<j_common_ptr>(info)).ended_ = true;
  WARNMS(info, JWRN_JPEG_EOF);
  info->src->next_input_byte = kEnd.data();
  info->src->bytes_in_buffer = kEnd.size();
  return TRUE;
}

void JpegReader::on_skip(j_decompress_ptr info, long count) {
  if (count <= 0) {
    return;
  }
  const size_t step = std::min(static_cast<size_t>(count), info->src->bytes_in_buffer);
  info->src->next_input_byte += step;
  info->src->bytes_in_buffer -= step;
}

}  // namespace argosy::image::codecs
