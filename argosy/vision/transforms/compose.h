#pragma once

#include <concepts>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "argosy/data/random.h"
#include "argosy/vision/transforms/any_transform.h"
#include "argosy/vision/transforms/picture.h"

namespace argosy::vision {

class ChainRunner;

/// Applies transforms one after another, for example to each sample of a data set.
///
///     Compose augment{RandomResizedCrop(224), RandomHorizontalFlip(), ToTensor(),
///                     Normalize({0.485, 0.456, 0.406}, {0.229, 0.224, 0.225})};
///     at::Tensor chw = augment(photo, random);            // random: what get() receives
///     auto [image, points] = augment(sample, random);     // a KeypointImage
///
/// A call returns a tensor [C, H, W]. If an image leaves the last step, it becomes a tensor with
/// unchanged values (u8 stays u8). apply() returns the last step's result itself.
///
/// Random numbers: each step has a separate stream. Its key is made of (seed, epoch, sample) in
/// `random`, of the number of calls on `random` before this one, and of the step's name and number
/// among steps of that name. So a sample's pixels depend neither on loader threads nor on a resume;
/// two calls with one `random` give two views; inserting or removing a step changes no other step's
/// draws. `random` itself is not drawn from. For the same draws on an image and its mask, pass
/// copies of one `random`.
///
/// A value; copies share the steps. Thread-safe: everything is const.
/// Errors: those of a step; UsageError naming a step for an input that it cannot work on.
class Compose final {
 public:
  static constexpr std::string_view kName = "Compose";

  Compose() = default;  ///< without steps
  Compose(std::initializer_list<AnyTransform> steps);
  explicit Compose(std::vector<AnyTransform> steps);

  [[nodiscard]] at::Tensor operator()(image::Image image, data::Random& random) const;
  [[nodiscard]] at::Tensor operator()(at::Tensor chw, data::Random& random) const;
  [[nodiscard]] at::Tensor operator()(TensorImage tensor, data::Random& random) const;
  [[nodiscard]] KeypointTensor operator()(KeypointImage sample, data::Random& random) const;

  /// For chains that draw nothing. Errors: UsageError if a step draws.
  template <typename Input>
  requires(std::same_as<Input, image::Image> || std::same_as<Input, at::Tensor> ||
           std::same_as<Input, TensorImage> || std::same_as<Input, KeypointImage>)
      [[nodiscard]] auto
      operator()(Input input) const {
    data::Random unused = no_random();
    return (*this)(std::move(input), unused);
  }

  /// Returns the last step's result, unchanged.
  [[nodiscard]] Picture apply(Picture picture, data::Random& random) const;

  [[nodiscard]] size_t size() const { return steps_.size(); }
  [[nodiscard]] const AnyTransform& operator[](size_t i) const { return steps_[i]; }
  /// Returns the stream of step i in a call of the chain that draws from `chain`, which is the
  /// result of random.spawn() at the start of that call.
  [[nodiscard]] data::Random stream(size_t i, const data::Random& chain) const {
    return steps_.stream(i, chain);
  }
  /// True if any step draws random numbers.
  [[nodiscard]] bool is_random() const { return steps_.any_random(); }
  /// Returns the object that runs the chain for data sets. nullptr for Compose() and Compose{},
  /// which mean that there is no transform.
  [[nodiscard]] const ChainRunner* runner() const { return runner_; }
  /// "Compose(RandomResizedCrop(224), ToTensor())"
  [[nodiscard]] std::string to_string() const;

 private:
  [[nodiscard]] data::Random no_random() const;

  detail::Steps steps_;
  const ChainRunner* runner_ = nullptr;
};

}  // namespace argosy::vision
