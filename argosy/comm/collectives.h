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
#include "argosy/transport/leaf_deal.h"
#include "argosy/transport/shared_block.h"
#include "argosy/transport/types.h"

namespace argosy::comm {

using transport::LeafDeal;
using transport::ReduceOp;
using transport::SharedBlock;

/// Collectives, point-to-point messages and objects. Each call has the same order: what it writes,
/// what it reads, the peer of a message, the group, and options. A name that ends in _async starts
/// the operation and returns its Work.
///
///     comm::all_reduce(loss, world, {.op = comm::ReduceOp::kAvg});
///     comm::Work work = comm::all_gather_async(outputs, input, world, {.timeout = 10s});
///     work.wait();
///
/// All ranks of `group` call the collectives in the same order, with equal shape and dtype.
/// ARGOSY_CHECKED=1 compares these and names who differs.
///
/// Shape: any, including 0-dim and empty tensors, with any strides. A tensor that is not contiguous
/// travels through a contiguous row-major copy, so ranks may differ in memory format. A tensor that
/// is written must not overlap itself (expand()).
/// Types: reductions take f32 f64 f16 bf16 i8 u8 i32 i64 bool and sum 16-bit floats in f32. All
/// other operations move tensors of any dtype. Where ranks use different ones, they get an error;
/// but a dtype that is not among those nine travels as bytes, so it is not told apart from u8 of
/// the same size.
/// Devices: any. Over NCCL or RCCL (docs/guides/accelerators.md) a call queues work of the device
/// behind that of the current stream, and its Work is an event: wait() makes the current stream
/// wait, and blocks nobody. Without them, and where ranks have different devices, a tensor is
/// copied to the host before the operation and back after it: an _async operation waits for the
/// first copy, and for earlier work of the current stream, and its Work completes after the second
/// copy, in that stream's order.
/// Lifetime: an _async operation keeps its tensors alive. Do not read or write them before wait().
/// Autograd: not recorded. Results are also written into leaves that require grad.
/// Errors: UsageError at once; CommError or TimeoutError from the call or from Work::wait(). After
/// these the group is broken: later operations fail at once and name the first cause.
/// A `timeout` of zero means the group's.

struct AllReduceOptions {
  ReduceOp op = ReduceOp::kSum;
  std::chrono::milliseconds timeout{0};
  /// The place in the training. Ranks at different places get an error that says so.
  transport::TrainingPlace place{};
  /// On devices: the bits that all transports give, instead of NCCL's own order, which is faster.
  bool exact = false;
};
struct ReduceOptions {
  int root = 0;  ///< a rank of the group
  ReduceOp op = ReduceOp::kSum;
  std::chrono::milliseconds timeout{0};
};
struct ReduceScatterOptions {
  ReduceOp op = ReduceOp::kSum;
  std::chrono::milliseconds timeout{0};
  transport::TrainingPlace place{};  ///< as for all_reduce()
  bool exact = false;                ///< as for all_reduce()
};
/// For operations from or to one rank.
struct RootOptions {
  int root = 0;  ///< a rank of the group
  std::chrono::milliseconds timeout{0};
};
/// For operations with nothing to choose but how long they may last.
struct TimeoutOptions {
  std::chrono::milliseconds timeout{0};
};

/// Reduces `tensor` over all ranks, in place.
void all_reduce(const at::Tensor& tensor, const Group& group, const AllReduceOptions& options = {});
[[nodiscard]] Work all_reduce_async(const at::Tensor& tensor,
                                    const Group& group,
                                    const AllReduceOptions& options = {});

/// What a rank brings to a reduction over the leaves of a tree, and where it takes the result.
struct LeafTensors {
  std::shared_ptr<const transport::LeafDeal> deal{};  ///< of all leaves; equal on all ranks
  std::vector<at::Tensor> nodes{};  ///< the reduction of each of deal->nodes(rank())
  at::Tensor result{};              ///< like a node; may be one of them
};
/// Reduces the leaves of all ranks; kAvg divides by their number. The nodes keep their values,
/// except for one that is the result.
void all_reduce(const LeafTensors& leaves,
                const Group& group,
                const AllReduceOptions& options = {});
[[nodiscard]] Work all_reduce_async(const LeafTensors& leaves,
                                    const Group& group,
                                    const AllReduceOptions& options = {});

/// Reduces tensors of equal shape and type, one for each leaf of this rank in its order, into a new
/// one. A rank without leaves gives none.
[[nodiscard]] at::Tensor all_reduce_leaves(const std::vector<at::Tensor>& leaves,
                                           const std::shared_ptr<const LeafDeal>& deal,
                                           const Group& group,
                                           const AllReduceOptions& options = {});

/// Reduces `tensor` on the root, in place. Other ranks keep theirs.
void reduce(const at::Tensor& tensor, const Group& group, const ReduceOptions& options = {});
[[nodiscard]] Work reduce_async(const at::Tensor& tensor,
                                const Group& group,
                                const ReduceOptions& options = {});

/// Copies the root's `tensor` into that of every other rank.
void broadcast(const at::Tensor& tensor, const Group& group, const RootOptions& options = {});
[[nodiscard]] Work broadcast_async(const at::Tensor& tensor,
                                   const Group& group,
                                   const RootOptions& options = {});

struct AllGatherOptions {
  std::chrono::milliseconds timeout{0};
  transport::TrainingPlace place{};  ///< as for all_reduce()
};
/// Writes rank r's `input` into outputs[r] on every rank. A list has one tensor for each rank; all
/// have one shape and dtype.
void all_gather(const std::vector<at::Tensor>& outputs,
                const at::Tensor& input,
                const Group& group,
                const AllGatherOptions& options = {});
[[nodiscard]] Work all_gather_async(const std::vector<at::Tensor>& outputs,
                                    const at::Tensor& input,
                                    const Group& group,
                                    const AllGatherOptions& options = {});
/// The same into new tensors, which are parts of one block of memory.
[[nodiscard]] std::vector<at::Tensor> all_gather(const at::Tensor& input,
                                                 const Group& group,
                                                 const TimeoutOptions& options = {});
/// Returns the ranks' inputs, concatenated along dim 0. Their first sizes may differ; other sizes
/// and dtypes must agree, which is always checked.
[[nodiscard]] at::Tensor all_gather_uneven(const at::Tensor& input,
                                           const Group& group,
                                           const TimeoutOptions& options = {});

/// Writes rank r's `input` into outputs[r] on the root. Other ranks give no outputs.
void gather(const std::vector<at::Tensor>& outputs,
            const at::Tensor& input,
            const Group& group,
            const RootOptions& options = {});
[[nodiscard]] Work gather_async(const std::vector<at::Tensor>& outputs,
                                const at::Tensor& input,
                                const Group& group,
                                const RootOptions& options = {});
/// The same into new tensors. Returns none on ranks other than the root.
[[nodiscard]] std::vector<at::Tensor> gather(const at::Tensor& input,
                                             const Group& group,
                                             const RootOptions& options = {});

/// Writes the root's inputs[rank()] into `output`. Other ranks give no inputs.
void scatter(const at::Tensor& output,
             const std::vector<at::Tensor>& inputs,
             const Group& group,
             const RootOptions& options = {});
[[nodiscard]] Work scatter_async(const at::Tensor& output,
                                 const std::vector<at::Tensor>& inputs,
                                 const Group& group,
                                 const RootOptions& options = {});

/// Writes the reduction of all ranks' inputs[rank()] into `output`.
void reduce_scatter(const at::Tensor& output,
                    const std::vector<at::Tensor>& inputs,
                    const Group& group,
                    const ReduceScatterOptions& options = {});
[[nodiscard]] Work reduce_scatter_async(const at::Tensor& output,
                                        const std::vector<at::Tensor>& inputs,
                                        const Group& group,
                                        const ReduceScatterOptions& options = {});

/// Writes inputs[rank()] of rank j into this rank's outputs[j]. Shapes may differ from pair to
/// pair.
void all_to_all(const std::vector<at::Tensor>& outputs,
                const std::vector<at::Tensor>& inputs,
                const Group& group,
                const TimeoutOptions& options = {});
[[nodiscard]] Work all_to_all_async(const std::vector<at::Tensor>& outputs,
                                    const std::vector<at::Tensor>& inputs,
                                    const Group& group,
                                    const TimeoutOptions& options = {});

/// Returns when all ranks have called it. The TimeoutError names the ranks that have not.
void barrier(const Group& group, const TimeoutOptions& options = {});
/// The Work ends when all ranks have called it.
[[nodiscard]] Work barrier_async(const Group& group, const TimeoutOptions& options = {});

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
/// Sends `tensor` to `peer`, or writes what `peer` sends into it. Beside the collectives: only the
/// two ranks call these.
void send(const at::Tensor& tensor, int peer, const Group& group, const PeerOptions& options = {});
void recv(const at::Tensor& tensor, int peer, const Group& group, const PeerOptions& options = {});
[[nodiscard]] Work send_async(const at::Tensor& tensor,
                              int peer,
                              const Group& group,
                              const PeerOptions& options = {});
[[nodiscard]] Work recv_async(const at::Tensor& tensor,
                              int peer,
                              const Group& group,
                              const PeerOptions& options = {});

/// Returns all ranks' bytes, which may have any length.
[[nodiscard]] std::vector<std::string> all_gather_object(const std::string& bytes,
                                                         const Group& group,
                                                         const TimeoutOptions& options = {});
/// Returns the root's bytes on every rank. Other ranks' `bytes` are not read.
[[nodiscard]] std::string broadcast_object(const std::string& bytes,
                                           const Group& group,
                                           const RootOptions& options = {});
/// Returns all ranks' bytes on the root, and none on other ranks.
[[nodiscard]] std::vector<std::string> gather_object(const std::string& bytes,
                                                     const Group& group,
                                                     const RootOptions& options = {});
/// Returns the root's bytes[rank()]. Other ranks give none.
[[nodiscard]] std::string scatter_object(const std::vector<std::string>& bytes,
                                         const Group& group,
                                         const RootOptions& options = {});

}  // namespace argosy::comm
