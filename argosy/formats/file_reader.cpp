#include "argosy/formats/file_reader.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "argosy/base/error.h"

#include <isa-l/igzip_lib.h>

namespace argosy::formats {
namespace {

constexpr uint8_t kMagic[2] = {0x1f, 0x8b};
// Deflate's best: a match of 258 bytes in 2 bits, so 1032 bytes from each byte.
constexpr int64_t kLargestRatio = 1032;

const char* words_for(int code) {
  switch (code) {
    case ISAL_INVALID_WRAPPER:
      return "no gzip header";
    case ISAL_UNSUPPORTED_METHOD:
      return "unknown compression method";
    case ISAL_INCORRECT_CHECKSUM:
      return "wrong checksum or length";
    default:
      return "bytes that are no deflate stream";
  }
}

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

}  // namespace

struct FileReader::Impl {
  std::string path;
  std::unique_ptr<std::FILE, CloseFile> file;
  int64_t file_bytes = 0;
  int64_t position = 0;
  bool gzip = false;

  std::array<uint8_t, size_t{64} * 1024> buffer{};
  size_t begin = 0;  // unread part of buffer
  size_t end = 0;
  int64_t loaded = 0;  // bytes of the file that went through buffer

  // ISA-L's inflate: 3.5 times as fast as zlib's (0.19 against 0.68 s for a table of 0.22 GB).
  inflate_state stream;
  bool in_member = false;

  explicit Impl(std::string name) : path(std::move(name)) {
    // Without O_NONBLOCK opening a pipe would wait for a writer.
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
      throw DataError("formats.open", "cannot open: " + errno_message(errno), {path});
    }
    file.reset(::fdopen(fd, "rb"));
    if (file == nullptr) {
      const int error_number = errno;
      ::close(fd);
      throw DataError("formats.open", "cannot open: " + errno_message(error_number), {path});
    }
    struct stat status {};
    if (::fstat(::fileno(file.get()), &status) != 0 || !S_ISREG(status.st_mode)) {
      throw DataError("formats.open", "expected a regular file", {path});
    }
    file_bytes = status.st_size;
    load();
    gzip = starts_member();
  }
  ~Impl() = default;
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  [[nodiscard]] size_t available() const { return end - begin; }
  /// Where the next unread byte lies in the file.
  [[nodiscard]] int64_t file_offset() const { return loaded - static_cast<int64_t>(available()); }

  [[noreturn]] void fail(const std::string& what) const {
    throw DataError("formats.gzip", what, {path, file_offset()});
  }

  /// Tops the buffer up, keeping its unread part; afterwards it is empty only at end of file.
  void load() {
    std::copy(buffer.begin() + begin, buffer.begin() + end, buffer.begin());
    end -= begin;
    begin = 0;
    end += read_file(std::span(buffer).subspan(end));
  }

  size_t read_file(std::span<uint8_t> to) {
    const size_t got = std::fread(to.data(), 1, to.size(), file.get());
    if (std::ferror(file.get()) != 0) {
      throw DataError("formats.read", "cannot read: " + errno_message(errno), {path, loaded});
    }
    loaded += static_cast<int64_t>(got);
    return got;
  }

  [[nodiscard]] bool starts_member() const {
    return available() >= 2 && buffer[begin] == kMagic[0] && buffer[begin + 1] == kMagic[1];
  }

  size_t read_plain(std::span<uint8_t> out) {
    size_t done = 0;
    while (done < out.size()) {
      if (available() == 0 && out.size() - done >= buffer.size()) {
        const size_t n = read_file(out.subspan(done));
        done += n;
        if (n == 0) {
          break;
        }
        continue;
      }
      if (available() == 0) {
        load();
        if (available() == 0) {
          break;
        }
      }
      const size_t n = std::min(available(), out.size() - done);
      std::copy_n(buffer.begin() + begin, n, out.begin() + done);
      begin += n;
      done += n;
    }
    return done;
  }

  /// Starts the next member. False at the end of the file, zeros included.
  bool open_member() {
    load();  // the library forgets what it saw of a header when the header is not there as a whole
    if (starts_member()) {
      isal_inflate_init(&stream);
      stream.crc_flag = ISAL_GZIP;
      in_member = true;
      return true;
    }
    while (available() > 0) {
      while (begin < end && buffer[begin] == 0) {
        ++begin;
      }
      if (begin < end) {
        fail(
            "trailing bytes after the gzip data. The file is damaged or two were joined; fetch it "
            "again");
      }
      load();
    }
    return false;
  }

  size_t read_gzip(std::span<uint8_t> out) {
    size_t done = 0;
    while (done < out.size()) {
      if (!in_member && !open_member()) {
        break;
      }
      if (available() == 0) {
        load();
      }
      stream.next_in = buffer.data() + begin;
      stream.avail_in = static_cast<uint32_t>(available());
      stream.next_out = out.data() + done;
      const size_t room = std::min<size_t>(out.size() - done, 1U << 30);
      stream.avail_out = static_cast<uint32_t>(room);
      const bool starved = available() == 0;
      const int code = isal_inflate(&stream);
      begin = end - stream.avail_in;
      const size_t got = room - stream.avail_out;
      done += got;
      if (code < 0) {
        fail(fmt::format("corrupt gzip data: {} after {} unpacked bytes. Fetch the file again",
                         words_for(code),
                         position + static_cast<int64_t>(done)));
      }
      if (stream.block_state == ISAL_BLOCK_FINISH) {
        in_member = false;
      } else if (starved && got == 0) {
        fail(
            fmt::format("truncated gzip data: the file ends in the middle of a member, after {} "
                        "unpacked bytes. Fetch it again",
                        position + static_cast<int64_t>(done)));
      }
    }
    return done;
  }
};

FileReader::FileReader(std::string path) : impl_(std::make_unique<Impl>(std::move(path))) {}
FileReader::~FileReader() = default;
FileReader::FileReader(FileReader&&) noexcept = default;
FileReader& FileReader::operator=(FileReader&&) noexcept = default;

size_t FileReader::read(std::span<uint8_t> out) {
  const size_t n = impl_->gzip ? impl_->read_gzip(out) : impl_->read_plain(out);
  impl_->position += static_cast<int64_t>(n);
  return n;
}

const std::string& FileReader::path() const {
  return impl_->path;
}

bool FileReader::compressed() const {
  return impl_->gzip;
}

int64_t FileReader::position() const {
  return impl_->position;
}

int64_t FileReader::expected_bytes() const {
  const int64_t seen = impl_->file_offset();
  return seen == 0 ? impl_->file_bytes
                   : static_cast<int64_t>(static_cast<double>(impl_->position) *
                                          static_cast<double>(impl_->file_bytes) /
                                          static_cast<double>(seen));
}

int64_t FileReader::most_bytes() const {
  return impl_->gzip ? impl_->file_bytes * kLargestRatio : impl_->file_bytes;
}

}  // namespace argosy::formats
