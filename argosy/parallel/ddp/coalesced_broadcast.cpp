#include "argosy/parallel/ddp/coalesced_broadcast.h"

#include <unordered_set>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include "argosy/comm/collectives.h"

namespace argosy::parallel::ddp {
namespace {

constexpr int64_t kAlignBytes = 16;  // the widest element type

int64_t aligned(int64_t bytes) {
  return (bytes + kAlignBytes - 1) / kAlignBytes * kAlignBytes;
}

at::Tensor alias(const at::Tensor& memory,
                 int64_t offset,
                 at::IntArrayRef sizes,
                 at::IntArrayRef strides,
                 at::ScalarType dtype) {
  return at::empty({0}, memory.options().requires_grad(false).dtype(dtype))
      .set_(memory.storage(), offset, sizes, strides);
}

at::Tensor as_bytes(const at::Tensor& dense) {
  return alias(dense,
               dense.storage_offset() * static_cast<int64_t>(dense.element_size()),
               {static_cast<int64_t>(dense.nbytes())},
               {1},
               at::kByte);
}

}  // namespace

CoalescedBroadcast::CoalescedBroadcast(const std::vector<at::Tensor>& tensors,
                                       int64_t chunk_bytes) {
  at::NoGradGuard no_grad;
  std::unordered_set<const c10::TensorImpl*> seen;
  std::vector<at::Tensor> waiting;
  int64_t waiting_bytes = 0;
  auto flush = [&] {
    if (!waiting.empty()) {
      pack(waiting, waiting_bytes);
    }
    waiting.clear();
    waiting_bytes = 0;
  };
  for (const at::Tensor& tensor : tensors) {
    if (!tensor.defined() || tensor.numel() == 0 ||
        !seen.insert(tensor.unsafeGetTensorImpl()).second) {
      continue;
    }
    const int64_t bytes = static_cast<int64_t>(tensor.nbytes());
    if (bytes >= chunk_bytes && tensor.is_non_overlapping_and_dense()) {
      chunks_.push_back({.tensors = {tensor}});
      continue;
    }
    if (waiting_bytes + aligned(bytes) > chunk_bytes) {
      flush();
    }
    waiting.push_back(tensor);
    waiting_bytes += aligned(bytes);
  }
  flush();
}

void CoalescedBroadcast::pack(const std::vector<at::Tensor>& tensors, int64_t bytes) {
  Chunk chunk;
  chunk.bytes = at::zeros({bytes}, tensors.front().options().dtype(at::kByte));
  int64_t offset = 0;
  for (const at::Tensor& tensor : tensors) {
    const auto item = static_cast<int64_t>(tensor.element_size());
    const at::Tensor flat =
        alias(chunk.bytes, offset / item, {tensor.numel()}, {1}, tensor.scalar_type());
    chunk.packed.push_back(flat.view(tensor.sizes()));
    offset += aligned(static_cast<int64_t>(tensor.nbytes()));
  }
  chunk.tensors = tensors;
  chunks_.push_back(std::move(chunk));
}

void CoalescedBroadcast::run(const comm::Group& group,
                             int root,
                             std::chrono::milliseconds timeout) const {
  at::NoGradGuard no_grad;
  for (const Chunk& chunk : chunks_) {
    if (chunk.packed.empty()) {
      const at::Tensor bytes = as_bytes(chunk.tensors.front().variable_data());
      comm::broadcast(bytes, group, {.root = root, .timeout = timeout});
      continue;
    }
    if (group.rank() == root) {
      for (size_t k = 0; k < chunk.packed.size(); ++k) {
        chunk.packed[k].copy_(chunk.tensors[k].variable_data());
      }
    }
    comm::broadcast(chunk.bytes, group, {.root = root, .timeout = timeout});
    if (group.rank() != root) {
      for (size_t k = 0; k < chunk.packed.size(); ++k) {
        // variable_data() has no version counter: see the class.
        chunk.tensors[k].variable_data().copy_(chunk.packed[k]);
      }
    }
  }
}

}  // namespace argosy::parallel::ddp
