#include "argosy/vision/transforms/compose.h"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "argosy/base/check.h"
#include "argosy/vision/datasets/one_pass.h"

namespace argosy::vision {
namespace {

/// FNV-1a: names are few and short, and the numbers must be the same on every platform for ever.
uint64_t hash(std::string_view text) {
  uint64_t value = 0xcbf29ce484222325ULL;
  for (const char c : text) {
    value = (value ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  }
  return value;
}

at::Tensor as_tensor(const Picture& picture) {
  return picture.is_image() ? to_chw(picture.image()) : picture.tensor().chw;
}

}  // namespace

namespace detail {

void throw_wrong_kind(std::string_view name,
                      std::string_view what,
                      const Picture& got,
                      std::string_view advice) {
  throw UsageError(fmt::format("vision.{}", name),
                   fmt::format("expected {}, got {}. {}", what, got.describe(), advice));
}

void put(Picture& into, at::Tensor tensor) {
  std::optional<image::Order> order = into.order();
  if (!order.has_value() || tensor.dim() != 3 || tensor.size(0) != image::channels_of(*order)) {
    order = usual_order(tensor);
  }
  into.set_tensor({.chw = std::move(tensor), .order = order});
}

Steps::Steps(std::vector<AnyTransform> steps) : steps_(std::move(steps)) {
  std::map<std::string_view, uint64_t> seen;
  keys_.reserve(steps_.size());
  for (const AnyTransform& step : steps_) {
    keys_.push_back(data::mix(hash(step.name()), seen[step.name()]++));
  }
}

Picture Steps::apply(size_t i, Picture picture, const data::Random& chain) const {
  data::Random own = stream(i, chain);
  return steps_[i].apply(std::move(picture), own);
}

std::string Steps::to_string() const {
  std::string text;
  for (const AnyTransform& step : steps_) {
    text += (text.empty() ? "" : ", ") + step.to_string();
  }
  return text;
}

}  // namespace detail

Compose::Compose(std::initializer_list<AnyTransform> steps)
    : Compose(std::vector<AnyTransform>(steps)) {}

Compose::Compose(std::vector<AnyTransform> steps)
    : steps_(std::move(steps)), runner_(steps_.size() == 0 ? nullptr : &chain_runner()) {}

Picture Compose::apply(Picture picture, data::Random& random) const {
  const data::Random chain = random.spawn();
  for (size_t i = 0; i < steps_.size(); ++i) {
    picture = steps_.apply(i, std::move(picture), chain);
  }
  return picture;
}

at::Tensor Compose::operator()(image::Image image, data::Random& random) const {
  return as_tensor(apply(std::move(image), random));
}

at::Tensor Compose::operator()(at::Tensor chw, data::Random& random) const {
  return as_tensor(apply(std::move(chw), random));
}

at::Tensor Compose::operator()(TensorImage tensor, data::Random& random) const {
  return as_tensor(apply(std::move(tensor), random));
}

KeypointTensor Compose::operator()(KeypointImage sample, data::Random& random) const {
  const Picture out = apply(std::move(sample), random);
  return {.image = as_tensor(out), .points = out.points()};
}

data::Random Compose::no_random() const {
  for (size_t i = 0; i < steps_.size(); ++i) {
    ARGOSY_CHECK(!steps_[i].is_random(),
                 "vision.Compose",
                 "{} draws at random: expected the sample's stream, call it as f(image, random)",
                 steps_[i].name());
  }
  return {0, 0, 0};
}

std::string Compose::to_string() const {
  return fmt::format("{}({})", kName, steps_.to_string());
}

}  // namespace argosy::vision
