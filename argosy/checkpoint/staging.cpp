#include "argosy/checkpoint/staging.h"

#include <ATen/Functions.h>
#include <c10/core/GradMode.h>

#include "argosy/base/error.h"
#include "argosy/engine/safetensors_file.h"

namespace argosy::checkpoint {

std::span<std::byte> StagingPool::take(size_t bytes) {
  if (used_ == blocks_.size()) {
    blocks_.emplace_back();
  }
  at::Tensor& block = blocks_[used_++];
  if (!block.defined() || block.nbytes() < bytes) {
    block = at::Tensor();  // before the new one comes
    block = at::empty({static_cast<int64_t>(bytes)}, at::kByte);
  }
  return {static_cast<std::byte*>(block.data_ptr()), bytes};
}

void StagedFile::add_tensors(std::vector<ManifestTensor>& tensors) const {
  for (const formats::SafetensorEntry& entry : layout.header.entries) {
    tensors.push_back({.part = part,
                       .name = entry.name,
                       .dtype = std::string(to_string(entry.type)),
                       .shape = entry.shape,
                       .file = name});
  }
}

StagedFile stage(const std::string& name,
                 const std::string& part,
                 const engine::StateDict& dict,
                 StagingPool& pool) {
  const c10::NoGradGuard no_grad;
  std::vector<formats::SafetensorEntry> entries;
  for (const auto& [key, tensor] : dict) {
    entries.push_back(engine::describe_safetensor(key, tensor));
  }
  StagedFile file{.name = name, .part = part};
  try {
    file.layout = formats::lay_out_safetensors(std::move(entries));
  } catch (const DataError& error) {
    throw CheckpointError("checkpoint.save", error.what(), {name, {}});
  }
  const formats::SafetensorsHeader& header = file.layout.header;
  const auto bytes = pool.take(static_cast<size_t>(header.file_bytes - header.data_offset));
  size_t i = 0;
  for (const auto& [key, tensor] : dict) {
    const formats::SafetensorEntry& entry = header.entries[i++];
    if (entry.bytes > 0) {
      at::from_blob(bytes.data() + (entry.offset - header.data_offset),
                    tensor.sizes(),
                    at::TensorOptions(tensor.scalar_type()))
          .copy_(tensor.detach());
    }
  }
  file.data = bytes;
  return file;
}

}  // namespace argosy::checkpoint
