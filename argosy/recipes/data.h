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
  TableRow row{};
  const datasets::Row* set = nullptr;  ///< of pictures
  Material material = Material::kPictures;
};

/// Returns all data sets by name: those of `argosy data`, text and logs of clicks.
[[nodiscard]] const std::vector<DataEntry>& data_sets();

/// A data set on the command line: "cifar10:PATH,limit=1000" is a name, a path and options. A path
/// may hold commas: only words after a "," at the end that are options of the set count as options.
/// "cifar10" and "cifar10,limit=1000" mean the files that `argosy data fetch cifar10` brought.
struct DataSpec {
  const DataEntry* entry = nullptr;
  std::string path{};  ///< empty: the place to which fetch brings it
  Spec options{};

  [[nodiscard]] std::string to_string() const;
};
/// Reads a DataSpec. A path alone is recognised by its files, as in `argosy data info`.
/// Errors: UsageError when the name is unknown or no path follows the colon.
[[nodiscard]] DataSpec parse_data(const std::string& text);

/// Some samples of a data set, in the order of the set. A batch has images f32 [n, C, H, W] and
/// targets: i64 [n] classes, f32 [n, classes] of 0 and 1, or f32 [n, 2 K] coordinates as fractions
/// of the picture's sides.
using Examples = data::Subset<vision::PictureDataset>;

namespace detail {
struct Part {
  std::string split{};
  std::vector<int64_t> indices{};
};
}  // namespace detail

/// The parts of a DataSet.
struct DataSetParts {
  std::shared_ptr<const datasets::Source> source{};
  std::vector<detail::Part> splits{};
  const DataEntry* like = nullptr;
  std::vector<std::string> classes{};
  std::vector<std::string> point_names{};
  /// The options of all examples, without the chain. Without an order pictures get the model's.
  vision::PictureOptions options{};
};

/// A data set whose files are open.
class DataSet final {
 public:
  explicit DataSet(DataSetParts parts) : parts_(std::move(parts)) {}

  /// Returns the names of its splits: "train", "valid", "test".
  [[nodiscard]] std::vector<std::string> splits() const;
  /// Returns the number of samples of that split, after the limits of the options. Errors:
  /// UsageError naming the splits when there is no such split.
  [[nodiscard]] int64_t size(const std::string& split) const;
  [[nodiscard]] Examples examples(const std::string& split,
                                  const vision::Compose& chain,
                                  int channels) const;
  [[nodiscard]] const std::vector<std::string>& classes() const { return parts_.classes; }
  [[nodiscard]] const std::vector<std::string>& point_names() const { return parts_.point_names; }
  [[nodiscard]] Task task() const { return parts_.source->about().task; }
  /// Returns the set whose pixels and augmentation apply. For records it is the set from which they
  /// were made.
  [[nodiscard]] const DataEntry& like() const { return *parts_.like; }
  /// The shape of the stored pictures.
  struct Stored {
    int side = 0;  ///< 0: sides differ, or pictures are not square
    int channels = 3;
  };
  /// Returns the shape that the first, the last and a middle picture have. A set stored as pixels
  /// of one size has that size for all.
  [[nodiscard]] Stored stored() const;
  /// Returns the split for training: "train", else the first split.
  [[nodiscard]] std::string training_split() const;
  /// Returns the split that is evaluated during training: "valid", else "test". Empty: there is
  /// none.
  [[nodiscard]] std::string evaluation_split() const;

 private:
  DataSetParts parts_;
};

/// Opens the files. Errors: DataError of the readers; UsageError for the options.
[[nodiscard]] std::unique_ptr<DataSet> open_data(const DataSpec& spec);
/// Opens pictures without labels, for prediction: the split "test" of `source`, or all of it if it
/// has no splits. `classes` and `point_names` are the model's names for its outputs; they are
/// passed on.
[[nodiscard]] std::unique_ptr<DataSet> open_pictures(std::shared_ptr<const datasets::Source> source,
                                                     std::vector<std::string> classes,
                                                     std::vector<std::string> point_names);

}  // namespace argosy::recipes
