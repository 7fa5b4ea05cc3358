#include "argosy/engine/serialize.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <utility>

#include <c10/core/GradMode.h>
#include <torch/csrc/jit/serialization/import.h>
#include <torch/nn/module.h>
#include <torch/serialize/output-archive.h>

#include "argosy/base/check.h"

namespace argosy::engine {
namespace {

constexpr const char* kSave = "engine.save_weights";
constexpr const char* kLoad = "engine.load_weights";

// A file that takes its final name only in commit(); dropped before, it leaves nothing behind.
class PendingFile final {
 public:
  explicit PendingFile(std::string path)
      : path_(std::move(path)), temporary_(fmt::format("{}.tmp.{}", path_, ::getpid())) {
    fd_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd_ < 0) {
      fail("cannot create", errno);
    }
  }
  PendingFile(const PendingFile&) = delete;
  PendingFile& operator=(const PendingFile&) = delete;
  ~PendingFile() {
    if (fd_ >= 0) {
      ::close(fd_);
    }
    if (!committed_) {
      ::unlink(temporary_.c_str());
    }
  }

  // Never throws and always claims success: libtorch's zip writer ends the process when its last
  // write fails (it finishes the archive in its destructor). commit() reports the first failure.
  std::size_t write(const void* data, std::size_t size) noexcept {
    const char* position = static_cast<const char*>(data);
    std::size_t left = size;
    while (left > 0 && write_error_ == 0) {
      const ssize_t written = ::write(fd_, position, left);
      if (written >= 0) {
        position += written;
        left -= static_cast<std::size_t>(written);
      } else if (errno != EINTR) {
        write_error_ = errno;
      }
    }
    return size;
  }

  void commit() {
    if (write_error_ != 0) {
      fail("cannot write", write_error_);
    }
    if (::fsync(fd_) != 0) {
      fail("cannot fsync", errno);
    }
    if (::close(std::exchange(fd_, -1)) != 0) {
      fail("cannot close", errno);
    }
    if (std::rename(temporary_.c_str(), path_.c_str()) != 0) {
      fail("cannot rename into place", errno);
    }
    committed_ = true;
    sync_folder();
  }

 private:
  [[noreturn]] void fail(std::string_view what, int error_number) const {
    throw CheckpointError(kSave,
                          fmt::format("{} {}: {}. The former file, if any, is untouched.",
                                      what,
                                      temporary_,
                                      errno_message(error_number)),
                          {path_, {}});
  }

  void sync_folder() const {  // without it the new name may not survive a power cut
    const std::string parent = std::filesystem::path(path_).parent_path().string();
    const int folder =
        ::open(parent.empty() ? "." : parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder >= 0) {
      ::fsync(folder);  // some file systems cannot; the data itself is safe already
      ::close(folder);
    }
  }

  std::string path_;
  std::string temporary_;
  int fd_ = -1;
  int write_error_ = 0;
  bool committed_ = false;
};

// An archive stores whole storages, so a view of a bucket would bring the bucket with it.
at::Tensor to_write(const at::Tensor& tensor) {
  at::Tensor own = tensor.detach().cpu();
  return own.storage().nbytes() == own.nbytes() ? own : own.clone();
}

// The tree that torch::nn::Module::save writes, so that torch::load reads it.
void fill(const torch::nn::Module& module, torch::serialize::OutputArchive& archive) {
  for (const auto& item : module.named_parameters(/*recurse=*/false)) {
    archive.write(item.key(), to_write(item.value()));
  }
  for (const auto& item : module.named_buffers(/*recurse=*/false)) {
    archive.write(item.key(), to_write(item.value()), /*is_buffer=*/true);
  }
  for (const auto& child : module.named_children()) {
    if (child.value()->is_serializable()) {
      torch::serialize::OutputArchive inner(archive.compilation_unit());
      fill(*child.value(), inner);
      archive.write(child.key(), inner);
    }
  }
}

void collect(const torch::jit::Module& module, const std::string& prefix, StateDict& dict) {
  for (const auto& item : module.named_parameters(/*recurse=*/false)) {
    dict.set(prefix + item.name, item.value.detach());
  }
  for (const auto& item : module.named_buffers(/*recurse=*/false)) {
    dict.set(prefix + item.name, item.value.detach());
  }
  for (const auto& child : module.named_children()) {
    collect(child.value, prefix + child.name + ".", dict);
  }
}

}  // namespace

void save_weights(const torch::nn::Module& module, const std::string& path) {
  const c10::NoGradGuard no_grad;
  torch::serialize::OutputArchive archive;
  fill(module, archive);
  PendingFile file(path);
  archive.save_to([&](const void* data, std::size_t size) { return file.write(data, size); });
  file.commit();
}

StateDict read_weights(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) {
    throw CheckpointError(kLoad, errno_message(errno), {path, {}});
  }
  if (!S_ISREG(info.st_mode)) {
    throw CheckpointError(kLoad, "expected a file, got something else", {path, {}});
  }
  StateDict dict;
  try {
    collect(torch::jit::load(path, at::kCPU), "", dict);
  } catch (const std::exception& error) {
    const std::string words = error.what();  // libtorch appends a backtrace
    throw CheckpointError(
        kLoad,
        fmt::format(
            "expected a whole archive by save_weights(), torch::save or torch.jit.save, got "
            "{} bytes that libtorch does not read ({})",
            info.st_size,
            words.substr(0, words.find('\n'))),
        {path, {}});
  }
  return dict;
}

LoadResult load_weights(const torch::nn::Module& module,
                        const std::string& path,
                        const LoadOptions& options) {
  LoadOptions named = options;
  if (named.source.empty()) {
    named.source = path;
  }
  return load_state_dict(module, read_weights(path), named);
}

}  // namespace argosy::engine
