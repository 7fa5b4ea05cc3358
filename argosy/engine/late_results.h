#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

// Internal to the room: of ComputedTwice.
namespace argosy::engine {

/// The end of a computation that is made a second time for its graph: products and sums after which
/// nothing else comes. Their results are computed when somebody uses them, and backward hardly
/// does. On the CPU: elsewhere a use may be in another stream.
///
/// The first computation tells of each operator, and so does the second. Where that has begun as
/// the first did, up to where the end begins, what follows is late as long as it is the same.
class LateResults final {
 public:
  LateResults() = default;
  ~LateResults() = default;
  LateResults(const LateResults&) = delete;
  LateResults& operator=(const LateResults&) = delete;
  LateResults(LateResults&&) = delete;
  LateResults& operator=(LateResults&&) = delete;

  /// Of the first computation: an operator has run, with arguments of these sizes.
  void note(const c10::FunctionSchema& schema,
            const std::vector<int64_t>& sizes,
            const torch::jit::Stack& stack);
  void begin_again();
  /// Of the second one: an operator is about to run. Puts a late result in the place of its
  /// arguments; false: it has to be computed, and what it uses is there.
  [[nodiscard]] bool give(const c10::OperatorHandle& op,
                          c10::DispatchKeySet keys,
                          const std::vector<int64_t>& sizes,
                          torch::jit::Stack& stack);
  /// Of the second one: the result of this operator is there already.
  void skip(const c10::FunctionSchema& schema, const std::vector<int64_t>& sizes);
  /// Of either: somebody else hears of the operators that follow.
  void interrupt();
  /// True if give() waits for an operator of this name.
  [[nodiscard]] bool expects(const char* name) const;
  /// Computes those that somebody still holds, before what they are computed from can change.
  /// Errors: what the first late result met that met something.
  void finish();

 private:
  class Late;
  struct Expected {
    std::string name{};
    std::vector<int64_t> arguments{};  // sizes
    std::vector<int64_t> sizes{};      // of the result
    std::vector<int64_t> strides{};
    at::TensorOptions options{};
  };

  void pass(const c10::FunctionSchema& schema, const std::vector<int64_t>& sizes);
  [[nodiscard]] bool is_next(const c10::FunctionSchema& schema, const std::vector<int64_t>& sizes);
  void end_begins();
  void compute_all();

  std::vector<Expected> end_{};
  std::size_t passed_ = 0;      // a hash of the operators so far, but for views
  std::size_t before_end_ = 0;  // the same where the end begins
  bool is_second_ = false;
  std::optional<std::size_t> next_{};  // the place in end_, once it has begun
  std::vector<std::weak_ptr<Late>> made_{};
  struct Error {
    std::mutex mutex{};
    std::exception_ptr first{};
  };
  std::shared_ptr<Error> error_ = std::make_shared<Error>();  // of one second computation
};

}  // namespace argosy::engine
