#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "argosy/formats/digest.h"
#include "argosy/os/fd.h"

namespace argosy::datasets {

/// The part of a file that has come so far, `<path>.part`, and its MD5. It takes over what an
/// earlier try left, also that of another process. The caller must hold the folder's lock.
///
/// Not thread-safe. Lifetime: an empty part is removed with the object; any other stays for the
/// next try.
/// Errors: DataError naming the path: cannot open, write, synchronise or rename (a full disk).
class PartFile final {
 public:
  /// Reads what is there to compute its MD5.
  explicit PartFile(std::string final_path);
  ~PartFile();
  PartFile(const PartFile&) = delete;
  PartFile& operator=(const PartFile&) = delete;
  PartFile(PartFile&&) = delete;
  PartFile& operator=(PartFile&&) = delete;

  void append(std::span<const std::byte> bytes);
  /// Discards what has come.
  void restart();
  /// Gives the file its final name. After this it is there as a whole, even if the power fails.
  /// Call it at most once, and nothing else after it.
  void commit();

  [[nodiscard]] int64_t size() const { return size_; }
  /// Returns its MD5. Call it once; only restart() or commit() may follow.
  [[nodiscard]] std::string md5() { return sum_.hex(); }
  /// Returns its first bytes, for a message.
  [[nodiscard]] std::string beginning(size_t most) const;

 private:
  void add_what_is_there();

  std::string final_path_;
  std::string path_;
  os::UniqueFd fd_{};
  formats::Digester sum_{formats::Digest::kMd5};
  int64_t size_ = 0;
  bool committed_ = false;
};

}  // namespace argosy::datasets
