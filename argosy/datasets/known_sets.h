#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace argosy::datasets {

/// Length and MD5 (32 small hexadecimal digits) of a published file.
struct Published {
  int64_t bytes = 0;
  std::string md5{};
  bool operator==(const Published&) const = default;
};

struct KnownFile {
  std::string name{};
  Published published{};
  /// The same data, packed anew by a distribution: right where it lies there, never fetched.
  std::vector<Published> also_right{};
};

/// A data set by its name at the command line, or one of a program's own.
struct KnownSet {
  std::string name{};   ///< "mnist"
  std::string title{};  ///< "MNIST: 70,000 handwritten digits …"
  /// Each + a file's name is a URL; the first that works is taken.
  std::vector<std::string> addresses{};
  std::vector<KnownFile> files{};
  /// Its files are the same data in several formats; fetch() brings the first.
  bool one_file_is_enough = false;
  /// Why no server has it, and what to do; empty for sets that can be fetched.
  std::string instead{};
};

/// All that `argosy data` knows by name, in the order of its help.
/// Source: Paddle's and torchvision's data sets (names, addresses, MD5s), the sets' own pages.
[[nodiscard]] const std::vector<KnownSet>& known_sets();

/// nullptr: there is none of that name.
[[nodiscard]] const KnownSet* find_known_set(std::string_view name);

/// The same for a name that must be one.
/// Errors: UsageError with the name that was probably meant, or with all of them.
[[nodiscard]] const KnownSet& known_set(std::string_view name);

}  // namespace argosy::datasets
