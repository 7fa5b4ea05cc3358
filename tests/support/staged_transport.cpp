#include "tests/support/staged_transport.h"

#include <functional>
#include <future>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ATen.h>

#include "argosy/comm/device_queues.h"
#include "argosy/transport/device_queue.h"

namespace argosy::test {
namespace {

using transport::Counts;
using transport::DType;
using transport::ReduceOp;
using transport::Timeout;
using transport::Transport;
using transport::TreeBuffers;

/// Bytes of the host, on the device for a while.
class OnDevice final {
 public:
  OnDevice() = default;
  /// `worked_on`: by which the memory is used, also where an operation fails.
  OnDevice(const void* host, int64_t bytes, c10::Stream worked_on)
      : there_(at::empty({bytes}, at::TensorOptions(worked_on.device()).dtype(at::kByte))) {
    if (bytes > 0) {
      there_.record_stream(worked_on);
    }
    if (host != nullptr && bytes > 0) {
      there_.copy_(view(const_cast<void*>(host), bytes));  // NOLINT: it is only read
    }
  }
  [[nodiscard]] void* data() const { return there_.defined() ? there_.data_ptr() : nullptr; }
  void back_to(void* host) const {
    if (host != nullptr && there_.defined() && there_.numel() > 0) {
      view(host, there_.numel()).copy_(there_);
    }
  }

 private:
  static at::Tensor view(void* host, int64_t bytes) {
    return at::from_blob(host, {bytes}, at::TensorOptions(at::kByte));
  }
  at::Tensor there_;
};

class Promise final : public transport::CollectiveListener {
 public:
  void started() override {}
  void ended(std::exception_ptr error) override {
    if (error != nullptr) {
      done_.set_exception(error);
    } else {
      done_.set_value();
    }
  }
  void wait() { done_.get_future().get(); }

 private:
  std::promise<void> done_;
};

/// One that has not ended well keeps its memory for good: the device may still write there, and
/// nothing waits for that.
class StagedTransfer final : public transport::Transfer {
 public:
  StagedTransfer(OnDevice memory, std::unique_ptr<Transfer> inner, void* back)
      : memory_(std::move(memory)), inner_(std::move(inner)), back_(back) {}
  ~StagedTransfer() override {
    if (!over_) {
      static std::mutex mutex;
      static std::vector<OnDevice> kept;
      const std::lock_guard lock(mutex);
      kept.push_back(memory_);
    }
  }
  StagedTransfer(const StagedTransfer&) = delete;
  StagedTransfer& operator=(const StagedTransfer&) = delete;
  void wait(Timeout timeout) override {
    const std::shared_ptr<transport::DeviceMark> done = inner_->queue(timeout);
    inner_->wait(timeout);
    if (done != nullptr) {
      done->hold_caller();
    }
    over_ = true;
    memory_.back_to(back_);
  }

 private:
  const OnDevice memory_;
  const std::unique_ptr<Transfer> inner_;
  void* const back_;
  bool over_ = false;
};

class Staged final : public Transport {
 public:
  explicit Staged(std::unique_ptr<Transport> inner)
      : inner_(std::move(inner)), stream_(comm::stream_of(*inner_->queue())) {}

  [[nodiscard]] int rank() const override { return inner_->rank(); }
  [[nodiscard]] int size() const override { return inner_->size(); }
  [[nodiscard]] std::string name() const override { return inner_->name(); }
  void set_place(const transport::TrainingPlace& place) override { inner_->set_place(place); }

