// The backend "argosy" of torch.distributed.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "work.h"

namespace argosy_torch {

// What is the same for all calls of an operation.
struct Title {
  c10d::OpType type;
  const char* name;     // "all_reduce"
  const char* profile;  // "argosy:all_reduce", as Gloo says "gloo:all_reduce"
};

// How a group is made. `towards`: see ArgosyMeeting. `world_ranks`: empty where they are 0, 1, ...
struct GroupOptions {
  std::string name;
  std::string towards;
  std::chrono::milliseconds timeout;
  std::vector<int> world_ranks;
};

// All collectives and messages between the ranks of a group, for tensors on the CPU.
//
// Operations run one after another in a thread of the group's, in the order of the calls; with
// async_op=False in the caller's. Messages run beside them. Thread-safe.
class ProcessGroup final : public Base {
 public:
  ProcessGroup(const c10::intrusive_ptr<c10d::Store>& store,
               int rank,
               int size,
               const GroupOptions& options);
  ~ProcessGroup() override;

  const std::string getBackendName() const override { return "argosy"; }

  using WorkPtr = c10::intrusive_ptr<c10d::Work>;
  WorkPtr broadcast(Tensors& tensors, const c10d::BroadcastOptions& opts) override;
  WorkPtr allreduce(Tensors& tensors, const c10d::AllreduceOptions& opts) override;
  WorkPtr allreduce_sparse(Tensors& tensors, const c10d::AllreduceOptions& opts);
  WorkPtr allreduce_coalesced(Tensors& tensors,
                              const c10d::AllreduceCoalescedOptions& opts) override;
  WorkPtr reduce(Tensors& tensors, const c10d::ReduceOptions& opts) override;
  WorkPtr allgather(std::vector<Tensors>& outputs,
                    Tensors& inputs,
                    const c10d::AllgatherOptions& opts) override;
  WorkPtr _allgather_base(at::Tensor& output,
                          at::Tensor& input,
                          const c10d::AllgatherOptions& opts) override;
  WorkPtr allgather_coalesced(std::vector<Tensors>& outputs,
                              Tensors& inputs,
                              const c10d::AllgatherOptions& opts) override;
  WorkPtr allgather_into_tensor_coalesced(Tensors& outputs,
                                          Tensors& inputs,
                                          const c10d::AllgatherOptions& opts);
  WorkPtr gather(std::vector<Tensors>& outputs,
                 Tensors& inputs,
                 const c10d::GatherOptions& opts) override;
  WorkPtr scatter(Tensors& outputs,
                  std::vector<Tensors>& inputs,
                  const c10d::ScatterOptions& opts) override;
  WorkPtr reduce_scatter(Tensors& outputs,
                         std::vector<Tensors>& inputs,
                         const c10d::ReduceScatterOptions& opts) override;
  WorkPtr _reduce_scatter_base(at::Tensor& output,
                               at::Tensor& input,
                               const c10d::ReduceScatterOptions& opts) override;
  WorkPtr reduce_scatter_tensor_coalesced(Tensors& outputs,
                                          Tensors& inputs,
                                          const c10d::ReduceScatterOptions& opts);
  WorkPtr alltoall_base(at::Tensor& output,
                        at::Tensor& input,
                        std::vector<int64_t>& output_splits,
                        std::vector<int64_t>& input_splits,
                        const c10d::AllToAllOptions& opts) override;
  WorkPtr alltoall(Tensors& outputs, Tensors& inputs, const c10d::AllToAllOptions& opts) override;
  WorkPtr send(Tensors& tensors, int peer, int tag) override;
  WorkPtr recv(Tensors& tensors, int peer, int tag) override;
  WorkPtr recvAnysource(Tensors& tensors, int tag) override;
  WorkPtr barrier(const c10d::BarrierOptions& opts) override;
  void monitoredBarrier(const c10d::BarrierOptions& opts, bool wait_all_ranks) override;

#ifdef ARGOSY_TORCH_ALLOCATES
  // Memory in which an all_reduce copies nothing: DistributedDataParallel has its buckets here.
  // Collective.
  at::Tensor allocateTensor(long size, at::TensorOptions options) override;
  bool supportsTensorAlloc(c10::DeviceIndex device) override {
    return device < 0;
  }
#endif

#ifdef ARGOSY_TORCH_SPLITS
  bool supportsSplitting() const override {
    return true;
  }
  c10::intrusive_ptr<Options> getBackendOptions() override;
  // `ranks` are numbers in this group. Returns null where this rank is not among them.
  c10::intrusive_ptr<c10d::Backend> split(const c10::intrusive_ptr<c10d::Store>& store,
                                          const std::vector<int>& ranks,
                                          const c10::intrusive_ptr<Options>& opts) override;
  c10::intrusive_ptr<c10d::Backend> merge(const c10::intrusive_ptr<c10d::Store>& store,
                                          const c10::intrusive_ptr<Options>& opts,
                                          const int& rank,
                                          const int& size) override;
#endif

  // Of operations so far: the same on all ranks.
  uint64_t getSequenceNumberForGroup() override {
    return static_cast<uint64_t>(next_.load());
  }
  void setSequenceNumberForGroup() override {}
  void setTimeout(std::chrono::milliseconds timeout);
  void shutdown();
  void abort();

  // The newest operations, as JSON.
  std::string record() const;

 private:
  using Body = std::function<void(const Steps&)>;
  struct Call {
    Title title;
    std::chrono::milliseconds timeout;
    bool waits;
    const Tensors& inputs;  // for messages and profiles
    Tensors outputs;
    size_t lists = 1;  // that the outputs are given in
  };
  WorkPtr submit(const Call& call, Body body);
  WorkPtr receive(const Title& title, const at::Tensor& tensor, int peer, int tag);
  void transfer(const c10::intrusive_ptr<Work>& work,
                const at::Tensor& tensor,
                bool receives,
                int peer,
                int tag);
  int64_t milliseconds(std::chrono::milliseconds timeout) const;

  const GroupOptions made_by_;
  ArgosyGroup* group_ = nullptr;
  std::atomic<int64_t> timeout_ms_;
  std::atomic<int64_t> next_{0};
};

}  // namespace argosy_torch
