#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "argosy/formats/packed_sample.h"
#include "argosy/image/codec.h"
#include "argosy/image/image.h"

namespace argosy::datasets {

/// Samples [first, first + count) of a source: "train", "test".
struct Split {
  std::string name{};
  int64_t first = 0;
  int64_t count = 0;
};

/// What a data set says of itself.
struct About {
  std::string set{};                       ///< "cifar10"
  std::string packed_from{};               ///< of records: the set that they were made of
  std::string path{};                      ///< file or folder that it was read from
  std::vector<std::string> classes{};      ///< names of labels 0, 1, …; empty: no labels
  std::vector<std::string> groups{};       ///< names of a second label 0, 1, …; empty: none
  std::vector<std::string> point_names{};  ///< of the keypoints; empty: none
  std::vector<Split> splits{};             ///< one after the other, from 0 to size(); empty: none
  double value_scale = 1;                  ///< a pixel p stands for p × value_scale in the file
  int64_t missing = 0;                     ///< samples that the index names and that are not there
};

/// The sample's class; -1: it has none.
[[nodiscard]] inline int64_t label_of(const formats::PackedSample& sample) {
  return sample.labels.empty() ? -1 : sample.labels.front();
}

/// An image data set in memory or mapped, whatever its format: what looks at all sets alike is
/// written once.
///
///     auto source = open("cifar10", "cifar-10-python.tar.gz");
///     std::vector<uint8_t> scratch;
///     for (int64_t i = 0; i < source->size(); ++i) {
///       const formats::PackedSample sample = source->get(i, scratch);
///       image::Image picture = picture_of(sample);
///     }
///
/// Thread-safe: everything is const; each thread has a scratch of its own.
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
  /// Sample 0 ≤ index < size(). Its spans point into the source or into `scratch`: valid until
  /// either goes or `scratch` is used again. Errors: DataError with path and index.
  [[nodiscard]] virtual formats::PackedSample get(int64_t index,
                                                  std::vector<uint8_t>& scratch) const = 0;

  /// The sample's class without its picture; -1: it has none.
  [[nodiscard]] virtual int64_t label(int64_t index) const {
    std::vector<uint8_t> scratch;
    return label_of(get(index, scratch));
  }

 private:
  About about_;
};

/// Opens a set of `argosy data` by its name (see datasets::rows()) at a path: the file, or
/// the folder that has its files. Errors: UsageError for a name that is none; DataError of the
/// readers.
[[nodiscard]] std::unique_ptr<Source> open(const std::string& set, const std::string& path);

/// Picture files, and all below folders whatever folders they are in, in this order, without
/// labels. Errors: DataError: no such file or folder, no picture in it.
[[nodiscard]] std::unique_ptr<Source> open_files(const std::vector<std::string>& paths);

/// The name of the set that a file or folder looks like; empty: of none. A folder of folders is a
/// "folder".
[[nodiscard]] std::string recognise(const std::string& path);

/// The sample's picture as u8, decoded where it is encoded. Errors: DataError of the codecs.
[[nodiscard]] image::Image picture_of(const formats::PackedSample& sample,
                                      image::Damaged damaged = image::Damaged::kRaise);

}  // namespace argosy::datasets
