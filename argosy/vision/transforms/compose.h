#pragma once

#include <concepts>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "argosy/data/random.h"
#include "argosy/vision/transforms/picture.h"
#include "argosy/vision/transforms/step.h"

namespace argosy::vision {

class ChainRunner;

/// Transforms one after another; what a data set does to a sample.
///
///     Compose augment{RandomResizedCrop(224), RandomHorizontalFlip(), ToTensor(),
///                     Normalize({0.485, 0.456, 0.406}, {0.229, 0.224, 0.225})};
///     at::Tensor chw = augment(photo, random);            // random: what get() receives
///     auto [image, points] = augment(sample, random);     // a KeypointImage
///
/// Its calls end in a tensor [C, H, W]: an image that leaves the last step is turned into one as it
/// is (u8 stays u8). apply() gives what left the last step.
///
/// Random numbers: each step has a stream of its own, keyed by (seed, epoch, sample) through
/// `random`, by which call on `random` this is, and by the step's name and number among those of
/// its name. So a sample's pixels do not depend on loader threads or on a resume; two calls with
/// one `random` are two views; putting a step in or out changes no other step's draws. `random`
/// itself is not drawn from. For the same draws on an image and its mask, pass copies of one
/// `random`.
///
/// A value; copies share the steps. Thread-safe: everything is const.
/// Errors: what a step throws; UsageError that names the step for what it cannot work on.
class Compose final {
 public:
  static constexpr std::string_view kName = "Compose";

  Compose() = default;  ///< without steps
  Compose(std::initializer_list<Step> steps);
  explicit Compose(std::vector<Step> steps);

  [[nodiscard]] at::Tensor operator()(image::Image image, data::Random& random) const;
  [[nodiscard]] at::Tensor operator()(at::Tensor chw, data::Random& random) const;
  [[nodiscard]] at::Tensor operator()(TensorImage tensor, data::Random& random) const;
  [[nodiscard]] KeypointTensor operator()(KeypointImage sample, data::Random& random) const;

  /// For chains that draw nothing. Errors: UsageError when a step does.
  template <typename Input>
  requires(std::same_as<Input, image::Image> || std::same_as<Input, at::Tensor> ||
           std::same_as<Input, TensorImage> || std::same_as<Input, KeypointImage>)
      [[nodiscard]] auto
      operator()(Input input) const {
    data::Random unused = no_random();
    return (*this)(std::move(input), unused);
  }

  /// What leaves the last step, as it is.
  [[nodiscard]] Picture apply(Picture picture, data::Random& random) const;

  [[nodiscard]] size_t size() const { return steps_.size(); }
  [[nodiscard]] const Step& operator[](size_t i) const { return steps_[i]; }
  /// The stream that step i gets in the chain whose calls draw from `chain`, which is what
  /// random.spawn() gives at the beginning of a call.
  [[nodiscard]] data::Random stream(size_t i, const data::Random& chain) const {
    return steps_.stream(i, chain);
  }
  /// Does any step draw random numbers?
  [[nodiscard]] bool is_random() const { return steps_.any_random(); }
  /// What runs it for data sets; nullptr for Compose() and Compose{}, which say that there is no
  /// transform.
  [[nodiscard]] const ChainRunner* runner() const { return runner_; }
  /// "Compose(RandomResizedCrop(224), ToTensor())"
  [[nodiscard]] std::string to_string() const;

 private:
  [[nodiscard]] data::Random no_random() const;

  detail::Steps steps_;
  const ChainRunner* runner_ = nullptr;
};

}  // namespace argosy::vision
