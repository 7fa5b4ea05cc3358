#include "argosy/download/md5.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/evp.h>

#include <array>
#include <vector>

#include "argosy/base/error.h"
#include "argosy/os/fd.h"

namespace argosy::download {
namespace {

constexpr const char* kWhere = "download.md5";

void check(int result) {
  if (result != 1) {
    throw Error(kWhere, "OpenSSL refuses MD5 (a FIPS configuration?)");
  }
}

struct Free {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};
using Context = std::unique_ptr<EVP_MD_CTX, Free>;

}  // namespace

struct Md5::Impl {
  Context context{EVP_MD_CTX_new()};
};

Md5::Md5() : impl_(std::make_unique<Impl>()) {
  check(EVP_DigestInit_ex(impl_->context.get(), EVP_md5(), nullptr));
}
Md5::~Md5() = default;
Md5::Md5(Md5&&) noexcept = default;
Md5& Md5::operator=(Md5&&) noexcept = default;

void Md5::add(std::span<const std::byte> bytes) {
  check(EVP_DigestUpdate(impl_->context.get(), bytes.data(), bytes.size()));
}

std::string Md5::hex() const {
  // The final step ends a context, so a copy takes it.
  const Context copy(EVP_MD_CTX_new());
  check(EVP_MD_CTX_copy_ex(copy.get(), impl_->context.get()));
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  check(EVP_DigestFinal_ex(copy.get(), digest.data(), &size));
  std::string text;
  for (unsigned int i = 0; i < size; ++i) {
    text += fmt::format("{:02x}", digest.at(i));
  }
  return text;
}

void add_file(Md5& sum, int fd, const std::string& path) {
  std::vector<std::byte> buffer(size_t{256} << 10);
  while (true) {
    const Result<size_t> got = os::read_all(fd, buffer);
    if (!got.ok()) {
      throw DataError(kWhere, "cannot " + got.failure().what, {path});
    }
    sum.add(std::span(buffer).first(*got));
    if (*got < buffer.size()) {
      return;
    }
  }
}

std::string md5_of_file(const std::string& path) {
  const Result<os::UniqueFd> fd = os::open_file(path, O_RDONLY);
  if (!fd.ok()) {
    throw DataError(kWhere, "cannot open: " + errno_message(fd.failure().error_number), {path});
  }
  Md5 sum;
  add_file(sum, fd->get(), path);
  return sum.hex();
}

}  // namespace argosy::download
