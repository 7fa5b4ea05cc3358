#pragma once

#include <memory>
#include <utility>

#include "argosy/parallel/ddp/reducer.h"

namespace argosy::parallel::ddp {

/// Autograd holds it while one backward() runs. If it is destroyed without end(), that backward()
/// ended by an exception, which nothing else reports.
class PassToken final {
 public:
  explicit PassToken(std::weak_ptr<Reducer> reducer) : reducer_(std::move(reducer)) {}
  PassToken(const PassToken&) = delete;
  PassToken& operator=(const PassToken&) = delete;
  PassToken(PassToken&&) = delete;
  PassToken& operator=(PassToken&&) = delete;
  ~PassToken() {
    if (auto reducer = reducer_.lock()) {
      reducer->abort_pass();
    }
  }

  void end() {
    if (auto reducer = std::exchange(reducer_, {}).lock()) {
      reducer->end_pass();
    }
  }

 private:
  std::weak_ptr<Reducer> reducer_;
};

}  // namespace argosy::parallel::ddp
