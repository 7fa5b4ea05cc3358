#include "argosy/engine/serialize.h"

#include <sys/stat.h>

#include <cerrno>

#include <c10/core/GradMode.h>
#include <torch/csrc/jit/serialization/import.h>
#include <torch/nn/module.h>
#include <torch/serialize/output-archive.h>

#include "argosy/base/check.h"
#include "argosy/os/whole_file.h"

namespace argosy::engine {
namespace {

constexpr const char* kSave = "engine.save_weights";
constexpr const char* kLoad = "engine.load_weights";

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
  auto file = os::WholeFile::create(path).or_throw<CheckpointError>(kSave, CheckpointPlace{path});
  archive.save_to([&](const void* data, std::size_t size) {
    file.write({static_cast<const std::byte*>(data), size});
    return size;
  });
  file.commit().or_throw<CheckpointError>(kSave, CheckpointPlace{path});
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
            "{} bytes that libtorch does not read ({}). What Python's torch.save made of a "
            "state_dict "
            "is for read_torch_file",
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
