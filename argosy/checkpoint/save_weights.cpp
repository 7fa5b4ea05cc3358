#include "argosy/checkpoint/save_weights.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include <torch/nn/module.h>

#include "argosy/base/check.h"
#include "argosy/checkpoint/paddle_file_write.h"
#include "argosy/checkpoint/paddle_names.h"
#include "argosy/checkpoint/safetensors_file.h"
#include "argosy/checkpoint/together.h"
#include "argosy/checkpoint/torch_file_write.h"

namespace argosy::checkpoint {
namespace {

constexpr const char* kSaveWeights = "checkpoint.save_weights";
constexpr std::array<std::string_view, 4> kEndings{".pt", ".pth", ".safetensors", ".pdparams"};

std::string ending_of(const std::string& path) {
  std::string ending = std::filesystem::path(path).extension().string();
  ARGOSY_CHECK(is_weights_ending(ending),
               kSaveWeights,
               "{}: the ending says what to write: expected .pt, .pth, .safetensors or .pdparams, "
               "got \"{}\". Choose one of these, or save a checkpoint's folder by a Saver",
               path,
               ending);
  return ending;
}

/// Whoever writes the files reads memory by itself.
void check_here(const engine::StateDict& dict) {
  for (const auto& [name, tensor] : dict) {
    check_is_here(name, tensor);
  }
}

}  // namespace

bool is_weights_ending(std::string_view ending) {
  return std::ranges::find(kEndings, ending) != kEndings.end();
}

void save_weights(const engine::StateDict& dict, const std::string& path) {
  const std::string ending = ending_of(path);
  check_here(dict);
  ARGOSY_CHECK(ending != ".pdparams",
               kSaveWeights,
               "{}: expected a module for Paddle's format, got names and tensors: only the module "
               "knows which weights Paddle transposes. Call save_weights(model, path)",
               path);
  if (ending == ".safetensors") {
    write_safetensors(path, dict);
  } else {
    write_torch_file(path, dict);
  }
}

void save_weights(const torch::nn::Module& module, const std::string& path) {
  const engine::StateDict dict = engine::state_dict(module);
  if (ending_of(path) == ".pdparams") {
    check_here(dict);
    write_paddle_file(path, to_paddle(dict, module));
  } else {
    save_weights(dict, path);
  }
}

void save_weights_together(const torch::nn::Module& module,
                           const std::string& path,
                           const comm::Group& group) {
  (void)ending_of(path);  // on all ranks alike
  together(
      group, kSaveWeights, path, [&] { save_weights(module, path); }, Who::kFirst);
}

}  // namespace argosy::checkpoint
