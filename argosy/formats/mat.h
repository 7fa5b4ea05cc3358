#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace argosy::formats {

/// A variable of a MATLAB file: an array of real numbers.
struct MatArray {
  std::string path{};  ///< of the file, for messages
  std::string name{};
  std::vector<int64_t> dims{};  ///< two or more
  /// Column after column, as narrow as the file holds them: MATLAB stores doubles as bytes too
  /// where all of them fit.
  std::variant<std::vector<uint8_t>,
               std::vector<int8_t>,
               std::vector<uint16_t>,
               std::vector<int16_t>,
               std::vector<uint32_t>,
               std::vector<int32_t>,
               std::vector<uint64_t>,
               std::vector<int64_t>,
               std::vector<float>,
               std::vector<double>>
      values{};

  [[nodiscard]] int64_t size() const;
  [[nodiscard]] std::vector<double> doubles() const;
  /// Errors: DataError with the first number that is not whole, or beyond 2^53 as a fraction and
  /// 2^63 as a whole number.
  [[nodiscard]] std::vector<int64_t> integers() const;
};

/// What a MATLAB file holds.
struct MatFile {
  struct Other {
    std::string name{};
    std::string kind{};  ///< "struct", "cell array", "sparse array" …
  };

  std::string path{};
  std::vector<MatArray> arrays{};
  std::vector<Other> others{};  ///< variables that are no arrays of real numbers, unread

  /// The array of this name. Errors: DataError that says what there is instead.
  [[nodiscard]] const MatArray& at(std::string_view name) const;
  /// The same, moved out: a large one is not copied.
  [[nodiscard]] MatArray take(std::string_view name);
};

struct MatOptions {
  /// Most bytes of the file, and of its unpacked variables together: a small file may unpack to a
  /// thousand times its size. Lengths in the file allocate nothing before they are checked.
  int64_t most_bytes = int64_t{1} << 30;
};

/// Reads a MATLAB 5 file (what `save` writes by default, or with -v6): numeric arrays in either
/// byte order, compressed or not.
///
///     std::vector<int64_t> labels = read_mat("imagelabels.mat").at("labels").integers();
///
/// Errors: DataError with path and offset: another format (of MATLAB 4 and 7.3 by name), torn,
/// lengths and dimensions that disagree, an unknown type, a name twice, more than most_bytes; and
/// FileReader's.
/// Source: MathWorks, "MAT-File Format", level 5.
[[nodiscard]] MatFile read_mat(const std::string& path, const MatOptions& options = {});

}  // namespace argosy::formats