  void all_reduce(void* data, int64_t count, DType dtype, ReduceOp op, Timeout timeout) override {
    const OnDevice memory = there(data, count, dtype);
    run([&] { inner_->all_reduce(memory.data(), count, dtype, op, timeout); });
    memory.back_to(data);
  }
  void all_reduce(const TreeBuffers& buffers,
                  int64_t count,
                  DType dtype,
                  ReduceOp op,
                  Timeout timeout) override {
    in_tree(buffers, count, count, dtype, [&](const TreeBuffers& there) {
      inner_->all_reduce(there, count, dtype, op, timeout);
    });
  }
  void reduce(
      void* data, int64_t count, DType dtype, ReduceOp op, int root, Timeout timeout) override {
    const OnDevice memory = there(data, count, dtype);
    run([&] { inner_->reduce(memory.data(), count, dtype, op, root, timeout); });
    memory.back_to(data);
  }
  void reduce(const TreeBuffers& buffers,
              int64_t count,
              DType dtype,
              ReduceOp op,
              int root,
              Timeout timeout) override {
    in_tree(buffers, count, count, dtype, [&](const TreeBuffers& there) {
      inner_->reduce(there, count, dtype, op, root, timeout);
    });
  }
  void broadcast(void* data, int64_t count, DType dtype, int root, Timeout timeout) override {
    const OnDevice memory = there(data, count, dtype);
    run([&] { inner_->broadcast(memory.data(), count, dtype, root, timeout); });
    memory.back_to(data);
  }
  void all_gather(
      const void* input, void* output, int64_t count, DType dtype, Timeout timeout) override {
    const OnDevice from = there(input, count, dtype), to = there(output, size() * count, dtype);
    run([&] { inner_->all_gather(from.data(), to.data(), count, dtype, timeout); });
    to.back_to(output);
  }
  void all_gather_v(
      const void* input, void* output, Counts counts, DType dtype, Timeout timeout) override {
    const OnDevice from = there(input, mine(counts), dtype), to = there(output, sum(counts), dtype);
    run([&] { inner_->all_gather_v(from.data(), to.data(), counts, dtype, timeout); });
    to.back_to(output);
  }
  void gather(const void* input,
              void* output,
              int64_t count,
              DType dtype,
              int root,
              Timeout timeout) override {
    const OnDevice from = there(input, count, dtype);
    const OnDevice to = rank() == root ? there(output, size() * count, dtype) : OnDevice();
    run([&] { inner_->gather(from.data(), to.data(), count, dtype, root, timeout); });
    to.back_to(output);
  }
  void scatter(const void* input,
               void* output,
               int64_t count,
               DType dtype,
               int root,
               Timeout timeout) override {
    const OnDevice from = rank() == root ? there(input, size() * count, dtype) : OnDevice();
    const OnDevice to = there(output, count, dtype);
    run([&] { inner_->scatter(from.data(), to.data(), count, dtype, root, timeout); });
    to.back_to(output);
  }
  void reduce_scatter(const void* input,
                      void* output,
                      int64_t count,
                      DType dtype,
                      ReduceOp op,
                      Timeout timeout) override {
    const OnDevice from = there(input, size() * count, dtype), to = there(output, count, dtype);
    run([&] { inner_->reduce_scatter(from.data(), to.data(), count, dtype, op, timeout); });
    to.back_to(output);
  }
  void reduce_scatter(const TreeBuffers& buffers,
                      int64_t count,
                      DType dtype,
                      ReduceOp op,
                      Timeout timeout) override {
    in_tree(buffers, size() * count, count, dtype, [&](const TreeBuffers& there) {
      inner_->reduce_scatter(there, count, dtype, op, timeout);
    });
  }
  void all_to_all(
      const void* input, void* output, int64_t count, DType dtype, Timeout timeout) override {
    const OnDevice from = there(input, size() * count, dtype),
                   to = there(output, size() * count, dtype);
    run([&] { inner_->all_to_all(from.data(), to.data(), count, dtype, timeout); });
    to.back_to(output);
  }
  void all_to_all_v(const void* input,
                    Counts send_counts,
                    void* output,
                    Counts recv_counts,
                    DType dtype,
                    Timeout timeout) override {
    const OnDevice from = there(input, sum(send_counts), dtype),
                   to = there(output, sum(recv_counts), dtype);
    run([&] {
      inner_->all_to_all_v(from.data(), send_counts, to.data(), recv_counts, dtype, timeout);
    });
    to.back_to(output);
  }
  void barrier(Timeout timeout) override {
    run([&] { inner_->barrier(timeout); });
  }
  std::unique_ptr<transport::Transfer> send(const void* data,
                                            size_t bytes,
                                            int peer,
                                            uint32_t tag) override {
    OnDevice memory(data, static_cast<int64_t>(bytes), stream_);
    auto inner = inner_->send(memory.data(), bytes, peer, tag);
    return std::make_unique<StagedTransfer>(std::move(memory), std::move(inner), nullptr);
  }
  std::unique_ptr<transport::Transfer> recv(void* data,
                                            size_t bytes,
                                            int peer,
                                            uint32_t tag) override {
    OnDevice memory(nullptr, static_cast<int64_t>(bytes), stream_);
    auto inner = inner_->recv(memory.data(), bytes, peer, tag);
    return std::make_unique<StagedTransfer>(std::move(memory), std::move(inner), data);
  }
  std::shared_ptr<transport::SharedBlock> share(size_t bytes, Timeout timeout) override {
    return inner_->share(bytes, timeout);
  }
  void close() override { inner_->close(); }

 private:
  [[nodiscard]] OnDevice there(const void* host, int64_t count, DType dtype) const {
    return {host, std::max<int64_t>(count, 0) * static_cast<int64_t>(size_of(dtype)), stream_};
  }
  [[nodiscard]] int64_t mine(Counts counts) const {
    return static_cast<size_t>(rank()) < counts.size() ? counts[static_cast<size_t>(rank())] : 0;
  }
  static int64_t sum(Counts counts) {
    int64_t all = 0;
    for (const int64_t count : counts) {
      all += count;
    }
    return all;
  }

  void run(const std::function<void()>& operation) {
    const auto promise = std::make_shared<Promise>();
    inner_->listen(promise);
    operation();
    promise->wait();
    inner_->queue()->mark()->hold_caller();
  }

  /// A sum that lies where a node lies does so on the device too.
  template <typename Operation>
  void in_tree(const TreeBuffers& buffers,
               int64_t of_node,
               int64_t of_sum,
               DType dtype,
               Operation operation) {
    std::map<const void*, OnDevice> memory;
    std::vector<const void*> nodes;
    std::vector<void*> sums;
    for (const void* const node : buffers.nodes) {
      nodes.push_back(memory.try_emplace(node, there(node, of_node, dtype)).first->second.data());
    }
    std::vector<OnDevice> results;
    for (void* const sum : buffers.sums) {
      const auto found = of_node == of_sum ? memory.find(sum) : memory.end();
      results.push_back(found != memory.end() ? found->second : there(sum, of_sum, dtype));
      sums.push_back(sum == nullptr ? nullptr : results.back().data());
    }
    run([&] { operation({.deal = buffers.deal, .nodes = nodes, .sums = sums}); });
    for (size_t i = 0; i < results.size(); ++i) {
      results[i].back_to(buffers.sums[i]);
    }
  }

  const std::unique_ptr<Transport> inner_;
  const c10::Stream stream_;  // of its collectives
};

}  // namespace

std::unique_ptr<Transport> staged(std::unique_ptr<Transport> on_device) {
  return std::make_unique<Staged>(std::move(on_device));
}

}  // namespace argosy::test
