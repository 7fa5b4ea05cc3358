#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

#include "argosy/data/random.h"
#include "argosy/vision/transforms/picture.h"

namespace argosy::vision {

namespace detail {

/// A chain: its call returns a tensor, its apply() returns the input of a next step.
template <typename T>
concept Chain = requires(const T& chain, Picture picture, data::Random& random) {
  { chain.apply(std::move(picture), random) } -> std::same_as<Picture>;
};

/// The inputs that a transform may take: In by value or const reference, with or without the
/// stream.
template <typename F, typename In>
concept TakesRandom = std::invocable<const F&, In, data::Random&>;
template <typename F, typename In>
concept TakesAlone = std::invocable<const F&, In>;
template <typename F, typename In>
concept Takes = TakesRandom<F, In> || TakesAlone<F, In>;

template <typename F>
concept Transform =
    Takes<F, Picture> || Takes<F, image::Image> || Takes<F, TensorImage> || Takes<F, at::Tensor>;

template <typename F>
inline constexpr bool kDraws = TakesRandom<F, Picture> || TakesRandom<F, image::Image> ||
                               TakesRandom<F, TensorImage> || TakesRandom<F, at::Tensor>;

template <typename F, typename In>
auto call(const F& function, In input, data::Random& random) {
  if constexpr (TakesRandom<F, In>) {
    return function(std::move(input), random);
  } else {
    return function(std::move(input));
  }
}

/// `what` is "an image" or "a tensor"; `advice` says how to get one.
[[noreturn]] void throw_wrong_kind(std::string_view name,
                                   std::string_view what,
                                   const Picture& got,
                                   std::string_view advice);

/// Replaces the pixels by a function's result; the points stay.
inline void put(Picture& into, image::Image image) {
  into.set_image(std::move(image));
}
inline void put(Picture& into, TensorImage tensor) {
  into.set_tensor(std::move(tensor));
}
/// The channel order stays if the number of channels stays; otherwise it is the usual one for their
/// number.
void put(Picture& into, at::Tensor tensor);

template <typename F>
Picture call_transform(const F& function,
                       std::string_view name,
                       Picture picture,
                       data::Random& random) {
  if constexpr (Takes<F, Picture>) {
    return call(function, std::move(picture), random);
  } else if constexpr (Takes<F, image::Image>) {
    if (!picture.is_image()) {
      throw_wrong_kind(name, "an image", picture, "Put it before ToTensor().");
    }
    put(picture, call(function, picture.take_image(), random));
    return picture;
  } else {
    if (picture.is_image()) {
      throw_wrong_kind(name, "a tensor", picture, "Put ToTensor() before it.");
    }
    if constexpr (Takes<F, TensorImage>) {
      put(picture, call(function, picture.tensor(), random));
    } else {
      put(picture, call(function, picture.tensor().chw, random));
    }
    return picture;
  }
}

}  // namespace detail

/// One transform of a chain, of any type: a class of this folder, or a user's function or object.
/// It is called with an image::Image, a TensorImage, an at::Tensor [C, H, W] or a whole Picture,
/// with or without a data::Random&, and returns any of these.
///
///     Compose augment{RandomResizedCrop(224), [](image::Image photo, data::Random& random) {
///                       return random.bernoulli(0.1) ? my_fog(photo) : photo;
///                     }};
///
/// A handle: copies share the transform, which is const. Several threads call it at once, so a
/// user's function must be thread-safe and draw from the stream that it gets.
class AnyTransform final {
 public:
  template <typename T>
  requires(!std::same_as<std::remove_cvref_t<T>, AnyTransform>)
      AnyTransform(T transform)  // NOLINT(google-explicit-constructor)
      : held_(std::make_shared<const Holder<T>>(std::move(transform))) {}

