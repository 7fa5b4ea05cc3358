#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace argosy::formats {

/// The form of a packed sample's picture.
enum class PictureKind : uint8_t {
  kEncoded = 1,  ///< a JPEG, PNG … file, unchanged
  kPixels = 2    ///< u8, rows from the top, channels of a pixel side by side
};

/// A sample of an image set, as one record of a record file holds it.
///
/// Layout, version 1, numbers little-endian:
///
///     u8 version = 1 · u8 picture (see PictureKind) · u8 channels · u8 0 · u32 height · u32 width ·
///     u32 labels · u32 points · u32 name bytes · u64 picture bytes ·
///     i64 label … · f32 point … · name · picture
///
/// Height, width and channels are 0 for encoded pictures, because their headers hold them.
struct PackedSample {
  PictureKind kind = PictureKind::kEncoded;
  int64_t height = 0;
  int64_t width = 0;
  int64_t channels = 0;  ///< 1: gray, 3: RGB, 4: RGBA
  std::vector<int64_t> labels{};
  std::vector<float> points{};  ///< keypoints x, y, x, y, …, or what the metadata says
  std::string_view name{};      ///< the picture's name at its source; may be empty
  std::span<const std::byte> picture{};
};

/// Returns the record of a sample. Errors: UsageError when pixels and shape disagree, or a size
/// exceeds its field.
[[nodiscard]] std::vector<std::byte> pack_sample(const PackedSample& sample);

/// Returns the sample in a record. Its name and picture point into the record.
/// Errors: DataError with `path` and `index` when the version differs or sizes disagree.
[[nodiscard]] PackedSample unpack_sample(std::span<const std::byte> record,
                                         const std::string& path = {},
                                         int64_t index = -1);

/// A number of samples of a record file. They follow those of the splits before it.
struct PackedSplit {
  std::string name{};  ///< "train"
  int64_t samples = 0;

  friend bool operator==(const PackedSplit&, const PackedSplit&) = default;
};

/// The metadata of a record file of an image set, which is about all its samples.
struct PackedSet {
  std::string kind{};                      ///< the data set that it was made from: "flowers102"
  std::vector<std::string> classes{};      ///< names of labels 0, 1, …; may be empty
  std::vector<std::string> groups{};       ///< names of a second label 0, 1, …; may be empty
  std::vector<std::string> point_names{};  ///< names of the keypoints; may be empty
  std::vector<int64_t> shape{};            ///< height, width, channels if all agree; else empty
  double full = 255;                       ///< the value of a pixel that stands for 1.0
  /// The splits in the order of the samples; together they hold all samples. Empty: the set is not
  /// divided.
  std::vector<PackedSplit> splits{};
};

/// Returns the metadata as JSON: {"format": "argosy.samples", "version": 2, "kind": …, "classes":
/// […], …}.
/// Errors: UsageError for two splits with one name, or a negative number of samples.
[[nodiscard]] std::string pack_metadata(const PackedSet& set);
/// Reads the metadata. Also reads version 1, which has no groups and no splits.
/// Errors: DataError with `path` when it is not JSON, not about samples, of another version, has a
/// field of another type, or splits that pack_metadata() refuses.
[[nodiscard]] PackedSet unpack_metadata(std::string_view json, const std::string& path = {});

}  // namespace argosy::formats
