#pragma once

#include <string>
#include <utility>
#include <variant>

#include "argosy/base/error.h"

namespace argosy {

/// Why an operation at the system's edge failed: what was tried, errno, and the cause below it.
///
///     return Failure::from_errno("open " + path, errno);
///     return std::move(failure).because("read the rank's log");  // puts a step on top
struct Failure {
  std::string what;
  int error_number = 0;  ///< errno of the deepest step; 0: none applies

  static Failure from_errno(std::string_view step, int error_number) {
    return {std::string(step) + ": " + errno_message(error_number), error_number};
  }
  [[nodiscard]] Failure because(std::string_view step) && {
    return {std::string(step) + ": " + what, error_number};
  }
};

/// A value, or the Failure that prevented it. Torch-free rooms return it at the system's edge.
/// or_throw() converts it into an exception once, at the room's public face.
///
///     Result<UniqueFd> fd = open_file(path);
///     if (!fd.ok()) return std::move(fd).failure();
///     use(*fd);
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}            // NOLINT
  Result(Failure failure) : state_(std::in_place_index<1>, std::move(failure)) {}  // NOLINT

  [[nodiscard]] bool ok() const noexcept { return state_.index() == 0; }
  T& operator*() & { return std::get<0>(state_); }
  const T& operator*() const& { return std::get<0>(state_); }
  T&& operator*() && { return std::get<0>(std::move(state_)); }
  T* operator->() { return &std::get<0>(state_); }
  const T* operator->() const { return &std::get<0>(state_); }
  [[nodiscard]] const Failure& failure() const& { return std::get<1>(state_); }
  [[nodiscard]] Failure failure() && { return std::get<1>(std::move(state_)); }

  /// Returns the value, or throws an exception of type E with `[where] failure`.
  template <typename E>
  T or_throw(std::string_view where) && {
    if (!ok()) {
      throw E(where, failure().what);
    }
    return std::get<0>(std::move(state_));
  }
  /// With the place that an exception of type E names, e.g. DataPlace{path}.
  template <typename E, typename Place>
  T or_throw(std::string_view where, Place place) && {
    if (!ok()) {
      throw E(where, failure().what, std::move(place));
    }
    return std::get<0>(std::move(state_));
  }

 private:
  std::variant<T, Failure> state_;
};

/// Success or a Failure, for operations that return nothing.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Failure failure) : failure_(std::move(failure)), ok_(false) {}  // NOLINT

  [[nodiscard]] bool ok() const noexcept { return ok_; }
  [[nodiscard]] const Failure& failure() const& { return failure_; }
  [[nodiscard]] Failure failure() && { return std::move(failure_); }

  /// Throws an exception of type E with `[where] failure` unless ok().
  template <typename E>
  void or_throw(std::string_view where) const {
    if (!ok_) {
      throw E(where, failure_.what);
    }
  }
  /// With the place that an exception of type E names, e.g. DataPlace{path}.
  template <typename E, typename Place>
  void or_throw(std::string_view where, Place place) const {
    if (!ok_) {
      throw E(where, failure_.what, std::move(place));
    }
  }

 private:
  Failure failure_;
  bool ok_ = true;
};

}  // namespace argosy
