#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

#include "argosy/comm/collectives.h"

namespace argosy::comm {

/// PyTorch's collectives on one tensor that holds the parts of all ranks, and its batched
/// point-to-point. What collectives.h says of shapes, devices, types and errors holds here too.

/// `output`: the ranks' inputs in rank order, either one after the other along dim 0 ([n·d0, …]) or
/// stacked ([n, d0, …]). Source: torch.distributed.all_gather_into_tensor.
void all_gather_into_tensor(const at::Tensor& output,
                            const at::Tensor& input,
                            const Group& group,
                            const TimeoutOptions& options = {});
[[nodiscard]] Work all_gather_into_tensor_async(const at::Tensor& output,
                                                const at::Tensor& input,
                                                const Group& group,
                                                const TimeoutOptions& options = {});

/// `output` becomes this rank's part of the reduction of `input`, which holds the parts of all
/// ranks one after the other along dim 0 or stacked. Source:
/// torch.distributed.reduce_scatter_tensor.
void reduce_scatter_tensor(const at::Tensor& output,
                           const at::Tensor& input,
                           const Group& group,
                           const ReduceOptions& options = {});
[[nodiscard]] Work reduce_scatter_tensor_async(const at::Tensor& output,
                                               const at::Tensor& input,
                                               const Group& group,
                                               const ReduceOptions& options = {});

/// How all_to_all_single() cuts dim 0; empty: in equal parts.
struct SplitSizes {
  std::vector<int64_t> output{};  ///< of what comes from each rank
  std::vector<int64_t> input{};   ///< of what goes to each rank
  std::chrono::milliseconds timeout{0};
};
/// Part r of `input` goes to rank r; part r of `output` comes from there.
/// Source: torch.distributed.all_to_all_single.
void all_to_all_single(const at::Tensor& output,
                       const at::Tensor& input,
                       const Group& group,
                       const SplitSizes& splits = {});

/// A message of batch_isend_irecv().
struct P2POp {
  enum class Kind : uint8_t { kSend, kRecv };
  Kind kind = Kind::kSend;
  at::Tensor tensor{};
  int peer = -1;
  PeerOptions options{};
};
/// Starts all messages and returns their Works in the same order. No order of the list can make
/// ranks wait for each other for ever. Source: torch.distributed.batch_isend_irecv.
[[nodiscard]] std::vector<Work> batch_isend_irecv(const std::vector<P2POp>& messages,
                                                  const Group& group);

}  // namespace argosy::comm
