#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace argosy::formats {

/// What the picture of a packed sample is.
enum class Picture : uint8_t {
  kEncoded = 1,  ///< a JPEG, PNG … file as it was
  kPixels = 2    ///< u8, rows from the top, channels of a pixel side by side
};

/// A sample of an image set, as one record of a record file holds it.
///
/// Layout, version 1, numbers little-endian:
///
///     u8 version = 1 · u8 picture (see Picture) · u8 channels · u8 0 · u32 height · u32 width ·
///     u32 labels · u32 points · u32 name bytes · u64 picture bytes ·
///     i64 label … · f32 point … · name · picture
///
/// Height, width and channels are 0 for encoded pictures, which say it themselves.
struct PackedSample {
  Picture kind = Picture::kEncoded;
  int64_t height = 0;
  int64_t width = 0;
  int64_t channels = 0;  ///< 1: gray, 3: RGB, 4: RGBA
  std::vector<int64_t> labels{};
  std::vector<float> points{};  ///< keypoints x, y, x, y, …; or whatever the metadata says
  std::string_view name{};      ///< of the picture where it came from; may be empty
  std::span<const std::byte> picture{};
};

/// The record of a sample. Errors: UsageError where pixels and shape disagree, or a size is beyond
/// its field.
[[nodiscard]] std::vector<std::byte> pack_sample(const PackedSample& sample);

/// The sample in a record; name and picture point into it.
/// Errors: DataError with `path` and `index`: another version, sizes that disagree.
[[nodiscard]] PackedSample unpack_sample(std::span<const std::byte> record,
                                         const std::string& path = {},
                                         int64_t index = -1);

/// So many samples of a record file, after those of the splits before it.
struct PackedSplit {
  std::string name{};  ///< "train"
  int64_t samples = 0;

  friend bool operator==(const PackedSplit&, const PackedSplit&) = default;
};

/// What a record file of an image set says about all its samples: the metadata of its header.
struct PackedSet {
  std::string kind{};                      ///< data set that it was made from: "flowers102"
  std::vector<std::string> classes{};      ///< names of labels 0, 1, …; may be empty
  std::vector<std::string> groups{};       ///< names of a second label 0, 1, …; may be empty
  std::vector<std::string> point_names{};  ///< of the keypoints; may be empty
  std::vector<int64_t> shape{};            ///< height, width, channels where all agree; else empty
  /// In the order of the samples, all of which they take up; empty: the set is not divided.
  std::vector<PackedSplit> splits{};
};

/// As JSON: {"format": "argosy.samples", "version": 2, "kind": …, "classes": […], …}.
/// Errors: UsageError for splits with one name, or less than no samples.
[[nodiscard]] std::string pack_metadata(const PackedSet& set);
/// Version 1 as well, which has no groups and no splits.
/// Errors: DataError with `path`: no JSON, not of samples, another version, a field of another
/// type, splits that pack_metadata() refuses.
[[nodiscard]] PackedSet unpack_metadata(std::string_view json, const std::string& path = {});

}  // namespace argosy::formats
