#pragma once

#include <memory>
#include <string>

#include "argosy/transport/transport.h"

namespace argosy::comm {

/// The transport of a group of one: every collective is a copy or nothing. No socket, no thread, no
/// store; a program that runs as one process pays for nothing else.
class SoloTransport : public transport::Transport {
 public:
  using DType = transport::DType;
  using ReduceOp = transport::ReduceOp;
  using Counts = transport::Counts;
  using Timeout = transport::Timeout;

  [[nodiscard]] int rank() const override { return 0; }
  [[nodiscard]] int size() const override { return 1; }
  [[nodiscard]] std::string name() const override { return "solo"; }

  void all_reduce(void*, int64_t, DType, ReduceOp, Timeout) override {}
  void all_reduce(const transport::TreeBuffers& buffers,
                  int64_t count,
                  DType dtype,
                  ReduceOp op,
                  Timeout) override {
    transport::reduce_alone(buffers, count, dtype, op);
  }
  void reduce(void*, int64_t, DType, ReduceOp, int, Timeout) override {}
  void reduce(const transport::TreeBuffers& buffers,
              int64_t count,
              DType dtype,
              ReduceOp op,
              int,
              Timeout) override {
    transport::reduce_alone(buffers, count, dtype, op);
  }
  void broadcast(void*, int64_t, DType, int, Timeout) override {}
  void all_gather(const void* input, void* output, int64_t count, DType dtype, Timeout) override;
  void all_gather_v(const void* input, void* output, Counts, DType, Timeout) override;
  void gather(const void* input, void* output, int64_t count, DType dtype, int, Timeout) override;
  void scatter(const void* input, void* output, int64_t count, DType dtype, int, Timeout) override;
  void reduce_scatter(
      const void* input, void* output, int64_t count, DType dtype, ReduceOp, Timeout) override;
  void reduce_scatter(const transport::TreeBuffers& buffers,
                      int64_t count,
                      DType dtype,
                      ReduceOp op,
                      Timeout) override {
    transport::reduce_alone(buffers, count, dtype, op);
  }
  void all_to_all(const void* input, void* output, int64_t count, DType dtype, Timeout) override;
  void all_to_all_v(const void* input, Counts, void* output, Counts, DType dtype, Timeout) override;
  void barrier(Timeout) override {}
  [[nodiscard]] std::unique_ptr<transport::Transfer> send(const void*,
                                                          size_t,
                                                          int,
                                                          uint32_t) override;
  [[nodiscard]] std::unique_ptr<transport::Transfer> recv(void*, size_t, int, uint32_t) override;
  [[nodiscard]] std::shared_ptr<transport::SharedBlock> share(size_t, Timeout) override {
    return nullptr;
  }
  void close() override {}
};

}  // namespace argosy::comm
