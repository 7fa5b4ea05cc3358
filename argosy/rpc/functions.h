#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "argosy/rpc/function.h"

namespace argosy::rpc {

struct ServeOptions {
  /// Runs the function in the thread that received the call, which saves a change of threads. Only
  /// for functions that take microseconds and never wait: meanwhile that thread serves nobody else.
  bool quick = false;
};

/// The functions that a worker offers to the others, by name. A handle: copies are the same list.
/// Thread-safe.
class Functions final {
 public:
  Functions() : state_(std::make_shared<State>()) {}

  /// Offers `function` under `name`. Several threads may run it at once.
  /// Errors: UsageError when the name is empty or taken.
  template <typename F>
  void serve(const std::string& name, F function, const ServeOptions& options = {}) {
    add(name, {make_handler(std::move(function)), options, sends_of<F>()});
  }

  struct Served {
    Handler handler;
    ServeOptions options{};
    Sends sends = Sends::kOneResult;
  };
  void add(const std::string& name, Served function);
  /// Returns nullptr when nobody serves it.
  [[nodiscard]] std::shared_ptr<const Served> find(const std::string& name) const;
  [[nodiscard]] std::vector<std::string> names() const;

 private:
  struct State {
    std::mutex mutex;
    std::map<std::string, std::shared_ptr<const Served>> all;
  };
  std::shared_ptr<State> state_;
};

}  // namespace argosy::rpc
