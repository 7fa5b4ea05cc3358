#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

#include "argosy/comm/collectives.h"

namespace argosy::comm {

/// PyTorch's collectives on one tensor that holds the parts of all ranks, and its batched
/// point-to-point messages. For shapes, devices, types and errors see collectives.h.

/// Writes the ranks' inputs into `output` in rank order, concatenated along dim 0 ([n·d0, …]) or
/// stacked ([n, d0, …]).
/// Source: torch.distributed.all_gather_into_tensor.
void all_gather_into_tensor(const at::Tensor& output,
                            const at::Tensor& input,
                            const Group& group,
                            const TimeoutOptions& options = {});
[[nodiscard]] Work all_gather_into_tensor_async(const at::Tensor& output,
                                                const at::Tensor& input,
                                                const Group& group,
                                                const TimeoutOptions& options = {});

/// Writes this rank's part of the reduction of `input` into `output`. `input` holds the parts of
/// all ranks, concatenated along dim 0 or stacked.
/// Source: torch.distributed.reduce_scatter_tensor.
void reduce_scatter_tensor(const at::Tensor& output,
                           const at::Tensor& input,
                           const Group& group,
                           const ReduceScatterOptions& options = {});
[[nodiscard]] Work reduce_scatter_tensor_async(const at::Tensor& output,
                                               const at::Tensor& input,
                                               const Group& group,
                                               const ReduceScatterOptions& options = {});

/// How all_to_all_single() divides dim 0. Empty sizes: into equal parts.
struct AllToAllSingleOptions {
  std::vector<int64_t> output_split_sizes{};  ///< sizes of the parts from each rank
  std::vector<int64_t> input_split_sizes{};   ///< sizes of the parts for each rank
  std::chrono::milliseconds timeout{0};
};
/// Sends part r of `input` to rank r, and receives part r of `output` from it.
/// Source: torch.distributed.all_to_all_single.
void all_to_all_single(const at::Tensor& output,
                       const at::Tensor& input,
                       const Group& group,
                       const AllToAllSingleOptions& options = {});
[[nodiscard]] Work all_to_all_single_async(const at::Tensor& output,
                                           const at::Tensor& input,
                                           const Group& group,
                                           const AllToAllSingleOptions& options = {});

/// PyTorch's names of send_async() and recv_async().
[[nodiscard]] inline Work isend(const at::Tensor& tensor,
                                int peer,
                                const Group& group,
                                const PeerOptions& options = {}) {
  return send_async(tensor, peer, group, options);
}
[[nodiscard]] inline Work irecv(const at::Tensor& tensor,
                                int peer,
                                const Group& group,
                                const PeerOptions& options = {}) {
  return recv_async(tensor, peer, group, options);
}

/// A message of batch_isend_irecv().
struct P2POp {
  enum class Kind : uint8_t { kSend, kRecv };
  Kind kind = Kind::kSend;
  at::Tensor tensor{};
  int peer = -1;
  PeerOptions options{};
};
/// Starts all messages and returns their Works in the same order. No order of the list can cause a
/// deadlock.
/// Source: torch.distributed.batch_isend_irecv.
[[nodiscard]] std::vector<Work> batch_isend_irecv(const std::vector<P2POp>& messages,
                                                  const Group& group);

}  // namespace argosy::comm
