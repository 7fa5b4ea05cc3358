#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "argosy/data/subset.h"
#include "argosy/datasets/row.h"
#include "argosy/recipes/augment.h"
#include "argosy/recipes/row.h"
#include "argosy/recipes/spec.h"
#include "argosy/vision/datasets/picture_dataset.h"
#include "argosy/vision/transforms/compose.h"

namespace argosy::recipes {

using datasets::Task;

struct DataEntry {
  Row row{};
  const datasets::Row* set = nullptr;
};

/// All data sets, by name: those of `argosy data`.
[[nodiscard]] const std::vector<DataEntry>& data_sets();

/// "cifar10:PATH,limit=1000": name, path, options. Only what follows the last "," and is an option
/// of the set is one, so that a path may hold commas. "cifar10" and "cifar10,limit=1000" are what
/// `argosy data fetch cifar10` brought.
struct DataSpec {
  const DataEntry* entry = nullptr;
  std::string path{};  ///< empty: where fetch brings it
  Spec options{};

  [[nodiscard]] std::string to_string() const;
};
/// A path alone is recognised by its files, as `argosy data info` does.
/// Errors: UsageError: an unknown name; no path after the colon.
[[nodiscard]] DataSpec parse_data(const std::string& text);

/// Some samples of a data set, in the order of the set: batches of images f32 [n, C, H, W] and
/// targets, i64 [n] classes, f32 [n, classes] of 0 and 1, or f32 [n, 2 K] coordinates as parts of
/// the picture's sides.
using Examples = data::Subset<vision::PictureDataset>;

namespace detail {
struct Part {
  std::string split{};
  std::vector<int64_t> indices{};
};
/// Makes an evaluation split where `share` asks for one ("auto": where there is none), then limits
/// all of them.
[[nodiscard]] std::vector<Part> divided(std::vector<Part> parts, const Values& values);
}  // namespace detail

/// What a DataSet is made of.
struct DataSetParts {
  std::shared_ptr<const datasets::Source> source{};
  std::vector<detail::Part> splits{};
  const DataEntry* like = nullptr;
  std::vector<std::string> classes{};
  std::vector<std::string> point_names{};
  /// Of all examples but for the chain. Without an order pictures are as the model wants them.
  vision::PictureOptions options{};
};

/// A data set whose files are open.
class DataSet final {
 public:
  explicit DataSet(DataSetParts parts) : parts_(std::move(parts)) {}

  /// Names of its splits: "train", "valid", "test".
  [[nodiscard]] std::vector<std::string> splits() const;
  /// Samples of that split, as the options limit them. Errors: UsageError naming the splits.
  [[nodiscard]] int64_t size(const std::string& split) const;
  [[nodiscard]] Examples examples(const std::string& split,
                                  const vision::Compose& chain,
                                  int channels) const;
  [[nodiscard]] const std::vector<std::string>& classes() const { return parts_.classes; }
  [[nodiscard]] const std::vector<std::string>& point_names() const { return parts_.point_names; }
  /// The set whose pixels and augmentation these are: of records the one that they were made of.
  [[nodiscard]] const DataEntry& like() const { return *parts_.like; }
  /// Of the stored pictures.
  struct Stored {
    int side = 0;  ///< 0: they differ, or are no squares
    int channels = 3;
  };
  /// By the first picture, the last and one between: pixels of one size have it for all.
  [[nodiscard]] Stored stored() const;
  /// "train"; where evaluation happens while training: "valid", else "test".
  [[nodiscard]] std::string training_split() const;
  /// Empty: there is none.
  [[nodiscard]] std::string evaluation_split() const;

 private:
  DataSetParts parts_;
};

/// Opens the files. Errors: DataError of the readers; UsageError of the options.
[[nodiscard]] std::unique_ptr<DataSet> open_data(const DataSpec& spec);
/// Pictures without labels, for prediction: the split "test" of `source`, all of it where it has no
/// splits. What the model calls its outputs is passed through.
[[nodiscard]] std::unique_ptr<DataSet> open_pictures(std::shared_ptr<const datasets::Source> source,
                                                     std::vector<std::string> classes,
                                                     std::vector<std::string> point_names);

}  // namespace argosy::recipes
