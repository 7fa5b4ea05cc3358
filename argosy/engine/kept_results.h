#pragma once

#include <functional>
#include <memory>
#include <string>

namespace argosy::engine {

/// Keeps results of some operators of a computation, and gives them when it is repeated instead of
/// computing them again.
///
///     KeptResults kept([](const std::string& name) { return name == "aten::mm"; });
///     kept.first([&] { … });
///     kept.again([&] { … });      // computes all but the products
///
/// Operators are those of libtorch's dispatcher below autograd: a `linear` is an "aten::addmm".
/// What writes to an argument, returns a view or draws random numbers is computed always, and so is
/// a result that has been written since, or whose arguments have other shapes than at first.
/// Results are given once. Not thread-safe; both computations run in the caller's thread.
class KeptResults final {
 public:
  using Keeps = std::function<bool(const std::string& operator_name)>;
  explicit KeptResults(Keeps keeps);
  ~KeptResults();
  KeptResults(const KeptResults&) = delete;
  KeptResults& operator=(const KeptResults&) = delete;
  KeptResults(KeptResults&&) = delete;
  KeptResults& operator=(KeptResults&&) = delete;

  void first(const std::function<void()>& body);
  void again(const std::function<void()>& body);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace argosy::engine
