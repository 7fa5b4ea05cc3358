// A process group of Paddle's over libargosy_comm.so.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "argosy/abi/library.h"

#include "paddle/phi/backends/context_pool.h"
#include "paddle/phi/core/distributed/collective/process_group.h"
#include "paddle/phi/core/distributed/store/store.h"

namespace argosy_paddle {

namespace pd = phi::distributed;
using phi::DenseTensor;

// How a group is made. `towards`: see ArgosyMeeting.
struct GroupOptions {
  int id;
  int world_rank;  // of this rank
  std::string towards;
  std::chrono::milliseconds timeout;
};

// All collectives and messages between the ranks of a group, for contiguous tensors on the CPU.
//
// Operations run one after another in a thread of the group's, in the order of the calls; with
// `sync` or `calc` in the caller's. Messages run beside them. A call returns when all is over where
// Paddle uses the output before it waits, whatever `sync` says: it takes the outputs of AllGather,
// Gather and AllToAll apart, and its reducer divides the sum of an AllReduce with vectors.
// Thread-safe.
//
// Errors are Paddle's exceptions: another one out of backward() would end the process.
class ProcessGroup final : public pd::ProcessGroup {
 public:
  using TaskPtr = std::shared_ptr<Task>;
  using Tensors = std::vector<DenseTensor>;
  using Rows = std::vector<int64_t>;

  // Collective.
  ProcessGroup(pd::Store& store, int rank, int size, const GroupOptions& options);
  ~ProcessGroup() override;

  std::string GetBackendName() const override { return "ARGOSY"; }
  phi::DeviceContext* GetDeviceContext(const phi::Place& place) const override {
    return phi::DeviceContextPool::Instance().Get(place);
  }
  phi::DeviceContext* GetDeviceContext(const phi::Place& place, bool /*calc*/) const override {
    return GetDeviceContext(place);
  }

  // The newest operations, as JSON.
  std::string record() const;

  TaskPtr AllReduce(DenseTensor* out,
                    const DenseTensor& in,
                    const pd::AllreduceOptions& opts,
                    bool sync) override;
  TaskPtr Broadcast(DenseTensor* out,
                    const DenseTensor& in,
                    const pd::BroadcastOptions& opts,
                    bool sync) override;
  TaskPtr Reduce(DenseTensor* out,
                 const DenseTensor& in,
                 const pd::ReduceOptions& opts,
                 bool sync) override;
  TaskPtr ReduceScatter(DenseTensor* out,
                        const DenseTensor& in,
                        const pd::ReduceScatterOptions& opts,
                        bool sync) override;
  TaskPtr Scatter(DenseTensor* out,
                  const DenseTensor& in,
                  const pd::ScatterOptions& opts,
                  bool sync) override;
  TaskPtr Gather(DenseTensor* out,
                 const DenseTensor& in,
                 const pd::GatherOptions& opts,
                 bool sync,
                 bool calc) override;
  // Of `in` the `count` elements from `offset` on; all, where it is kIgnoreId. Messages likewise.
  TaskPtr AllGather(
      DenseTensor* out, const DenseTensor& in, int64_t offset, int64_t count, bool sync) override;
  // Without rows each rank gets as many.
  TaskPtr AllToAll(DenseTensor* out,
                   const DenseTensor& in,
                   const Rows& out_rows,
                   const Rows& in_rows,
                   bool sync) override;
  // Paddle 3.0 does not have it: lists come by way of the one above.
  TaskPtr AllToAll(Tensors* outs, const Tensors& ins, bool sync);
  TaskPtr Send(
      const DenseTensor& tensor, int to, int64_t offset, int64_t count, bool sync) override;
  TaskPtr Recv(DenseTensor* tensor, int from, int64_t offset, int64_t count, bool sync) override;
  TaskPtr Barrier(const pd::BarrierOptions& opts) override;

