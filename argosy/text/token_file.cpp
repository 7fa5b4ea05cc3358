#include "argosy/text/token_file.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "argosy/base/check.h"
#include "argosy/base/fingerprint.h"
#include "argosy/base/text.h"
#include "argosy/os/memory.h"
#include "argosy/os/whole_file.h"

namespace argosy::text {
namespace {

static_assert(std::endian::native == std::endian::little, "tokens are read where they are mapped");

constexpr const char* kTokens = "text.token_file";
constexpr std::string_view kMagic = "ARGOTOK\n";
constexpr uint32_t kVersion = 1;
constexpr int64_t kMost16 = 65536;

/// The header, as it lies in the file.
struct Header {
  std::array<char, 8> magic{};
  uint32_t version = kVersion;
  uint32_t width = 2;
  uint64_t tokens = 0;
  uint64_t documents = 0;
  uint64_t tokenizer = 0;
  uint64_t vocab_size = 0;
  uint64_t end_of_text = 0;  // and 1, or 0
  uint64_t checksum = 0;

  [[nodiscard]] uint64_t sum() const {
    Fingerprint fingerprint;
    fingerprint.add(std::string_view(reinterpret_cast<const char*>(this), 56));
    return fingerprint.value();
  }
};
static_assert(sizeof(Header) == 64);

int64_t in_bytes(TokenWidth width) {
  return static_cast<int64_t>(width);
}

}  // namespace

struct TokenFile::Impl {
  std::string path;
  os::Mapping mapping{};
  const std::byte* first = nullptr;
  int64_t size = 0;
  TokenWidth width;
  TokenFileFacts facts{};

  Impl(std::string name, const TokenFileOptions& options)
      : path(std::move(name)), width(options.headerless) {
    std::error_code ignored;
    if (std::filesystem::exists(path, ignored) &&
        !std::filesystem::is_regular_file(path, ignored)) {
      fail("expected a regular file. Give the file itself");
    }
    auto mapped = os::map_file(path);
    if (!mapped.ok()) {
      fail("cannot open: " + errno_message(mapped.failure().error_number));
    }
    mapping = *std::move(mapped);
    const std::span<const std::byte> bytes = mapping.bytes();
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (text.starts_with(kMagic)) {
      read_header(bytes);
      return;
    }
    first = bytes.data();
    size = static_cast<int64_t>(bytes.size()) / in_bytes(width);
    if (size * in_bytes(width) != static_cast<int64_t>(bytes.size())) {
      fail(
          fmt::format("no header, and its {} bytes are no whole number of tokens of {} bytes. Is "
                      "it another file? Set .headerless if its tokens are of another width",
                      bytes.size(),
                      in_bytes(width)));
    }
  }

  [[noreturn]] void fail(const std::string& what) const { throw DataError(kTokens, what, {path}); }

  void read_header(std::span<const std::byte> bytes) {
    Header header;
    if (bytes.size() < sizeof(Header)) {
      fail(fmt::format("torn: expected a header of {} bytes, got {}. Make or copy it again",
                       sizeof(Header),
                       bytes.size()));
    }
    std::memcpy(&header, bytes.data(), sizeof(Header));
    if (header.version != kVersion) {
      fail(fmt::format(
          "version {} of the format: this program reads version {}", header.version, kVersion));
    }
    if (header.checksum != header.sum() || (header.width != 2 && header.width != 4)) {
      fail("damaged: the header's checksum is wrong. Make the file again");
    }
    const uint64_t there = (bytes.size() - sizeof(Header)) / header.width;
    if (header.tokens != there || (bytes.size() - sizeof(Header)) % header.width != 0) {
      fail(fmt::format("torn: expected {} tokens, got {}. Make or copy it again",
                       count(static_cast<int64_t>(header.tokens)),
                       count(static_cast<int64_t>(there))));
    }
    width = static_cast<TokenWidth>(header.width);
    first = bytes.data() + sizeof(Header);
    size = static_cast<int64_t>(header.tokens);
    facts.tokenizer = header.tokenizer;
    facts.vocab_size = static_cast<int64_t>(header.vocab_size);
    facts.documents = static_cast<int64_t>(header.documents);
    if (header.end_of_text > 0) {
      facts.end_of_text = static_cast<int32_t>(header.end_of_text - 1);
    }
  }

  void check(int64_t begin, int64_t number) const {
    ARGOSY_CHECK(begin >= 0 && number >= 0 && begin <= size && number <= size - begin,
                 kTokens,
                 "tokens {} to {} are outside the {} tokens of {}",
                 begin,
                 begin + number - 1,
                 size,
                 path);
  }

