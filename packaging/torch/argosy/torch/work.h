// What PyTorch gets for an operation that was started.
#pragma once

#include <exception>
#include <string>
#include <utility>
#include <vector>

#include <torch/csrc/distributed/c10d/Types.hpp>
#include <torch/csrc/distributed/c10d/Work.hpp>
#include <torch/extension.h>
#include <torch/version.h>

#include "argosy/abi/library.h"

#if TORCH_VERSION_MAJOR >= 2
#include <torch/csrc/distributed/c10d/Backend.hpp>
#else  // where a backend is a process group
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#endif

// From PyTorch 2.7 on a backend may give the memory of what it reduces.
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 7)
#define ARGOSY_TORCH_ALLOCATES
#endif

// From PyTorch 2.9 on a backend may divide its group.
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 9)
#define ARGOSY_TORCH_SPLITS
#endif

namespace argosy_torch {

using argosy::abi::exchanges;
using argosy::abi::library;
using argosy::abi::moves;
using argosy::abi::run_steps;
using argosy::abi::Steps;
using argosy::abi::tell;
using argosy::abi::Text;

#if TORCH_VERSION_MAJOR >= 2
using Base = c10d::Backend;
using BackendError = c10::DistBackendError;
#else
using Base = c10d::ProcessGroup;
using BackendError = c10::Error;
#endif

inline std::exception_ptr error_of(const std::string& message) {
  return std::make_exception_ptr(
      BackendError({__func__, __FILE__, static_cast<uint32_t>(__LINE__)}, message));
}

using Tensors = std::vector<at::Tensor>;

class Work final : public c10d::Work {
 public:
  Work(int rank,
       c10d::OpType type,
       const char* title,
       const Tensors& inputs,
       Tensors outputs,
       int64_t number,
       size_t lists = 1)
      : c10d::Work(rank, type, title, inputs),
        outputs_(std::move(outputs)),
        number_(number),
        lists_(lists),
        future_(c10::make_intrusive<c10::ivalue::Future>(
            c10::ListType::create(c10::TensorType::get()))) {}

  Tensors result() override { return outputs_; }
  int sourceRank() const override { return source_; }
  // The ranks that are to blame for what exception() says.
  const std::vector<int>& peers() const { return peers_; }
  uint64_t getSequencenumber() const { return static_cast<uint64_t>(number_); }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override { return future_; }
  void synchronize() override {}
  void abort() override {
    throw std::runtime_error("argosy: an operation cannot be taken back. Abort the group.");
  }

  // Once, in the thread that ran it.
  void end(const ArgosyEnd& end) {
    source_ = end.source;
    if (end.code == ARGOSY_OK) {
      future_->markCompleted(value());
      finish();
      return;
    }
    peers_.assign(end.peers, end.peers + end.peer_count);
    // Programs look for that word in the messages of other backends.
    const char* const kind = end.code == ARGOSY_TIMED_OUT ? "argosy: timeout : " : "argosy: ";
    const std::exception_ptr error = error_of(std::string(kind) + end.message);
    future_->setError(error);
    finish(error);
  }

 private:
  c10::IValue value() const {
    if (lists_ == 1) {
      return outputs_;
    }
    std::vector<Tensors> lists;
    const auto each = static_cast<std::ptrdiff_t>(outputs_.size() / lists_);
    for (auto at = outputs_.begin(); at != outputs_.end(); at += each) {
      lists.emplace_back(at, at + each);
    }
    return lists;
  }
  const Tensors outputs_;
  const int64_t number_;
  const size_t lists_;
  std::vector<int> peers_;
  int source_ = -1;
  const c10::intrusive_ptr<c10::ivalue::Future> future_;
};

}  // namespace argosy_torch
