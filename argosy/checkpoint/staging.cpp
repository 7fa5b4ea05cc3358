#include "argosy/checkpoint/staging.h"

#include <cstring>

#include <ATen/Functions.h>
#include <c10/core/GradMode.h>

#include "argosy/base/error.h"
#include "argosy/checkpoint/piece.h"
#include "argosy/checkpoint/safetensors_file.h"
#include "argosy/engine/parts.h"

namespace argosy::checkpoint {
namespace {

/// The elements of a tensor, row-major. By one thread where they lie so already: copy_() would
/// split each among all, who on a machine with other work wait for the last (ResNet-18 with Adam's
/// state: 45 ms, against 40 to 520).
void copy(const at::Tensor& any, std::byte* to) {
  if (any.numel() == 0) {
    return;
  }
  const at::Tensor tensor = engine::values_of(any);
  if (tensor.is_cpu() && tensor.is_contiguous() && !tensor.is_neg()) {
    std::memcpy(to, tensor.data_ptr(), tensor.nbytes());
    return;
  }
  at::from_blob(to, tensor.sizes(), at::TensorOptions(tensor.scalar_type())).copy_(tensor.detach());
}

ManifestTensor manifest_entry(const std::string& part,
                              const formats::SafetensorEntry& entry,
                              const Piece& piece,
                              const std::string& file) {
  ManifestTensor tensor{
      .part = part, .name = entry.name, .dtype = std::string(to_string(entry.type))};
  if (piece.is_all) {
    tensor.shape = entry.shape;
    tensor.file = file;
  } else {
    tensor.shape = piece.shape;
    tensor.pieces = {{file, piece.range}};
    tensor.order = piece.order;
  }
  return tensor;
}

}  // namespace

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

StagedFile stage(const std::string& name,
                 const std::string& part,
                 const engine::StateDict& dict,
                 StagingPool& pool) {
  const c10::NoGradGuard no_grad;
  StagedFile file{.name = name};
  std::vector<formats::SafetensorEntry> entries;
  std::vector<at::Tensor> values;
  for (const auto& [key, tensor] : dict) {
    const Piece piece = piece_of(tensor);
    entries.push_back(describe_safetensor(key, piece.values));
    file.tensors.push_back(manifest_entry(part, entries.back(), piece, name));
    values.push_back(piece.values);
  }
  try {
    file.layout = formats::lay_out_safetensors(std::move(entries));
  } catch (const DataError& error) {
    throw CheckpointError("checkpoint.save", error.what(), {name, {}});
  }
  const formats::SafetensorsHeader& header = file.layout.header;
  const auto bytes = pool.take(static_cast<size_t>(header.file_bytes - header.data_offset));
  for (size_t i = 0; i < values.size(); ++i) {
    copy(values[i], bytes.data() + (header.entries[i].offset - header.data_offset));
  }
  file.data = bytes;
  return file;
}

}  // namespace argosy::checkpoint
