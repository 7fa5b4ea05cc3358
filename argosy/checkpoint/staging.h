#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "argosy/checkpoint/manifest.h"
#include "argosy/engine/state_dict.h"
#include "argosy/formats/safetensors.h"

// Internal to the room: tensors as the bytes of their future files.
namespace argosy::checkpoint {

/// Memory for copies, kept between saves. The pages of new memory would be faulted in each time,
/// which costs more than the copy.
class StagingPool final {
 public:
  /// `copies`: false where nobody writes to the tensors before the files are written.
  explicit StagingPool(bool copies) : copies_(copies) {}

  [[nodiscard]] bool copies() const { return copies_; }
  /// Valid until the next reset().
  std::span<std::byte> take(size_t bytes);
  void reset() { used_ = 0; }

 private:
  const bool copies_;
  std::vector<at::Tensor> blocks_{};
  size_t used_ = 0;
};

/// A safetensors file that is not written yet.
struct StagedFile {
  std::string name{};
  formats::SafetensorsLayout layout{};
  std::vector<std::span<const std::byte>> data{};  ///< the bytes after layout.head
  std::vector<at::Tensor> values{};                ///< where they lie, if not in the pool
  std::vector<ManifestTensor> tensors{};           ///< entries for the manifest

  [[nodiscard]] int64_t data_bytes() const {
    return layout.header.file_bytes - layout.header.data_offset;
  }
};

/// Plans the file of the tensors; of those that ranks divide, this one's part. If the pool copies,
/// they are copied into it from any device. Else only those are that do not lie in rows on the CPU.
/// Errors: CheckpointError naming an entry that is undefined, sparse or complex, or whose name is
/// not UTF-8.
[[nodiscard]] StagedFile stage(const std::string& name,
                               const std::string& part,
                               const engine::StateDict& dict,
                               StagingPool& pool);

}  // namespace argosy::checkpoint
