#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "argosy/datasets/source.h"

namespace argosy::datasets {

/// Length and MD5 (32 small hexadecimal digits) of a published file.
struct Published {
  int64_t bytes = 0;
  std::string md5{};
  bool operator==(const Published&) const = default;
};

/// A file of a published data set, by the name that it has on the disk.
struct PublishedFile {
  std::string name{};
  Published published{};
  /// Other versions of the same data that a distribution has packed. They count as correct, but are
  /// never fetched.
  std::vector<Published> also_right{};
};

/// What to do if the index of a set names something that does not exist: pictures that the archive
/// lacks, or classes without a picture.
enum class Absent : uint8_t {
  kError,
  kSkip  ///< the set has only the pictures that exist; an empty class keeps its number
};

/// The pictures of Flowers-102 for training. Its authors train on trnid (1,020) and test on tstid
/// (6,149). Paddle exchanges the two, so that there is more to train on. Compare only results that
/// use the same choice.
enum class FlowersSplits : uint8_t {
  kPublished,  ///< as in torchvision
  kPaddle      ///< train and test are exchanged
};

/// What happens to faces with unknown points.
enum class Points : uint8_t {
  kKeep,        ///< a missing coordinate is NaN, and the contest's test images have no points
  kDrop,        ///< those faces are left out
  kForwardFill  ///< a missing coordinate is that of the last face that has it, as pandas' ffill;
                ///< faces without any points are left out
};

/// How a set is opened. Options that a set does not take (see Row::options) must keep their
/// defaults.
struct OpenOptions {
  /// The file, or the folder with the files. Empty: folder_of(name), to which fetch() brings it.
  std::string path{};
  Absent absent = Absent::kError;
  std::optional<Points>
      points{};  ///< unset: kKeep; vision::FacialKeypoints and argosy train: kDrop
  FlowersSplits splits = FlowersSplits::kPublished;
};

/// Everything that is known about a data set before its files are open. It is one of rows(), known
/// by its name at the command line, or a program's own.
struct Row {
  std::string name{};   ///< "mnist"
  std::string title{};  ///< "MNIST: 70,000 handwritten digits …"
  Task task = Task::kClass;
  /// Each address + a file's name is a URL. The first that works is taken.
  std::vector<std::string> addresses{};
  std::vector<PublishedFile> files{};
  /// Its files are the same data in several formats; fetch() brings the first.
  bool one_file_is_enough = false;
  /// Why no server has it, and what to do. Empty for sets that can be fetched.
  std::string instead{};
  /// A folder with one of these files has the set, and so has a file with this in its name.
  std::vector<std::string> in_folder{};
  std::string in_name{};
  /// The fields of OpenOptions that it takes, besides path, and what they are about: {"absent",
  /// "classes without a picture"}. "groups": its pictures have a second, coarser label.
  std::vector<std::pair<std::string, std::string>> options{};
  std::string augment = "none";  ///< the default --augment of argosy train
  /// Mean and deviation of all training pixels from 0 to 1, by channel; one number for gray.
  std::vector<double> mean{};
  std::vector<double> std{};
  /// Called by the function open(), which has checked the options.
  std::shared_ptr<const Source> (*open)(const OpenOptions& options) = nullptr;
};

/// True if the set takes the option of that name.
[[nodiscard]] bool takes(const Row& set, std::string_view option);

/// Opens a set.
///
///     auto flowers = open(flowers102(), {.path = "data/flowers", .absent = Absent::kSkip});
///
/// Errors: UsageError for options that the set does not take; DataError of the readers, for absent
/// files or pictures. If the folder that fetch() would fill is empty, the message says how to fetch
/// the set.
[[nodiscard]] std::shared_ptr<const Source> open(const Row& set, OpenOptions options = {});

/// Returns the default folder of a set: $ARGOSY_DATA_HOME/<name>, else ~/.cache/argosy/data/<name>.
/// Where the second is not there, and the set was installed beside this program (share/datasets
/// beside its bin, of the bundle and of Debian's dataset-fashion-mnist), that.
/// Errors: ConfigError when neither that variable nor HOME is set.
[[nodiscard]] std::string folder_of(std::string_view name);

}  // namespace argosy::datasets
