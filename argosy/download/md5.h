#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace argosy::download {

/// MD5 of bytes that come in pieces: what publishers of data sets give to tell a whole file from a
/// torn one. No protection against anyone who means harm.
///
///     Md5 sum;
///     sum.add(bytes);
///     sum.hex();  // "f68b3c2dcbeaaa9fbdd348bbdeb94873"
///
/// Not thread-safe. Source: RFC 1321, by OpenSSL.
/// Errors: Error where OpenSSL has no MD5 (a FIPS configuration).
class Md5 final {
 public:
  Md5();
  ~Md5();
  Md5(Md5&&) noexcept;
  Md5& operator=(Md5&&) noexcept;
  Md5(const Md5&) = delete;
  Md5& operator=(const Md5&) = delete;

  void add(std::span<const std::byte> bytes);
  /// 32 small hexadecimal digits of what was added so far; more may follow.
  [[nodiscard]] std::string hex() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// What is read from `fd` (at its position) up to its end.
/// Errors: DataError naming `path`.
void add_file(Md5& sum, int fd, const std::string& path);

/// MD5 of a whole file. Errors: DataError naming the path.
[[nodiscard]] std::string md5_of_file(const std::string& path);

}  // namespace argosy::download
