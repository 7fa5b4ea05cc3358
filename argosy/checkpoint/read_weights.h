#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "argosy/engine/state_dict.h"

namespace argosy::checkpoint {

enum class WeightsKind : uint8_t {
  kTorch,        ///< torch.save: .pt, .pth
  kTorchScript,  ///< torch.jit.save, torch::save of a module
  kSafetensors,
  kPaddle,  ///< paddle.save: .pdparams
  kFolder,  ///< a checkpoint of this library's
};
/// "torch", "torchscript", "safetensors", "paddle", "checkpoint".
[[nodiscard]] std::string_view to_string(WeightsKind kind);

/// What lies at `path`, by its content and not by its name.
/// Errors: CheckpointError: nothing there; none of these.
[[nodiscard]] WeightsKind weights_kind(const std::string& path);

/// A name in which `pattern` (a regular expression, found anywhere) is replaced: `$1` is its first
/// group. {"^module[.]", ""}, {"^layer([0-9])", "stage$1"}.
struct Rename {
  std::string pattern{};
  std::string replacement{};
};

struct ReadWeightsOptions {
  /// Where the tensors go: "cpu", "cuda", "cuda:1". Files that were written on another device come
  /// here, too; PyTorch's default would be the one where they were.
  std::string map_location = "cpu";
  /// Of a file by torch.save that holds more: where its state_dict is, "state_dict" or "model".
  std::string key{};
  /// Of a checkpoint's folder: which part.
  std::string part = "model";
  /// Taken away from names that begin with it: "module.".
  std::string strip_prefix{};
  /// After that, one after the other on every name.
  std::vector<Rename> renames{};
  /// After those; an empty result leaves the entry out.
  std::function<std::string(const std::string& name)> rename{};

  /// Errors: UsageError that names the field: a pattern that is none, a device that is none or not
  /// here.
  void validate() const;
};

/// Weights from anything: .pt and .pth by PyTorch or save_weights(), .safetensors, .pdparams by
/// Paddle, TorchScript's archives, a checkpoint's folder.
///
///     engine::StateDict dict = checkpoint::read_weights("resnet18-f37072fd.pth");
///
/// Errors: CheckpointError with path: as the readers of each kind; two entries that get one name by
///   a rename. UsageError for the options.
[[nodiscard]] engine::StateDict read_weights(const std::string& path,
                                             const ReadWeightsOptions& options = {});

/// read_weights() and engine::load_state_dict() in one; errors name the path. Of a file by Paddle,
/// norms' `_mean` and `_variance` are renamed and weights of linear layers transposed.
///
///     engine::LoadResult done = checkpoint::load_weights(
///         net, "backbone.pdparams", {.renames = {{"^backbone[.]", ""}}}, {.partial = true});
///     fmt::print("{}", done.to_string());
engine::LoadResult load_weights(const torch::nn::Module& module,
                                const std::string& path,
                                const ReadWeightsOptions& read = {},
                                const engine::LoadOptions& load = {});

template <typename T>
requires(!engine::detail::IsModule<T>) engine::LoadResult
    load_weights(const T& holder,
                 const std::string& path,
                 const ReadWeightsOptions& read = {},
                 const engine::LoadOptions& load = {}) {
  return load_weights(engine::module_of(holder), path, read, load);
}

/// The word of `argosy checkpoint hash`, for tensors in memory: see WeightsDigest.
[[nodiscard]] std::string weights_hash(const engine::StateDict& dict);

}  // namespace argosy::checkpoint
