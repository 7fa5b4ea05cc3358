#include "argosy/checkpoint/torch_script.h"

#include <fmt/format.h>

#include <exception>

#include <torch/csrc/jit/serialization/import.h>

#include "argosy/base/error.h"

namespace argosy::checkpoint {
namespace {

void collect(const torch::jit::Module& module, const std::string& prefix, engine::StateDict& dict) {
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

engine::StateDict read_torch_script(const std::string& path) {
  engine::StateDict dict;
  try {
    collect(torch::jit::load(path, at::kCPU), "", dict);
  } catch (const std::exception& error) {
    const std::string words = error.what();  // libtorch appends a backtrace
    throw CheckpointError(
        "checkpoint.read_weights",
        fmt::format("expected a whole archive by torch::save or torch.jit.save, got what libtorch "
                    "does not read ({})",
                    words.substr(0, words.find('\n'))),
        {path, {}});
  }
  return dict;
}

}  // namespace argosy::checkpoint
