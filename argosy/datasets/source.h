#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "argosy/image/codec.h"
#include "argosy/image/image.h"

namespace argosy::datasets {

/// Samples [first, first + count) of a source: "train", "test".
struct SplitRange {
  std::string name{};
  int64_t first = 0;
  int64_t count = 0;
};

/// What a sample says about its picture.
enum class Task : uint8_t {
  kClass,  ///< its class
  kTags,   ///< the classes on it: its labels, each once, ascending; may be empty
  kPoints  ///< the positions of its keypoints
};

/// What a data set says about itself.
struct About {
  std::string set{};  ///< "cifar10"
  Task task = Task::kClass;
  std::string packed_from{};               ///< for records: the set from which they were made
  std::string path{};                      ///< the file or folder from which it was read
  std::vector<std::string> classes{};      ///< names of labels 0, 1, …; empty: no labels
  std::vector<std::string> groups{};       ///< names of a second label 0, 1, …; empty: none
  std::vector<std::string> point_names{};  ///< names of the keypoints; empty: none
  std::vector<SplitRange> splits{};        ///< one after the other, from 0 to size(); empty: none
  /// Height, width and channels, if all pictures are pixels and agree; else empty.
  std::vector<int64_t> shape{};
  double full = 255;    ///< the value of a pixel that stands for 1.0; 256 in some mnist.json
  int64_t missing = 0;  ///< samples that the index names but that do not exist
};

/// A picture as it is stored.
struct StoredPicture {
  enum class Kind : uint8_t {
    kEncoded,  ///< a JPEG, PNG … file as it is
    kPixels    ///< rows from the top, channels of a pixel side by side
  };
  Kind kind = Kind::kEncoded;
  std::span<const uint8_t> bytes{};
  image::Size size{};  ///< set for pixels; encoded pictures hold it themselves
  int channels = 0;    ///< set for pixels: 1 gray, 3 RGB, 4 RGBA
};

/// A picture of a data set with what is known about it.
struct Sample {
  StoredPicture picture{};
  /// kClass: the class, and then the group of the class if there are groups. kTags: every class
  /// that is on it.
  std::span<const int64_t> labels{};
  std::span<const float> points{};  ///< keypoints x, y, x, y, … in pixels; NaN: not known
  std::string_view name{};          ///< the picture's name at its source; may be empty
};

/// Memory into which Source::get() may put a sample.
struct Scratch {
  std::vector<uint8_t> bytes{};
  std::vector<int64_t> labels{};
  std::vector<float> points{};
};

/// How a picture is decoded.
struct PictureAs {
  std::optional<image::Order> order{};  ///< unset: as stored
  image::Damaged damaged = image::Damaged::kRaise;
};

/// An image data set in memory or mapped, of any format. Code that handles all sets alike uses this
/// interface.
///
///     auto source = open(cifar10(), {.path = "cifar-10-python.tar.gz"});
///     Scratch scratch;
///     for (int64_t i = 0; i < source->size(); ++i) {
///       const Sample sample = source->get(i, scratch);
///       image::Image picture = source->decoded(sample);
///     }
///
/// Thread-safe: everything is const, and each thread uses a scratch of its own.
class Source {
 public:
  explicit Source(About about) : about_(std::move(about)) {}
  virtual ~Source() = default;
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;
  Source(Source&&) = delete;
  Source& operator=(Source&&) = delete;

  [[nodiscard]] const About& about() const { return about_; }
  [[nodiscard]] virtual int64_t size() const = 0;
  /// Returns sample 0 ≤ index < size(). Its spans point into the source or into `scratch`. They are
  /// valid until either is destroyed or `scratch` is used again. Errors: DataError with path and
  /// index.
  [[nodiscard]] virtual Sample get(int64_t index, Scratch& scratch) const = 0;
  /// Returns the sample's labels. It does not read the picture if it can avoid that.
  [[nodiscard]] virtual std::span<const int64_t> labels(int64_t index, Scratch& scratch) const {
    return get(index, scratch).labels;
  }
  /// Returns the picture of one of this source's samples as u8. Errors: DataError of the codecs.
  [[nodiscard]] virtual image::Image decoded(const Sample& sample,
                                             const PictureAs& as = {}) const = 0;

  /// Returns the first label, or -1 if there is none. For kTags see labels().
  [[nodiscard]] int64_t label(int64_t index) const {
    Scratch scratch;
    const std::span<const int64_t> all = labels(index, scratch);
    return all.empty() ? -1 : all.front();
  }
  [[nodiscard]] image::Image picture(int64_t index, const PictureAs& as = {}) const {
    Scratch scratch;
    return decoded(get(index, scratch), as);
  }

 private:
  About about_;
};

/// Returns pixels as a picture of `order`. Unset: with the channels that they have.
[[nodiscard]] image::Image unpacked(const StoredPicture& pixels,
                                    std::optional<image::Order> order = {});

/// Returns the samples of a split; for an empty name all samples. Errors: UsageError that names the
/// existing splits.
[[nodiscard]] SplitRange find_split(const Source& source, std::string_view name);

}  // namespace argosy::datasets
