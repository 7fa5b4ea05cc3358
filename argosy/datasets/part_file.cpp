#include "argosy/datasets/part_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <span>
#include <utility>
#include <vector>

#include "argosy/base/error.h"
#include "argosy/os/fd.h"
#include "argosy/os/whole_file.h"

namespace argosy::datasets {
namespace {

[[noreturn]] void fail(const std::string& step, const std::string& path, int error_number) {
  const char* advice = error_number == ENOSPC || error_number == EDQUOT
                           ? ". Make room, or give another folder with --to; what has come is kept"
                           : "";
  throw DataError("datasets.write", step + ": " + errno_message(error_number) + advice, {path});
}

}  // namespace

PartFile::PartFile(std::string final_path)
    : final_path_(std::move(final_path)), path_(final_path_ + ".part") {
  Result<os::UniqueFd> fd = os::open_file(path_, O_RDWR | O_CREAT, 0666);
  if (!fd.ok()) {
    fail("cannot open for writing", path_, fd.failure().error_number);
  }
  fd_ = *std::move(fd);
  add_what_is_there();
}

void PartFile::add_what_is_there() {
  std::vector<std::byte> buffer(size_t{256} << 10);
  while (true) {
    const Result<size_t> got = os::read_all(fd_.get(), buffer);
    if (!got.ok()) {
      fail("cannot read", path_, got.failure().error_number);
    }
    sum_.update(std::span(buffer).first(*got));
    size_ += static_cast<int64_t>(*got);
    if (*got < buffer.size()) {
      return;
    }
  }
}

PartFile::~PartFile() {
  if (size_ == 0 && !committed_) {
    ::unlink(path_.c_str());
  }
}

void PartFile::append(std::span<const std::byte> bytes) {
  const Status written = os::write_all(fd_.get(), bytes);
  if (!written.ok()) {
    // What came of these bytes is cut off, so that size and sum stay true.
    (void)!::ftruncate(fd_.get(), size_);
    ::lseek(fd_.get(), size_, SEEK_SET);
    fail("cannot write", path_, written.failure().error_number);
  }
  sum_.update(bytes);
  size_ += static_cast<int64_t>(bytes.size());
}

void PartFile::restart() {
  if (::ftruncate(fd_.get(), 0) != 0 || ::lseek(fd_.get(), 0, SEEK_SET) != 0) {
    fail("cannot shorten", path_, errno);
  }
  sum_ = formats::Digester(formats::Digest::kMd5);
  size_ = 0;
}

void PartFile::commit() {
  if (::fsync(fd_.get()) != 0) {
    fail("cannot synchronise", path_, errno);
  }
  fd_.close();
  os::move_into_place(path_, final_path_).or_throw<DataError>("datasets.write", DataPlace{path_});
  committed_ = true;
}

std::string PartFile::beginning(size_t most) const {
  std::string text(most, '\0');
  const Result<size_t> got = os::read_at(fd_.get(), std::as_writable_bytes(std::span(text)), 0);
  text.resize(got.ok() ? *got : 0);
  return text;
}

}  // namespace argosy::datasets
