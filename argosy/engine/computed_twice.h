#pragma once

#include <functional>
#include <memory>
#include <string>

namespace argosy::engine {

class LateResults;

struct ComputedTwiceOptions {
  /// Says of an operator by its name ("aten::mm") whether its results are kept for the second
  /// computation. Operators are those of libtorch's dispatcher below autograd: a `linear` is an
  /// "aten::addmm". What writes to an argument, returns a view or draws random numbers is computed
  /// always, and so is a result that has been written since, or whose arguments have other shapes
  /// than at first.
  std::function<bool(const std::string& operator_name)> keeps{};
  /// Products and sums at the end of the second computation are computed when somebody uses their
  /// results, on the CPU. A kernel without an operator needs a DirectUse to see them, and must not
  /// write what they are computed from.
  bool early_stop = true;
};

/// A computation that is made once for its results, and again for the graph that leads to them.
///
///     ComputedTwice twice({.keeps = [](const std::string& name) { return name == "aten::mm"; }});
///     twice.first([&] { … });
///     twice.again([&] { … });  // computes all but the products
///     torch::autograd::grad(…);
///     twice.finish();
///
/// Not thread-safe; both computations run in the caller's thread.
/// Cost: some microseconds for each operator.
class ComputedTwice final {
 public:
  explicit ComputedTwice(ComputedTwiceOptions options = {});
  ~ComputedTwice();
  ComputedTwice(const ComputedTwice&) = delete;
  ComputedTwice& operator=(const ComputedTwice&) = delete;
  ComputedTwice(ComputedTwice&&) = delete;
  ComputedTwice& operator=(ComputedTwice&&) = delete;

  void first(const std::function<void()>& body);
  void again(const std::function<void()>& body);
  /// Computes what somebody still holds of the second computation: when backward is over, or has
  /// failed. Errors: what a late result met.
  void finish();

  /// Internal. Returns the late results of the computation that this thread is running, or nullptr
  /// if it is running none.
  [[nodiscard]] static const LateResults* running();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace argosy::engine
