#include "argosy/formats/digest.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <openssl/evp.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <vector>

#include "argosy/base/check.h"
#include "argosy/os/fd.h"

namespace argosy::formats {
namespace {

constexpr size_t kPiece = size_t{256} * 1024;
constexpr int64_t kBetweenReports = int64_t{4} << 20;

struct FreeContext {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};

[[noreturn]] void fail_open(const std::string& path, const std::string& what) {
  throw DataError("formats.open", what, {path});
}

os::UniqueFd open_regular(const std::string& path, int64_t& size) {
  // Without O_NONBLOCK opening a pipe would wait for a writer.
  auto fd = os::open_file(path, O_RDONLY | O_NONBLOCK);
  if (!fd.ok()) {
    fail_open(path, "cannot open: " + errno_message(fd.failure().error_number));
  }
  struct stat status {};
  if (::fstat(fd->get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    fail_open(path, "expected a regular file");
  }
  size = status.st_size;
  return *std::move(fd);
}

}  // namespace

struct Digester::Impl {
  std::unique_ptr<EVP_MD_CTX, FreeContext> context;
  bool ended = false;
};

Digester::Digester(Digest kind)
    : impl_(new Impl{.context = std::unique_ptr<EVP_MD_CTX, FreeContext>(EVP_MD_CTX_new())}) {
  const EVP_MD* algorithm = kind == Digest::kMd5 ? EVP_md5() : EVP_sha256();
  if (impl_->context == nullptr ||
      EVP_DigestInit_ex(impl_->context.get(), algorithm, nullptr) != 1) {
    throw InternalError("formats.digest",
                        "OpenSSL refuses the algorithm. Is a policy in force (FIPS)?");
  }
}
Digester::~Digester() = default;
Digester::Digester(Digester&&) noexcept = default;
Digester& Digester::operator=(Digester&&) noexcept = default;

void Digester::update(std::span<const std::byte> bytes) {
  ARGOSY_CHECK(!impl_->ended, "formats.digest", "update() after hex()");
  ARGOSY_INVARIANT(EVP_DigestUpdate(impl_->context.get(), bytes.data(), bytes.size()) == 1,
                   "formats.digest");
}

std::string Digester::hex() {
  ARGOSY_CHECK(!impl_->ended, "formats.digest", "hex() for the second time");
  impl_->ended = true;
  std::array<unsigned char, EVP_MAX_MD_SIZE> bytes{};
  unsigned size = 0;
  ARGOSY_INVARIANT(EVP_DigestFinal_ex(impl_->context.get(), bytes.data(), &size) == 1,
                   "formats.digest");
  return fmt::format("{:02x}", fmt::join(bytes.begin(), bytes.begin() + size, ""));
}

std::string digest_of(Digest kind, std::span<const std::byte> bytes) {
  Digester digester(kind);
  digester.update(bytes);
  return digester.hex();
}

std::string file_digest(Digest kind, const std::string& path, const FileDigestOptions& options) {
  int64_t total = 0;
  const os::UniqueFd fd = open_regular(path, total);
  Digester digester(kind);
  std::vector<std::byte> buffer(kPiece);
  int64_t done = 0;
  int64_t reported = -1;
  while (true) {
    const Result<size_t> got = os::read_all(fd.get(), buffer);
    if (!got.ok()) {
      throw DataError("formats.read",
                      "cannot read: " + errno_message(got.failure().error_number),
                      {path, done});
    }
    digester.update(std::span(buffer).first(*got));
    done += static_cast<int64_t>(*got);
    const bool last = *got < buffer.size();
    if (options.progress && (last ? done != reported : done - reported >= kBetweenReports)) {
      options.progress(done, total);
      reported = done;
    }
    if (last) {
      return digester.hex();
    }
  }
}

}  // namespace argosy::formats