  /// Errors: those of the transform; UsageError for an input that it does not take.
  [[nodiscard]] Picture apply(Picture picture, data::Random& random) const {
    return held_->apply(std::move(picture), random);
  }
  /// "RandomCrop"; "Lambda" for a user's function.
  [[nodiscard]] std::string_view name() const { return held_->name(); }
  /// "RandomCrop(32, .padding = 4)"
  [[nodiscard]] std::string to_string() const { return held_->to_string(); }
  /// True if it draws random numbers.
  [[nodiscard]] bool is_random() const { return held_->is_random(); }
  /// Returns the transform itself if it is a T, else nullptr. fused.h recognises chains by it.
  template <typename T>
  [[nodiscard]] const T* as() const {
    return held_->type() == typeid(T) ? static_cast<const T*>(held_->get()) : nullptr;
  }

 private:
  struct Base {
    Base() = default;
    Base(const Base&) = delete;
    Base& operator=(const Base&) = delete;
    virtual ~Base() = default;
    virtual Picture apply(Picture picture, data::Random& random) const = 0;
    virtual std::string_view name() const = 0;
    virtual std::string to_string() const = 0;
    virtual bool is_random() const = 0;
    virtual const std::type_info& type() const = 0;
    virtual const void* get() const = 0;
  };
  template <typename T>
  struct Holder;

  std::shared_ptr<const Base> held_;
};

template <typename T>
struct AnyTransform::Holder final : Base {
  static_assert(detail::Chain<T> || detail::Transform<T>,
                "a transform is called with an image::Image, a TensorImage, an at::Tensor or a "
                "Picture, and perhaps a data::Random&; a generic lambda must name its type");

  explicit Holder(T value) : transform(std::move(value)) {}

  Picture apply(Picture picture, data::Random& random) const override {
    if constexpr (detail::Chain<T>) {
      return transform.apply(std::move(picture), random);
    } else {
      return detail::call_transform(transform, name(), std::move(picture), random);
    }
  }
  std::string_view name() const override {
    if constexpr (requires {
                    { T::kName } -> std::convertible_to<std::string_view>;
                  }) {
      return T::kName;
    } else if constexpr (requires {
                           { transform.name() } -> std::convertible_to<std::string_view>;
                         }) {
      return transform.name();
    } else {
      return "Lambda";
    }
  }
  std::string to_string() const override {
    if constexpr (requires {
                    { transform.to_string() } -> std::convertible_to<std::string>;
                  }) {
      return transform.to_string();
    } else {
      return std::string(name()) + "()";
    }
  }
  bool is_random() const override {
    if constexpr (requires {
                    { transform.is_random() } -> std::convertible_to<bool>;
                  }) {
      return transform.is_random();
    } else {
      return detail::kDraws<T>;
    }
  }
  const std::type_info& type() const override { return typeid(T); }
  const void* get() const override { return &transform; }

  const T transform;
};

namespace detail {

/// Steps, each with the number of its random stream.
///
/// The number is made of the step's name and of how many steps of that name precede it, not of its
/// index. A step that is inserted, removed or moved does not change the draws of other steps, so
/// two runs that differ in one augmentation differ only there.
class Steps final {
 public:
  Steps() = default;
  explicit Steps(std::vector<AnyTransform> steps);

  [[nodiscard]] size_t size() const { return steps_.size(); }
  [[nodiscard]] const AnyTransform& operator[](size_t i) const { return steps_[i]; }
  [[nodiscard]] data::Random stream(size_t i, const data::Random& chain) const {
    return chain.fork(keys_[i]);
  }
  [[nodiscard]] Picture apply(size_t i, Picture picture, const data::Random& chain) const;
  [[nodiscard]] bool any_random() const {
    return std::any_of(
        steps_.begin(), steps_.end(), [](const AnyTransform& step) { return step.is_random(); });
  }
  /// "A(), B()"
  [[nodiscard]] std::string to_string() const;

 private:
  std::vector<AnyTransform> steps_{};
  std::vector<uint64_t> keys_{};
};

}  // namespace detail

}  // namespace argosy::vision
