#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "argosy/base/error.h"

namespace argosy::rpc {

/// What a caller knows about a call that brought no result. No call runs twice.
enum class CallOutcome {
  kDone,     ///< the function ran to its end, which was an exception
  kRefused,  ///< the function did not start: it may be called again
  kUnknown,  ///< it may have run, in part or whole: the answer did not come
};
[[nodiscard]] std::string_view name_of(CallOutcome outcome);

/// Returns what an error says, "[place] text", without its place; another text as it is.
[[nodiscard]] std::string without_place(const std::string& text);

/// A call brought no result: the worker is gone, refused it, or did not answer in time.
class CallError : public CommError {
 public:
  CallError(std::string_view where,
            std::string_view what,
            CommContext context,
            std::string worker,
            CallOutcome outcome,
            bool gone = false)
      : CommError(where, what, std::move(context)),
        worker_(std::move(worker)),
        outcome_(outcome),
        gone_(gone) {}

  [[nodiscard]] const std::string& worker() const noexcept { return worker_; }
  [[nodiscard]] CallOutcome outcome() const noexcept { return outcome_; }
  /// True when the process that was called is known to have died or left.
  [[nodiscard]] bool gone() const noexcept { return gone_; }

 private:
  std::string worker_;
  CallOutcome outcome_;
  bool gone_;
};

/// The function threw. Its outcome is kDone.
class RemoteError final : public CallError {
 public:
  /// What was thrown at the other side.
  struct Thrown {
    std::string type{};   ///< "std::out_of_range", "argosy::DataError"
    std::string text{};   ///< its what()
    std::string place{};  ///< the room and operation that an error of Argosy names; else empty
  };
  RemoteError(std::string_view what, CommContext context, std::string worker, Thrown thrown)
      : CallError("rpc.call", what, std::move(context), std::move(worker), CallOutcome::kDone),
        thrown_(std::move(thrown)) {}

  [[nodiscard]] const Thrown& thrown() const noexcept { return thrown_; }

 private:
  Thrown thrown_;
};

}  // namespace argosy::rpc
