#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace argosy::formats {

/// A variable of a MATLAB file: an array of real numbers.
struct MatArray {
  std::string path{};  ///< the file's path, for messages
  std::string name{};
  std::vector<int64_t> dims{};  ///< two or more
  /// Column after column, in the narrow type that the file holds: MATLAB stores doubles as bytes if
  /// all of them fit.
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
  /// Returns the numbers as integers. Errors: DataError with the first number that is not whole, or
  /// is beyond 2^53 (stored as a fraction) or 2^63 (stored as a whole number).
  [[nodiscard]] std::vector<int64_t> integers() const;
};

/// The content of a MATLAB file.
struct MatFile {
  struct Other {
    std::string name{};
    std::string kind{};  ///< "struct", "cell array", "sparse array" …
  };

  std::string path{};
  std::vector<MatArray> arrays{};
  std::vector<Other>
      others{};  ///< variables that are not arrays of real numbers; they are not read

  /// Returns the array of this name. Errors: DataError that says what there is instead.
  [[nodiscard]] const MatArray& at(std::string_view name) const;
  /// Moves the array of this name out, so that a large one is not copied. Errors: as for at().
  [[nodiscard]] MatArray take(std::string_view name);
};

struct MatOptions {
  /// Most bytes of the file, and of its unpacked variables together, because a small file may
  /// unpack to a thousand times its size. Lengths in the file are checked before they allocate
  /// anything.
  int64_t most_bytes = int64_t{1} << 30;
};

/// Reads a MATLAB 5 file, which `save` writes by default or with -v6. It reads numeric arrays in
/// either byte order, compressed or not.
///
///     std::vector<int64_t> labels = read_mat("imagelabels.mat").at("labels").integers();
///
/// Errors: DataError with path and offset: the file has another format (MATLAB 4 and 7.3 are named)
/// or is torn, lengths and dimensions disagree, a type is unknown, a name stands twice, or the file
/// exceeds most_bytes. Also FileReader's errors.
/// Source: MathWorks, "MAT-File Format", level 5.
[[nodiscard]] MatFile read_mat(const std::string& path, const MatOptions& options = {});

}  // namespace argosy::formats
