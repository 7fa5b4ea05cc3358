#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "argosy/base/check.h"

namespace argosy::rpc {

/// Bytes that travel beside a message. Workers of one host read them in memory that they share,
/// after one copy by the sender, or none where CallContext::allocate() or Agent::allocate() made
/// them. Between hosts the receiver copies once.
///
///     agent.call<void>("ps0", "push", ids, rpc::Memory::view(gradients));      // borrowed
///     agent.serve("push", [](std::vector<int64_t> ids, rpc::Memory gradients) {
///       std::span<const float> values = gradients.as<float>(); … });
///
/// A handle: copies are the same bytes. Lifetime: the bytes stay as long as a handle does.
class Memory final {
 public:
  Memory() = default;

  /// Borrows `values`. Lifetime: they must stay and not change until the call has ended.
  template <typename T>
  [[nodiscard]] static Memory view(std::span<const T> values) {
    static_assert(std::is_trivially_copyable_v<T>);
    return Memory(std::as_bytes(values), nullptr);
  }
  template <typename T>
  [[nodiscard]] static Memory view(const std::vector<T>& values) {
    return view(std::span<const T>(values));
  }
  /// Takes `values` over.
  template <typename T>
  [[nodiscard]] static Memory own(std::vector<T> values) {
    static_assert(std::is_trivially_copyable_v<T>);
    auto kept = std::make_shared<const std::vector<T>>(std::move(values));
    const std::span<const T> all(*kept);
    return Memory(std::as_bytes(all), std::move(kept));
  }
  /// Refers to `bytes`, which live as long as `owner`.
  [[nodiscard]] static Memory of(std::span<const std::byte> bytes,
                                 std::shared_ptr<const void> owner) {
    return Memory(bytes, std::move(owner));
  }

  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }
  [[nodiscard]] size_t size() const { return bytes_.size(); }

  /// Returns the bytes as numbers.
  /// Errors: UsageError when they are no whole number of T.
  template <typename T>
  [[nodiscard]] std::span<const T> as() const {
    static_assert(std::is_trivially_copyable_v<T>);
    ARGOSY_CHECK(bytes_.size() % sizeof(T) == 0 &&
                     reinterpret_cast<uintptr_t>(bytes_.data()) % alignof(T) == 0,
                 "rpc.memory",
                 "expected a whole number of elements of {} bytes, got {} bytes",
                 sizeof(T),
                 bytes_.size());
    return {reinterpret_cast<const T*>(bytes_.data()), bytes_.size() / sizeof(T)};
  }

  [[nodiscard]] const std::shared_ptr<const void>& owner() const { return owner_; }

 private:
  Memory(std::span<const std::byte> bytes, std::shared_ptr<const void> owner)
      : bytes_(bytes), owner_(std::move(owner)) {}

  std::span<const std::byte> bytes_{};
  std::shared_ptr<const void> owner_{};
};

/// Memory that is written before it is sent: shared with the worker that it is for, where that is
/// possible.
class Draft final {
 public:
  Draft() = default;
  Draft(std::span<std::byte> bytes, std::shared_ptr<const void> owner)
      : bytes_(bytes), owner_(std::move(owner)) {}

  [[nodiscard]] std::span<std::byte> bytes() const { return bytes_; }
  template <typename T>
  [[nodiscard]] std::span<T> as() const {
    static_assert(std::is_trivially_copyable_v<T>);
    return {reinterpret_cast<T*>(bytes_.data()), bytes_.size() / sizeof(T)};
  }
  /// Returns it for sending. What is written afterwards may or may not arrive.
  [[nodiscard]] Memory finish() && { return Memory::of(bytes_, std::move(owner_)); }

 private:
  std::span<std::byte> bytes_{};
  std::shared_ptr<const void> owner_{};
};

/// Returns memory of this process alone.
[[nodiscard]] inline Draft plain_draft(size_t bytes) {
  auto own = std::make_shared<std::unique_ptr<std::byte[]>>(new std::byte[bytes]);
  const std::span<std::byte> all(own->get(), bytes);
  return {all, std::move(own)};
}

}  // namespace argosy::rpc
