#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "argosy/comm/group.h"
#include "argosy/comm/work.h"
#include "argosy/transport/shared_block.h"
#include "argosy/transport/types.h"

namespace argosy::comm {

using transport::ReduceOp;
using transport::SharedBlock;

/// All operations below are collective over `group`: all ranks call them in the same order, with
/// equal shape and dtype. ARGOSY_CHECKED=1 compares these and names who differs.
///
/// Shape: any, including 0-dim and empty tensors, with any strides. A tensor that is not contiguous
/// travels through a contiguous row-major copy, so ranks may differ in memory format. A tensor that
/// is written must not overlap itself (expand()).
/// Types: reductions take f32 f64 f16 bf16 i8 u8 i32 i64 bool and sum 16-bit floats in f32. All
/// other operations move tensors of any dtype.
/// Devices: any, also different ones on different ranks. A tensor of another device is copied to
/// the host before the operation and back after it, because NCCL is not used yet. An _async
/// operation waits for the first copy, and for earlier work of the current stream. Its Work
/// completes after the second copy, in that stream's order.
/// Lifetime: an _async operation keeps its tensors alive. Do not read or write them before wait().
/// Autograd: not recorded. Results are also written into leaves that require grad.
/// Errors: UsageError at once; CommError or TimeoutError from the call or from Work::wait(). After
/// these the group is broken: later operations fail at once and name the first cause.
/// A `timeout` of zero means the group's.

struct ReduceOptions {
  ReduceOp op = ReduceOp::kSum;
  std::chrono::milliseconds timeout{0};
  /// For all_reduce: the place in the training. Ranks at different places get an error that says
  /// so.
  transport::TrainingPlace place{};
};
struct RootOptions {
  int root = 0;                  ///< a rank of the group
  ReduceOp op = ReduceOp::kSum;  ///< for reduce()
  std::chrono::milliseconds timeout{0};
};
struct TimeoutOptions {
  std::chrono::milliseconds timeout{0};
};

/// Reduces `tensor` over all ranks, in place.
void all_reduce(const at::Tensor& tensor, const Group& group, const ReduceOptions& options = {});
[[nodiscard]] Work all_reduce_async(const at::Tensor& tensor,
                                    const Group& group,
                                    const ReduceOptions& options = {});
/// Reduces `tensor` on the root, in place. Other ranks keep theirs.
void reduce(const at::Tensor& tensor, const Group& group, const RootOptions& options = {});
[[nodiscard]] Work reduce_async(const at::Tensor& tensor,
                                const Group& group,
                                const RootOptions& options = {});
void broadcast(const at::Tensor& tensor, const Group& group, const RootOptions& options = {});
[[nodiscard]] Work broadcast_async(const at::Tensor& tensor,
                                   const Group& group,
                                   const RootOptions& options = {});

/// Returns size() tensors with the shape of `tensor`, in rank order. They are parts of one block of
/// memory.
[[nodiscard]] std::vector<at::Tensor> all_gather(const at::Tensor& tensor,
                                                 const Group& group,
                                                 const TimeoutOptions& options = {});
/// Writes into `outputs`: size() tensors, each with the shape and dtype of `tensor`.
[[nodiscard]] Work all_gather_async(const std::vector<at::Tensor>& outputs,
                                    const at::Tensor& tensor,
                                    const Group& group,
                                    const TimeoutOptions& options = {});
/// Returns the ranks' tensors, concatenated along dim 0. Their first sizes may differ; other sizes
/// and dtypes must agree, which is always checked.
[[nodiscard]] at::Tensor all_gather_uneven(const at::Tensor& tensor,
                                           const Group& group,
                                           const TimeoutOptions& options = {});
/// Returns size() tensors on the root, and nothing on other ranks.
[[nodiscard]] std::vector<at::Tensor> gather(const at::Tensor& tensor,
                                             const Group& group,
                                             const RootOptions& options = {});
/// Writes the root's tensors[rank()] into `output`. Only the root needs `tensors`: size() of them,
/// with the shape of `output`.
void scatter(const at::Tensor& output,
             const std::vector<at::Tensor>& tensors,
             const Group& group,
             const RootOptions& options = {});
/// Writes the reduction of all ranks' inputs[rank()] into `output`.
void reduce_scatter(const at::Tensor& output,
                    const std::vector<at::Tensor>& inputs,
                    const Group& group,
                    const ReduceOptions& options = {});
[[nodiscard]] Work reduce_scatter_async(const at::Tensor& output,
                                        const std::vector<at::Tensor>& inputs,
                                        const Group& group,
                                        const ReduceOptions& options = {});
/// Writes inputs[rank()] of rank j into this rank's outputs[j]. Shapes may differ from pair to
/// pair.
void all_to_all(const std::vector<at::Tensor>& outputs,
                const std::vector<at::Tensor>& inputs,
                const Group& group,
                const TimeoutOptions& options = {});

/// Returns when all ranks have called it. The TimeoutError names the ranks that have not.
void barrier(const Group& group, const TimeoutOptions& options = {});

/// Returns `bytes` of memory that all ranks read and write, filled with zeros. Returns nullptr on
/// every rank if they cannot share memory: a group of one, several hosts, or the backend gloo. An
/// all_reduce of tensors that lie in one block on all ranks, without overlap, sums them in place.
[[nodiscard]] std::shared_ptr<SharedBlock> share_memory(size_t bytes,
                                                        const Group& group,
                                                        const TimeoutOptions& options = {});

/// Runs `action` on this rank, in the thread of the group's operations, after all earlier
/// operations. It does not run if one of them failed, and must not call an operation of the group.
/// Its exception comes out of Work::wait() and breaks the group, like a failed operation.
/// Collective: all ranks call it in the same place.
[[nodiscard]] Work run_in_order(std::function<void()> action, const Group& group);

struct PeerOptions {
  uint32_t tag = 0;  ///< below 2^31; pairs a send with a receive; equal tags arrive in order
  std::chrono::milliseconds timeout{0};
};
void send(const at::Tensor& tensor, int peer, const Group& group, const PeerOptions& options = {});
void recv(const at::Tensor& tensor, int peer, const Group& group, const PeerOptions& options = {});
[[nodiscard]] Work isend(const at::Tensor& tensor,
                         int peer,
                         const Group& group,
                         const PeerOptions& options = {});
[[nodiscard]] Work irecv(const at::Tensor& tensor,
                         int peer,
                         const Group& group,
                         const PeerOptions& options = {});

/// Returns all ranks' bytes, which may have any length.
[[nodiscard]] std::vector<std::string> all_gather_object(const std::string& bytes,
                                                         const Group& group,
                                                         const TimeoutOptions& options = {});
/// Returns the root's bytes on every rank.
[[nodiscard]] std::string broadcast_object(const std::string& bytes,
                                           const Group& group,
                                           const RootOptions& options = {});
[[nodiscard]] std::vector<std::string> gather_object(const std::string& bytes,
                                                     const Group& group,
                                                     const RootOptions& options = {});
[[nodiscard]] std::string scatter_object(const std::vector<std::string>& bytes,
                                         const Group& group,
                                         const RootOptions& options = {});

}  // namespace argosy::comm
