#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace argosy::datasets {

class Source;

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

/// What a sample says of its picture.
enum class Task : uint8_t {
  kClass,  ///< which class it is of
  kPoints  ///< where its keypoints are
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
  std::string augment = "none";  ///< what argosy train does to pictures by default
  /// Of all training pixels from 0 to 1, by channel; one number for gray.
  std::vector<double> mean{};
  std::vector<double> std{};
  /// Opens the file, or the folder with the files.
  std::unique_ptr<Source> (*open)(const std::string& path) = nullptr;
};

/// All sets that `argosy` knows by name, in the order of its help.
/// Source: Paddle's and torchvision's data sets (names, addresses, MD5s), the sets' own pages.
[[nodiscard]] const std::vector<const Row*>& rows();

/// nullptr: there is none of that name.
[[nodiscard]] const Row* find_row(std::string_view name);

/// The same for a name that must be one.
/// Errors: UsageError with the name that was probably meant, or with all of them.
[[nodiscard]] const Row& row_of(std::string_view name);

}  // namespace argosy::datasets
