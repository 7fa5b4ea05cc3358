#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "argosy/checkpoint/manifest.h"
#include "argosy/engine/state_dict.h"
#include "argosy/formats/safetensors.h"

// Internal to the room: copies of tensors, as the bytes of their future files.
namespace argosy::checkpoint {

/// Memory that is kept between saves. The pages of new memory would be faulted in each time, which
/// costs more than the copy.
class StagingPool final {
 public:
  /// Valid until the next reset().
  std::span<std::byte> take(size_t bytes);
  void reset() { used_ = 0; }

 private:
  std::vector<at::Tensor> blocks_;
  size_t used_ = 0;
};

/// A safetensors file that is not written yet.
struct StagedFile {
  std::string name{};
  formats::SafetensorsLayout layout{};
  std::span<const std::byte> data{};      ///< the bytes after layout.head; owned by the pool
  std::vector<ManifestTensor> tensors{};  ///< entries for the manifest
};

/// Copies the tensors, from any device, into the pool; of those that ranks divide, this one's part.
/// Errors: CheckpointError naming an entry that is undefined, sparse or complex, or whose name is
/// not UTF-8.
[[nodiscard]] StagedFile stage(const std::string& name,
                               const std::string& part,
                               const engine::StateDict& dict,
                               StagingPool& pool);

}  // namespace argosy::checkpoint