  template <typename To>
  void copy(int64_t begin, std::span<To> out) const {
    check(begin, static_cast<int64_t>(out.size()));
    if (width == TokenWidth::k16) {
      const auto* from = reinterpret_cast<const uint16_t*>(first) + begin;
      std::copy(from, from + out.size(), out.begin());
    } else {
      const auto* from = reinterpret_cast<const uint32_t*>(first) + begin;
      std::transform(
          from, from + out.size(), out.begin(), [](uint32_t id) { return static_cast<To>(id); });
    }
  }
};

TokenFile::TokenFile(const std::string& path, const TokenFileOptions& options)
    : impl_(std::make_shared<const Impl>(path, options)) {}

int64_t TokenFile::size() const {
  return impl_->size;
}

int32_t TokenFile::operator[](int64_t index) const {
  int32_t id = 0;
  impl_->copy(index, std::span(&id, 1));
  return id;
}

void TokenFile::copy(int64_t first, std::span<int64_t> out) const {
  impl_->copy(first, out);
}

std::vector<int32_t> TokenFile::ids(int64_t first, int64_t count) const {
  impl_->check(first, count);
  std::vector<int32_t> ids(static_cast<size_t>(count));
  impl_->copy(first, std::span(ids));
  return ids;
}

const TokenFileFacts& TokenFile::facts() const {
  return impl_->facts;
}

TokenWidth TokenFile::width() const {
  return impl_->width;
}

const std::string& TokenFile::path() const {
  return impl_->path;
}

void TokenFile::check_made_by(const Tokenizer& tokenizer) const {
  const std::optional<uint64_t>& digest = impl_->facts.tokenizer;
  if (digest && *digest != tokenizer.digest()) {
    impl_->fail(
        fmt::format("made by another tokenizer: expected {:016x} (this {} of {} tokens), got "
                    "{:016x} ({} tokens). Make the file again, or open the tokenizer that "
                    "made it",
                    tokenizer.digest(),
                    tokenizer.kind(),
                    tokenizer.vocab_size(),
                    *digest,
                    impl_->facts.vocab_size.value_or(0)));
  }
}

struct TokenFileWriter::Impl {
  std::string path;
  os::WholeFile file;
  Header header{};
  int32_t end_of_text = 0;
  bool finished = false;
  std::vector<uint16_t> narrow{};

  void check() const { file.status().or_throw<DataError>(kTokens, DataPlace{path}); }

  void write_header() {
    header.checksum = header.sum();
    file.rewrite(0, std::as_bytes(std::span(&header, 1)));
  }
};

TokenFileWriter::TokenFileWriter(const std::string& path, const Tokenizer& tokenizer) {
  ARGOSY_CHECK(tokenizer.end_of_text(),
               kTokens,
               "expected a tokenizer with an end of text, which stands behind each document; this "
               "{} has none. Name one as eos_token in tokenizer_config.json",
               tokenizer.kind());
  impl_.reset(
      new Impl{.path = path,
               .file = os::WholeFile::create(path).or_throw<DataError>(kTokens, DataPlace{path})});
  Header& header = impl_->header;
  std::copy(kMagic.begin(), kMagic.end(), header.magic.begin());
  header.width = tokenizer.vocab_size() <= kMost16 ? 2 : 4;
  header.tokenizer = tokenizer.digest();
  header.vocab_size = static_cast<uint64_t>(tokenizer.vocab_size());
  header.end_of_text = static_cast<uint64_t>(*tokenizer.end_of_text()) + 1;
  impl_->end_of_text = *tokenizer.end_of_text();
  impl_->file.write(std::as_bytes(std::span(&header, 1)));
}

TokenFileWriter::~TokenFileWriter() = default;
TokenFileWriter::TokenFileWriter(TokenFileWriter&&) noexcept = default;
TokenFileWriter& TokenFileWriter::operator=(TokenFileWriter&&) noexcept = default;

void TokenFileWriter::append(std::span<const int32_t> ids) {
  ARGOSY_CHECK(!impl_->finished, kTokens, "append() after finish()");
  Header& header = impl_->header;
  for (const int32_t id : ids) {
    ARGOSY_CHECK(id >= 0 && static_cast<uint64_t>(id) < header.vocab_size,
                 kTokens,
                 "id {} is outside the vocabulary of {} tokens",
                 id,
                 header.vocab_size);
  }
  if (header.width == 4) {
    impl_->file.write(std::as_bytes(ids));
  } else {
    impl_->narrow.assign(ids.begin(), ids.end());
    impl_->file.write(std::as_bytes(std::span(impl_->narrow)));
  }
  header.tokens += ids.size();
  impl_->check();
}

void TokenFileWriter::end_document() {
  append(std::span(&impl_->end_of_text, 1));
  ++impl_->header.documents;
}

int64_t TokenFileWriter::size() const {
  return static_cast<int64_t>(impl_->header.tokens);
}

int64_t TokenFileWriter::documents() const {
  return static_cast<int64_t>(impl_->header.documents);
}

void TokenFileWriter::finish() {
  ARGOSY_CHECK(!impl_->finished, kTokens, "finish() for the second time");
  impl_->finished = true;
  impl_->write_header();
  (void)impl_->file.commit();
  impl_->check();
}

}  // namespace argosy::text