  // The other forms that Paddle calls them by.
  TaskPtr AllReduce(DenseTensor* out,
                    const DenseTensor& in,
                    const pd::AllreduceOptions& opts,
                    bool sync,
                    bool calc) override {
    return AllReduce(out, in, opts, sync || calc);
  }
  TaskPtr AllReduce(Tensors& ins, Tensors& outs, const pd::AllreduceOptions& opts) override {
    check_single("all_reduce", ins.size(), outs.size());
    return AllReduce(outs.data(), ins.front(), opts, true);
  }
  TaskPtr AllReduce(Tensors& i, Tensors& o, const pd::AllreduceOptions& opts, bool) override {
    return AllReduce(i, o, opts);
  }
  TaskPtr AllReduce(Tensors& i, Tensors& o, const pd::AllreduceOptions& opts, bool, bool) {
    return AllReduce(i, o, opts);  // Paddle 3.0 does not have it
  }
  TaskPtr Broadcast(DenseTensor* out,
                    const DenseTensor& in,
                    const pd::BroadcastOptions& opts,
                    bool sync,
                    bool calc) override {
    return Broadcast(out, in, opts, sync || calc);
  }
  TaskPtr Reduce(DenseTensor* out,
                 const DenseTensor& in,
                 const pd::ReduceOptions& opts,
                 bool sync,
                 bool calc) override {
    return Reduce(out, in, opts, sync || calc);
  }
  TaskPtr ReduceScatter(DenseTensor* out,
                        const DenseTensor& in,
                        const pd::ReduceScatterOptions& opts,
                        bool sync,
                        bool calc) override {
    return ReduceScatter(out, in, opts, sync || calc);
  }
  TaskPtr Scatter(DenseTensor* out,
                  const DenseTensor& in,
                  const pd::ScatterOptions& opts,
                  bool sync,
                  bool calc) override {
    return Scatter(out, in, opts, sync || calc);
  }
  TaskPtr AllGather(DenseTensor* out, const DenseTensor& in, bool sync) override {
    return AllGather(out, in, 0, pd::kIgnoreId, sync);
  }
  TaskPtr AllGather(DenseTensor* out, const DenseTensor& in, bool sync, bool) override {
    return AllGather(out, in, sync);
  }
  TaskPtr AllGather(
      DenseTensor* out, const DenseTensor& in, int64_t from, int64_t n, bool sync, bool) override {
    return AllGather(out, in, from, n, sync);
  }
  TaskPtr AllToAll(DenseTensor* out,
                   const DenseTensor& in,
                   const Rows& out_rows,
                   const Rows& in_rows,
                   bool sync,
                   bool /*calc*/) override {
    return AllToAll(out, in, out_rows, in_rows, sync);
  }
  TaskPtr AllToAll(Tensors* outs, const Tensors& ins, bool sync, bool /*calc*/) {
    return AllToAll(outs, ins, sync);
  }
  TaskPtr Send(const DenseTensor& tensor, int to, bool sync) override {
    return Send(tensor, to, 0, pd::kIgnoreId, sync);
  }
  TaskPtr Send(const DenseTensor& tensor, int to, bool sync, bool calc) override {
    return Send(tensor, to, sync || calc);
  }
  TaskPtr Send(
      const DenseTensor& tensor, int to, int64_t from, int64_t n, bool sync, bool calc) override {
    return Send(tensor, to, from, n, sync || calc);
  }
  TaskPtr Recv(DenseTensor* tensor, int from, bool sync) override {
    return Recv(tensor, from, 0, pd::kIgnoreId, sync);
  }
  TaskPtr Recv(DenseTensor* tensor, int from, bool sync, bool calc) override {
    return Recv(tensor, from, sync || calc);
  }
  TaskPtr Recv(
      DenseTensor* tensor, int from, int64_t at, int64_t n, bool sync, bool calc) override {
    return Recv(tensor, from, at, n, sync || calc);
  }
  // The base's forms with vectors call the above.
  using pd::ProcessGroup::AllGather;
  using pd::ProcessGroup::AllToAll;
  using pd::ProcessGroup::Broadcast;
  using pd::ProcessGroup::Gather;
  using pd::ProcessGroup::Recv;
  using pd::ProcessGroup::Reduce;
  using pd::ProcessGroup::Scatter;
  using pd::ProcessGroup::Send;

 private:
  struct Call {
    const char* name;
    pd::CommType type;
    bool waits;                 // in the caller's thread, until it is over
    const DenseTensor* tensor;  // for messages; may be null
  };
  // `held` lives as long as the operation.
  TaskPtr submit(const Call& call, Tensors held, const ArgosyStep& step);
  TaskPtr transfer(const Call& call, int peer, int64_t offset, int64_t count);
  static void check_single(const char* op, size_t inputs, size_t outputs);
  void check_rank(const char* op, int rank) const;
  // The bytes of each rank's rows.
  Rows bytes_of_rows(const char* what, const DenseTensor& tensor, const Rows& rows) const;

  ArgosyGroup* group_ = nullptr;
};

}  // namespace argosy_paddle
