#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include "argosy/base/deadline.h"
#include "argosy/base/error.h"
#include "argosy/rpc/codec.h"
#include "argosy/rpc/parcel.h"

namespace argosy::rpc {

/// A call on its way. Internal to the room: users have Future and Incoming.
class Pending {
 public:
  virtual ~Pending() = default;
  Pending() = default;
  Pending(const Pending&) = delete;
  Pending& operator=(const Pending&) = delete;
  Pending(Pending&&) = delete;
  Pending& operator=(Pending&&) = delete;

  /// Waits for the end. False when `deadline` passed first.
  [[nodiscard]] virtual bool wait(const Deadline& deadline) = 0;
  [[nodiscard]] virtual bool is_completed() const = 0;
  /// Waits, and returns the result. Errors: see Agent::call().
  [[nodiscard]] virtual const Parcel& result() = 0;
  /// Waits for the next value of a stream. nullopt: it is over. Errors: as result().
  [[nodiscard]] virtual std::optional<Parcel> next() = 0;
  virtual void cancel() = 0;
  /// Returns the error for a result that is of another type than the caller expects.
  [[nodiscard]] virtual std::exception_ptr misread(const std::string& why) const = 0;
};

/// Reads the one value of a parcel as T.
template <typename T>
T value_of(const Parcel& parcel, const Pending& call) {
  try {
    Reader reader(parcel);
    if constexpr (std::is_void_v<T>) {
      if (reader.left() != 0) {
        throw UsageError("rpc.value", "expected no result, got one");
      }
    } else {
      T value = Codec<T>::take(reader);
      return value;
    }
  } catch (const UsageError& error) {
    std::rethrow_exception(call.misread(error.what()));
  }
}

/// A running call. A handle: copies are the same call. Dropping the last one does not cancel it.
/// Thread-safe.
template <typename T>
class Future final {
 public:
  explicit Future(std::shared_ptr<Pending> call) : call_(std::move(call)) {}

  /// Blocks until the call has ended, at its own deadline at the latest, and returns its result.
  /// Errors: see Agent::call(); the same at every call.
  T wait() const { return value_of<T>(call_->result(), *call_); }
  /// Blocks for at most `timeout`. False when it has not ended; it continues.
  [[nodiscard]] bool wait_for(std::chrono::milliseconds timeout) const {
    return call_->wait(Deadline::after(timeout));
  }
  /// True when it has ended, with a result or an error. Never blocks.
  [[nodiscard]] bool is_completed() const { return call_->is_completed(); }
  /// Tells the worker that nobody waits any more (CallContext::cancelled()), and lets wait() throw.
  void cancel() const { call_->cancel(); }

 private:
  std::shared_ptr<Pending> call_;
};

/// The results of a streaming call, in order. Move-only; leaving early cancels the call.
///
///     for (Row row : agent.stream<Row>("ps0", "rows", table)) { … }
template <typename T>
class Incoming final {
 public:
  explicit Incoming(std::shared_ptr<Pending> call) : call_(std::move(call)) {}
  ~Incoming() {
    if (call_ != nullptr) {
      call_->cancel();
    }
  }
  Incoming(Incoming&&) noexcept = default;
  Incoming& operator=(Incoming&&) noexcept = default;
  Incoming(const Incoming&) = delete;
  Incoming& operator=(const Incoming&) = delete;

  /// Waits for the next value. nullopt: there are no more. Errors: see Agent::call().
  [[nodiscard]] std::optional<T> next() {
    const std::optional<Parcel> parcel = call_->next();
    return parcel ? std::optional<T>(value_of<T>(*parcel, *call_)) : std::nullopt;
  }

  class Iterator final {
   public:
    explicit Iterator(Incoming* stream) : stream_(stream) {
      if (stream_ != nullptr) {
        ++*this;
      }
    }
    T& operator*() { return *value_; }
    Iterator& operator++() {
      value_ = stream_->next();
      return *this;
    }
    bool operator!=(const Iterator& /*end*/) const { return value_.has_value(); }

   private:
    Incoming* stream_;
    std::optional<T> value_{};
  };
  [[nodiscard]] Iterator begin() { return Iterator(this); }
  [[nodiscard]] Iterator end() { return Iterator(nullptr); }

 private:
  std::shared_ptr<Pending> call_;
};

}  // namespace argosy::rpc
