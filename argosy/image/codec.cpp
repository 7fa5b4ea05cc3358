#include "argosy/image/codec.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <utility>

#include "argosy/base/check.h"
#include "argosy/base/error.h"
#include "argosy/image/codecs/codecs.h"
#include "argosy/os/whole_file.h"

namespace argosy::image {
namespace {

using codecs::Bytes;
using codecs::starts_with;

/// One format's reader.
struct Codec {
  Format format;
  Image (*decode)(Bytes, const DecodeOptions&);
  ImageInfo (*probe)(Bytes, std::string_view);
  int (*orientation)(Bytes);  ///< null: the format has none
};

constexpr Codec kCodecs[] = {
    {Format::kJpeg, codecs::decode_jpeg, codecs::probe_jpeg, codecs::orientation_in_jpeg},
    {Format::kPng, codecs::decode_png, codecs::probe_png, codecs::orientation_in_png},
    {Format::kTiff, codecs::decode_tiff, codecs::probe_tiff, codecs::orientation_in_tiff},
    {Format::kWebp, codecs::decode_webp, codecs::probe_webp, codecs::orientation_in_webp},
    {Format::kBmp, codecs::decode_bmp, codecs::probe_bmp, nullptr},
    {Format::kPnm, codecs::decode_pnm, codecs::probe_pnm, nullptr},
};

const Codec& codec_of(Bytes bytes, std::string_view name) {
  const std::optional<Format> format = sniff(bytes);
  if (!format) {
    std::string first;
    for (size_t i = 0; i < std::min<size_t>(bytes.size(), 8); ++i) {
      first += fmt::format("{}{:02x}", i > 0 ? " " : "", bytes[i]);
    }
    throw DataError(
        "image.decode",
        fmt::format("unknown format: expected JPEG, PNG, TIFF, WebP, BMP or PNM, got {}",
                    bytes.empty() ? "an empty file" : "bytes that begin with " + first),
        {std::string(name), 0});
  }
  return *std::find_if(std::begin(kCodecs), std::end(kCodecs), [&](const Codec& codec) {
    return codec.format == *format;
  });
}

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

}  // namespace

std::string_view to_string(Format format) {
  switch (format) {
    case Format::kJpeg:
      return "JPEG";
    case Format::kPng:
      return "PNG";
    case Format::kTiff:
      return "TIFF";
    case Format::kWebp:
      return "WebP";
    case Format::kBmp:
      return "BMP";
    case Format::kPnm:
      return "PNM";
  }
  return "?";
}

std::optional<Format> sniff(std::span<const uint8_t> bytes) {
  if (starts_with(bytes, "\xff\xd8\xff")) {
    return Format::kJpeg;
  }
  if (starts_with(bytes, "\x89PNG\r\n\x1a\n")) {
    return Format::kPng;
  }
  // Classic and big TIFF.
  if (starts_with(bytes, {"II*\0", 4}) || starts_with(bytes, {"MM\0*", 4}) ||
      starts_with(bytes, {"II+\0", 4}) || starts_with(bytes, {"MM\0+", 4})) {
    return Format::kTiff;
  }
  if (starts_with(bytes, "RIFF") && starts_with(bytes, "WEBP", 8)) {
    return Format::kWebp;
  }
  if (starts_with(bytes, "BM")) {
    return Format::kBmp;
  }
  if (bytes.size() >= 3 && bytes[0] == 'P' && bytes[1] >= '1' && bytes[1] <= '6' &&
      (bytes[2] == ' ' || bytes[2] == '#' || (bytes[2] >= '\t' && bytes[2] <= '\r'))) {
    return Format::kPnm;
  }
  return std::nullopt;
}

ImageInfo probe(std::span<const uint8_t> bytes, std::string_view name) {
  return codec_of(bytes, name).probe(bytes, name);
}

Image decode(std::span<const uint8_t> bytes, const DecodeOptions& options) {
  ARGOSY_CHECK(options.most_pixels > 0 && options.most_working_bytes > 0,
               "image.decode",
               "expected limits above 0, got {} pixels and {} bytes",
               options.most_pixels,
               options.most_working_bytes);
  const Codec& codec = codec_of(bytes, options.name);
  Image image = codec.decode(bytes, options);
  if (options.orientation == Orientation::kApply && codec.orientation != nullptr) {
    image = codecs::upright(std::move(image), codec.orientation(bytes));
  }
  return image;
}

std::vector<uint8_t> read_file(const std::string& path) {
  constexpr int64_t kMost = int64_t{1} << 31;
  // Without O_NONBLOCK opening a pipe would wait for a writer.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  const std::unique_ptr<std::FILE, CloseFile> file(fd < 0 ? nullptr : ::fdopen(fd, "rb"));
  if (file == nullptr) {
    throw DataError("image.open", "cannot open: " + errno_message(errno), {path});
  }
  struct stat status {};
  if (::fstat(::fileno(file.get()), &status) != 0 || !S_ISREG(status.st_mode)) {
    throw DataError("image.open", "expected a regular file", {path});
  }
  if (status.st_size > kMost) {
    throw DataError("image.open",
                    fmt::format("expected at most {} bytes, got {}", kMost, status.st_size),
                    {path});
  }
  std::vector<uint8_t> bytes(static_cast<size_t>(status.st_size));
  bytes.resize(std::fread(bytes.data(), 1, bytes.size(), file.get()));
  if (std::ferror(file.get()) != 0) {
    throw DataError("image.open", "cannot read: " + errno_message(errno), {path});
  }
  return bytes;
}

Image decode_file(const std::string& path, const DecodeOptions& options) {
  DecodeOptions named = options;
  if (named.name.empty()) {
    named.name = path;
  }
  return decode(read_file(path), named);
}

void write_file(const std::string& path, std::span<const uint8_t> bytes) {
  os::write_whole(path, {reinterpret_cast<const char*>(bytes.data()), bytes.size()})
      .or_throw<DataError>("image.write", DataPlace{path});
}

}  // namespace argosy::image
