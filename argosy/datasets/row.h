#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "argosy/datasets/source.h"

namespace argosy::datasets {

/// Length and MD5 (32 small hexadecimal digits) of a published file.
struct Published {
  int64_t bytes = 0;
  std::string md5{};
  bool operator==(const Published&) const = default;
};

struct PublishedFile {
  std::string name{};
  Published published{};
  /// The same data, packed anew by a distribution: right where it lies there, never fetched.
  std::vector<Published> also_right{};
};

/// What to do about what the index of a set names and nobody has: pictures that the archive lacks,
/// classes without a picture.
enum class Absent : uint8_t {
  kError,
  kSkip  ///< the set is as large as what is there; an empty class keeps its number
};

/// Which pictures of Flowers-102 are for training. Its authors train on trnid (1,020) and test on
/// tstid (6,149); Paddle does it the other way round, so that there is more to train on. Results
/// are comparable within one of the two only.
enum class FlowersSplits : uint8_t {
  kPublished,  ///< as torchvision
  kPaddle      ///< train and test exchanged
};

/// What happens to faces of which not all points are known.
enum class Points : uint8_t {
  kKeep,        ///< a missing coordinate is NaN, and the contest's test images have no points
  kDrop,        ///< they are left out
  kForwardFill  ///< a missing coordinate is that of the last face that has it, as pandas' ffill;
                ///< faces without any points are left out
};

/// How a set is opened. What a set does not take (see Row::options) must be as it is here.
struct OpenOptions {
  /// The file, or the folder that has the files; empty: folder_of(name), where fetch() brings it.
  std::string path{};
  Absent absent = Absent::kError;
  std::optional<Points>
      points{};  ///< unset: kKeep; vision::FacialKeypoints and argosy train: kDrop
  FlowersSplits splits = FlowersSplits::kPublished;
};

/// All that is known about a data set before its files are open: one of rows(), by its name at the
/// command line, or one of a program's own.
struct Row {
  std::string name{};   ///< "mnist"
  std::string title{};  ///< "MNIST: 70,000 handwritten digits …"
  Task task = Task::kClass;
  /// Each + a file's name is a URL; the first that works is taken.
  std::vector<std::string> addresses{};
  std::vector<PublishedFile> files{};
  /// Its files are the same data in several formats; fetch() brings the first.
  bool one_file_is_enough = false;
  /// Why no server has it, and what to do; empty for sets that can be fetched.
  std::string instead{};
  /// A folder with one of these files has the set, and so has a file with this in its name.
  std::vector<std::string> in_folder{};
  std::string in_name{};
  std::vector<std::string> options{};  ///< those of OpenOptions that it takes, besides path
  std::string augment = "none";        ///< what argosy train does to pictures by default
  /// Of all training pixels from 0 to 1, by channel; one number for gray.
  std::vector<double> mean{};
  std::vector<double> std{};
  /// Called by the function open(), which has checked the options.
  std::shared_ptr<const Source> (*open)(const OpenOptions& options) = nullptr;
};

/// Opens a set.
///
///     auto flowers = open(flowers102(), {.path = "data/flowers", .absent = Absent::kSkip});
///
/// Errors: UsageError for options that the set does not take; DataError of the readers, for what is
/// absent, and where nothing is in the folder that fetch() would fill, how to bring it.
[[nodiscard]] std::shared_ptr<const Source> open(const Row& set, OpenOptions options = {});

/// Where a set lies unless told otherwise: $ARGOSY_DATA_HOME/<name>, else
/// ~/.cache/argosy/data/<name>. Errors: ConfigError where neither that variable nor HOME is set.
[[nodiscard]] std::string folder_of(std::string_view name);

}  // namespace argosy::datasets
