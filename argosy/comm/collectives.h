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

/// All operations below: Collective over `group`, same order on all ranks, equal shape and dtype
/// (ARGOSY_CHECKED=1 compares them and names who differs).
///
/// Shape: any, 0-dim and zero-size ones too; strided. What is not contiguous travels through a
/// contiguous copy in row-major order, so ranks may differ in memory format; results land in the
/// caller's tensor. A tensor that is written must not overlap itself (expand()).
/// Devices: any; a tensor that is not on the CPU goes through the host's memory, copied down before
/// and up after (NCCL is not used yet): an _async operation waits for the copy down, and for the
/// work that the current stream has before it, and its Work completes after the copy up, in that
/// stream's order. Results come on the tensor's device; ranks may have theirs on different ones.
/// Types: reductions take f32 f64 f16 bf16 i8 u8 i32 i64 bool, 16-bit floats are summed in f32; all
/// other operations move tensors of any dtype.
/// Lifetime: an _async operation keeps its tensors alive; do not read or write them before wait().
/// Autograd: not recorded; results are written below it, also into leaves that require grad.
/// Errors: UsageError at once; CommError or TimeoutError from the call or from Work::wait(). After
/// either the group is broken: later operations fail at once and tell the first cause.
/// `timeout` zero means the group's.

struct ReduceOptions {
  ReduceOp op = ReduceOp::kSum;
  std::chrono::milliseconds timeout{0};
  /// all_reduce: where in a training this is; ranks that are at different places are told so.
  transport::TrainingPlace place{};
};
struct RootOptions {
  int root = 0;                  ///< rank in the group
  ReduceOp op = ReduceOp::kSum;  ///< of reduce()
  std::chrono::milliseconds timeout{0};
};
struct TimeoutOptions {
  std::chrono::milliseconds timeout{0};
};

/// In place.
void all_reduce(const at::Tensor& tensor, const Group& group, const ReduceOptions& options = {});
[[nodiscard]] Work all_reduce_async(const at::Tensor& tensor,
                                    const Group& group,
                                    const ReduceOptions& options = {});
/// In place on the root; other ranks keep theirs.
void reduce(const at::Tensor& tensor, const Group& group, const RootOptions& options = {});
[[nodiscard]] Work reduce_async(const at::Tensor& tensor,
                                const Group& group,
                                const RootOptions& options = {});
void broadcast(const at::Tensor& tensor, const Group& group, const RootOptions& options = {});
[[nodiscard]] Work broadcast_async(const at::Tensor& tensor,
                                   const Group& group,
                                   const RootOptions& options = {});

/// size() tensors shaped like `tensor`, in rank order: parts of one block of memory.
[[nodiscard]] std::vector<at::Tensor> all_gather(const at::Tensor& tensor,
                                                 const Group& group,
                                                 const TimeoutOptions& options = {});
/// Into `outputs`: size() tensors, each of `tensor`'s shape and dtype.
[[nodiscard]] Work all_gather_async(const std::vector<at::Tensor>& outputs,
                                    const at::Tensor& tensor,
                                    const Group& group,
                                    const TimeoutOptions& options = {});
/// Concatenation along dim 0 of tensors whose first sizes may differ between ranks; other sizes and
/// dtypes must agree, which is always checked.
[[nodiscard]] at::Tensor all_gather_uneven(const at::Tensor& tensor,
                                           const Group& group,
                                           const TimeoutOptions& options = {});
/// On the root: size() tensors; elsewhere: empty.
[[nodiscard]] std::vector<at::Tensor> gather(const at::Tensor& tensor,
                                             const Group& group,
                                             const RootOptions& options = {});
/// `tensors` (size() of them, shaped like `output`) count on the root only.
void scatter(const at::Tensor& output,
             const std::vector<at::Tensor>& tensors,
             const Group& group,
             const RootOptions& options = {});
/// `output` becomes the reduction over ranks of their `inputs[rank()]`.
void reduce_scatter(const at::Tensor& output,
                    const std::vector<at::Tensor>& inputs,
                    const Group& group,
                    const ReduceOptions& options = {});
[[nodiscard]] Work reduce_scatter_async(const at::Tensor& output,
                                        const std::vector<at::Tensor>& inputs,
                                        const Group& group,
                                        const ReduceOptions& options = {});
/// outputs[j] of this rank becomes inputs[rank()] of rank j; shapes may differ pair by pair.
void all_to_all(const std::vector<at::Tensor>& outputs,
                const std::vector<at::Tensor>& inputs,
                const Group& group,
                const TimeoutOptions& options = {});

/// Returns when all ranks have called it; the TimeoutError names those that have not.
void barrier(const Group& group, const TimeoutOptions& options = {});

/// `bytes` of memory that all ranks read and write, zeros at first; nullptr, on every rank, where
/// they cannot share memory: a group of one, several hosts, the backend gloo. An all_reduce of
/// tensors that lie in one block on all ranks, at places that do not overlap, sums them where they
/// lie.
[[nodiscard]] std::shared_ptr<SharedBlock> share_memory(size_t bytes,
                                                        const Group& group,
                                                        const TimeoutOptions& options = {});

/// Runs `action` on this rank, in the thread that works on the group's operations, after all that
/// were issued before; never when one of them failed. It must call no operation of the group. What
/// it throws comes out of Work::wait() and breaks the group, as an operation that fails does.
/// Collective, as all operations of a group: all ranks issue it in the same place.
[[nodiscard]] Work run_in_order(std::function<void()> action, const Group& group);

struct PeerOptions {
  uint32_t tag = 0;  ///< below 2^31; pairs a send with a receive; equal ones arrive in order
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

/// Bytes of any length, different on each rank.
[[nodiscard]] std::vector<std::string> all_gather_object(const std::string& bytes,
                                                         const Group& group,
                                                         const TimeoutOptions& options = {});
/// The root's bytes, on every rank.
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
