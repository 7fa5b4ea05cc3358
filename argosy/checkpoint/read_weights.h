#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "argosy/checkpoint/load.h"
#include "argosy/engine/state_dict.h"

namespace argosy::checkpoint {

enum class WeightsKind : uint8_t {
  kTorch,        ///< torch.save: .pt, .pth
  kTorchScript,  ///< torch.jit.save, torch::save of a module
  kSafetensors,
  kSafetensorsIndex,  ///< Hugging Face's model.safetensors.index.json, of files beside it
  kPaddle,            ///< paddle.save: .pdparams
  kFolder,            ///< a checkpoint of this library
};
/// "torch", "torchscript", "safetensors", "safetensors index", "paddle", "checkpoint".
[[nodiscard]] std::string_view to_string(WeightsKind kind);

/// Returns the kind of file at `path`, by its content and not by its name.
/// Errors: CheckpointError if there is no file, or another kind of file.
[[nodiscard]] WeightsKind weights_kind(const std::string& path);

/// Replaces `pattern`, a regular expression that may match anywhere in a name; `$1` is its first
/// group. Examples: {"^module[.]", ""}, {"^layer([0-9])", "stage$1"}.
struct Rename {
  std::string pattern{};
  std::string replacement{};
};

struct ReadWeightsOptions {
  /// The device for the tensors: "cpu", "cuda", "cuda:1". PyTorch's default is the device on which
  /// they were saved.
  std::string map_location = "cpu";
  /// The key of the state_dict in a file by torch.save that holds more: "state_dict" or "model".
  std::string key{};
  /// The part of a checkpoint's folder.
  std::string part = "model";
  /// For a checkpoint's folder. load_weights() reads what the module needs in any case.
  Reading reading = Reading::kNow;
  /// A prefix that is removed from names: "module.".
  std::string strip_prefix{};
  /// Then applied to every name, one after the other.
  std::vector<Rename> renames{};
  /// Applied last. An empty result leaves the entry out.
  std::function<std::string(const std::string& name)> rename{};

  /// Errors: UsageError that names the field, for an invalid pattern, or a device that does not
  /// exist.
  void validate() const;
};

/// Reads weights from any file: .pt and .pth by PyTorch or save_weights(), .safetensors, the index
/// of several of those (model.safetensors.index.json), .pdparams by Paddle, archives of
/// TorchScript, a checkpoint's folder.
///
///     engine::StateDict dict = checkpoint::read_weights("resnet18-f37072fd.pth");
///
/// Errors: CheckpointError with the path, as the reader of each kind says, or for two entries that
/// a rename gives the same name. UsageError for the options.
[[nodiscard]] engine::StateDict read_weights(const std::string& path,
                                             const ReadWeightsOptions& options = {});

/// read_weights() and engine::load_state_dict() in one; errors name the path. For a file by Paddle,
/// `_mean` and `_variance` of norms are renamed, and weights of linear layers are transposed.
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

/// Returns the hash of `argosy checkpoint hash` for tensors in memory; see WeightsDigest.
[[nodiscard]] std::string weights_hash(const engine::StateDict& dict);

}  // namespace argosy::checkpoint
