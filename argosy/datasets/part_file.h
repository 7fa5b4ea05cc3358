#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "argosy/formats/digest.h"
#include "argosy/os/fd.h"

namespace argosy::datasets {

/// The part of a file that has come so far, `<path>.part`, and the MD5 of it. What an earlier try
/// left, also one of another process, is taken over; whoever uses it holds the folder's lock.
///
/// Not thread-safe. Lifetime: an empty part is removed with the object, another stays for the next.
/// Errors: DataError naming the path: cannot open, write, synchronise or rename (a full disk).
class PartFile final {
 public:
  /// Reads what is there, for its MD5.
  explicit PartFile(std::string final_path);
  ~PartFile();
  PartFile(const PartFile&) = delete;
  PartFile& operator=(const PartFile&) = delete;
  PartFile(PartFile&&) = delete;
  PartFile& operator=(PartFile&&) = delete;

  void append(std::span<const std::byte> bytes);
  /// Throws away what has come.
  void restart();
  /// Puts it in its place under the final name: after this it is there as a whole, even if the
  /// power fails. At most once, and nothing else after it.
  void commit();

  [[nodiscard]] int64_t size() const { return size_; }
  /// Its MD5, once: restart() or commit() comes next.
  [[nodiscard]] std::string md5() { return sum_.hex(); }
  /// The first bytes of it, for a message.
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
