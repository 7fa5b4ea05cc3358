#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "argosy/datasets/row.h"
#include "argosy/recipes/augment.h"
#include "argosy/recipes/examples.h"
#include "argosy/recipes/row.h"
#include "argosy/recipes/spec.h"
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

/// A data set whose files are open.
class DataSet {
 public:
  DataSet() = default;
  virtual ~DataSet() = default;
  DataSet(const DataSet&) = delete;
  DataSet& operator=(const DataSet&) = delete;
  DataSet(DataSet&&) = delete;
  DataSet& operator=(DataSet&&) = delete;

  /// Names of its splits: "train", "valid", "test".
  [[nodiscard]] virtual std::vector<std::string> splits() const = 0;
  /// Samples of that split, as the options limit them. Errors: UsageError naming the splits.
  [[nodiscard]] virtual int64_t size(const std::string& split) const = 0;
  [[nodiscard]] virtual Examples examples(const std::string& split,
                                          const vision::Compose& chain,
                                          int channels) const = 0;
  [[nodiscard]] virtual const std::vector<std::string>& classes() const = 0;
  [[nodiscard]] virtual const std::vector<std::string>& point_names() const = 0;
  /// The set whose pixels and augmentation these are: of records the one that they were made of.
  [[nodiscard]] virtual const DataEntry& like() const = 0;
  /// Of the stored pictures.
  struct Stored {
    int side = 0;  ///< 0: they differ, or are no squares
    int channels = 3;
  };
  [[nodiscard]] virtual Stored stored() const = 0;
  /// Points that change places in a mirror.
  [[nodiscard]] virtual std::vector<std::pair<int64_t, int64_t>> mirrored_points() const {
    return {};
  }
  /// "train"; where evaluation happens while training: "valid", else "test".
  [[nodiscard]] std::string training_split() const;
  /// Empty: there is none.
  [[nodiscard]] std::string evaluation_split() const;
};

/// Opens the files. Errors: DataError of the readers; UsageError of the options.
[[nodiscard]] std::unique_ptr<DataSet> open_data(const DataSpec& spec);
/// Pictures without labels, for prediction: the split "test" of `source`, all of it where it has no
/// splits. What the model calls its outputs is passed through.
[[nodiscard]] std::unique_ptr<DataSet> open_pictures(std::shared_ptr<const datasets::Source> source,
                                                     std::vector<std::string> classes,
                                                     std::vector<std::string> point_names);

namespace detail {
struct Part {
  std::string split{};
  std::vector<int64_t> indices{};
};
/// Makes an evaluation split where `share` asks for one ("auto": where there is none), then limits
/// all of them.
[[nodiscard]] std::vector<Part> divided(std::vector<Part> parts, const Values& values);
[[nodiscard]] const std::vector<int64_t>& indices_of(const std::vector<Part>& parts,
                                                     const std::string& split);
/// open_data() of keypoints.
[[nodiscard]] std::unique_ptr<DataSet> open_faces(const DataSpec& spec, const Values& values);
}  // namespace detail

}  // namespace argosy::recipes
