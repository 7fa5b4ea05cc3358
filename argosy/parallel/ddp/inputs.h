#pragma once

#include <concepts>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "argosy/engine/memory_format.h"

namespace argosy::parallel::ddp {

// --- Which arguments hold tensors ---------------------------------------------------------------

template <typename T>
struct Input {  // another type: passed unchanged
  static constexpr bool kHoldsTensors = false;
};

template <>
struct Input<at::Tensor> {
  static constexpr bool kHoldsTensors = true;
  template <typename Change>
  static at::Tensor map(const at::Tensor& tensor, const Change& change) {
    return change(tensor);
  }
  static bool same(const at::Tensor& a, const at::Tensor& b) { return a.is_same(b); }
};

template <typename T>
requires Input<T>::kHoldsTensors struct Input<std::optional<T>> {
  static constexpr bool kHoldsTensors = true;
  template <typename Change>
  static std::optional<T> map(const std::optional<T>& held, const Change& change) {
    return held.has_value() ? std::optional<T>(Input<T>::map(*held, change)) : std::nullopt;
  }
  static bool same(const std::optional<T>& a, const std::optional<T>& b) {
    return a.has_value() == b.has_value() && (!a.has_value() || Input<T>::same(*a, *b));
  }
};

template <typename T>
requires Input<T>::kHoldsTensors struct Input<std::vector<T>> {
  static constexpr bool kHoldsTensors = true;
  template <typename Change>
  static std::vector<T> map(const std::vector<T>& held, const Change& change) {
    std::vector<T> out;
    out.reserve(held.size());
    for (const T& each : held) {
      out.push_back(Input<T>::map(each, change));
    }
    return out;
  }
  static bool same(const std::vector<T>& a, const std::vector<T>& b) {
    bool all = a.size() == b.size();
    for (std::size_t i = 0; all && i < a.size(); ++i) {
      all = Input<T>::same(a[i], b[i]);
    }
    return all;
  }
};

// --- An argument in another format --------------------------------------------------------------

/// Replaces an argument T&&: by a changed copy if it holds tensors, else by itself. What forward
/// assigns to an argument that it takes by reference reaches the caller.
template <typename T, typename Change>
class Changed {
  using Plain = std::remove_cvref_t<T>;
  static constexpr bool kCopies = Input<Plain>::kHoldsTensors;
  static constexpr bool kAssignable =
      kCopies && std::is_lvalue_reference_v<T> && !std::is_const_v<std::remove_reference_t<T>>;

 public:
  Changed(T&& argument, const Change& change)
      : argument_(argument), held_(make(static_cast<T&&>(argument), change)) {
    if constexpr (kAssignable) {
      given_ = held_;
    }
  }
  Changed(const Changed&) = delete;
  Changed& operator=(const Changed&) = delete;
  Changed(Changed&&) = delete;
  Changed& operator=(Changed&&) = delete;
  ~Changed() {
    if constexpr (kAssignable) {
      if (!Input<Plain>::same(given_, held_)) {
        argument_ = held_;
      }
    }
  }
  T&& get() { return static_cast<T&&>(held_); }

 private:
  static decltype(auto) make(T&& argument, const Change& change) {
    if constexpr (kCopies) {
      return Input<Plain>::map(argument, change);
    } else {
      return static_cast<T&&>(argument);
    }
  }
  struct Nothing {};
  std::remove_reference_t<T>& argument_;
  std::conditional_t<kCopies, Plain, T&&> held_;
  std::conditional_t<kAssignable, Plain, Nothing> given_{};
};

/// What forward expects of tensors.
struct InputForm {
  engine::MemoryFormat format = engine::MemoryFormat::kAsIs;
  std::optional<at::ScalarType> type{};  ///< of floating-point ones

  [[nodiscard]] bool changes_nothing() const {
    return format == engine::MemoryFormat::kAsIs && !type.has_value();
  }
  [[nodiscard]] at::Tensor operator()(const at::Tensor& tensor) const {
    const bool casts = type.has_value() && tensor.defined() && tensor.is_floating_point();
    const at::Tensor cast = casts ? tensor.to(*type) : tensor;
    return format == engine::MemoryFormat::kAsIs ? cast : engine::in_format(cast, format);
  }
};

/// Calls `forward` with the arguments in this form.
template <typename Forward, typename... Args>
decltype(auto) with_inputs_in(const InputForm& change, const Forward& forward, Args&&... args) {
  return forward(Changed<Args, InputForm>(std::forward<Args>(args), change).get()...);
}

// --- A forward on the side ----------------------------------------------------------------------

/// True for an argument that forward can change so that the caller sees it.
template <typename T>
inline constexpr bool kMutable =
    !std::is_lvalue_reference_v<T> || !std::is_const_v<std::remove_reference_t<T>>;

/// True if forward can be called twice with an argument T&&.
template <typename T>
inline constexpr bool kRepeatable = !kMutable<T> || std::copy_constructible<std::remove_cvref_t<T>>;

/// True if the tensor was written to since it was made.
inline bool written(const at::Tensor& tensor) {
  return tensor.defined() && tensor._version() > 0;
}

/// Replaces an argument T&& by a copy of everything that holds tensors or that forward can change.
/// `wrote` becomes true if forward has written into an image, which the caller would not see if the
/// image were a copy in another order.
template <typename T, typename Change>
class Copied {
  using Plain = std::remove_cvref_t<T>;
  static constexpr bool kTensors = Input<Plain>::kHoldsTensors;
  static constexpr bool kCopies = kTensors || kMutable<T>;

 public:
  Copied(std::remove_reference_t<T>& argument, const Change& change, bool& wrote)
      : wrote_(wrote), held_(make(argument, change)) {}
  Copied(const Copied&) = delete;
  Copied& operator=(const Copied&) = delete;
  Copied(Copied&&) = delete;
  Copied& operator=(Copied&&) = delete;
  ~Copied() {
    if constexpr (kTensors) {
      Input<Plain>::map(held_, [this](const at::Tensor& tensor) {
        wrote_ = wrote_ || (written(tensor) && tensor.dim() == 4);
        return tensor;
      });
    }
  }
  T&& get() { return static_cast<T&&>(held_); }

 private:
  static decltype(auto) make(std::remove_reference_t<T>& argument, const Change& change) {
    if constexpr (kTensors) {
      return Input<Plain>::map(argument, change);
    } else if constexpr (kCopies) {
      return Plain(argument);
    } else {
      return (argument);
    }
  }
  bool& wrote_;
  std::conditional_t<kCopies, Plain, T&&> held_;
};

/// The same on copies, which forward may change. Args: as deduced for the caller.
template <typename... Args, typename Forward>
decltype(auto) with_copies_in(engine::MemoryFormat format,
                              bool& wrote,
                              const Forward& forward,
                              std::remove_reference_t<Args>&... args) {
  const auto change = [format](const at::Tensor& tensor) {
    return tensor.defined() ? engine::in_format(tensor.detach().clone(), format) : tensor;
  };
  return forward(Copied<Args, decltype(change)>(args, change, wrote).get()...);
}

}  // namespace argosy::parallel::ddp
