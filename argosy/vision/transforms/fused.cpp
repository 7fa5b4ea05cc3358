#include "argosy/vision/transforms/fused.h"

#include <cstddef>

#include "argosy/base/check.h"
#include "argosy/vision/transforms/crop.h"
#include "argosy/vision/transforms/flip.h"

namespace argosy::vision {
namespace {

using image::Box;
using image::Size;

/// The state of the pixels between two steps, as FusedDraw says it.
class Tracker final {
 public:
  explicit Tracker(Size source)
      : draw_{.source = {0, 0, source.height, source.width},
              .resized = source,
              .window = {0, 0, source.height, source.width}} {}

  void apply(const AnyTransform& step, data::Random& random) {
    if (const auto* resize = step.as<Resize>()) {
      this->resize(resize->target(size()));
    } else if (const auto* part = step.as<RandomResizedCrop>()) {
      crop(part->draw(size(), random));
      this->resize(part->size());
    } else if (const auto* middle = step.as<CenterCrop>()) {
      crop(middle->box(size()));
    } else if (const auto* somewhere = step.as<RandomCrop>()) {
      const RandomCrop::Draw draw = somewhere->draw(size(), random);
      pad(somewhere->options().padding);
      pad(draw.needed);
      crop(draw.box);
    } else if (const auto* border = step.as<Pad>()) {
      pad(border->padding());
    } else if (const auto* flip_x = step.as<RandomHorizontalFlip>()) {
      draw_.flip_x ^= flip_x->draw(random);
    } else if (const auto* flip_y = step.as<RandomVerticalFlip>()) {
      draw_.flip_y ^= flip_y->draw(random);
    }
  }
  [[nodiscard]] const FusedDraw& draw() const { return draw_; }

 private:
  [[nodiscard]] Size size() const { return {draw_.window.height, draw_.window.width}; }

  /// `box` lies in the picture as it is now; what was flipped before is cut out mirrored, which
  /// lets the flip come last.
  void crop(const Box& box) {
    Box& window = draw_.window;
    window.left += draw_.flip_x ? window.width - box.left - box.width : box.left;
    window.top += draw_.flip_y ? window.height - box.top - box.height : box.top;
    window.width = box.width;
    window.height = box.height;
  }
  void pad(const image::Padding& padding) {
    const Size now = size();
    crop({.top = -padding.top,
          .left = -padding.left,
          .height = now.height + padding.top + padding.bottom,
          .width = now.width + padding.left + padding.right});
  }
  void resize(Size to) {  // the window is part of the source still: see Recogniser::resample()
    draw_.source = draw_.window;
    draw_.resized = to;
    draw_.window = {0, 0, to.height, to.width};
  }

  FusedDraw draw_;
};

/// f(step, its stream) for the steps of the chain, and of the chains in it.
template <typename F>
void for_each(const Compose& chain, data::Random& random, const F& f) {
  const data::Random own = random.spawn();
  for (size_t i = 0; i < chain.size(); ++i) {
    data::Random stream = chain.stream(i, own);
    if (const auto* inner = chain[i].as<Compose>()) {
      for_each(*inner, stream, f);
    } else {
      f(chain[i], stream);
    }
  }
}

}  // namespace

/// Reads a chain step by step; false from take() means that one pass cannot do it.
class Recogniser final {
 public:
  explicit Recogniser(const Compose& chain) : plan_(chain) {}

  bool take(const AnyTransform& step) {
    if (step.as<RandomHorizontalFlip>() != nullptr || step.as<RandomVerticalFlip>() != nullptr) {
      return flipped_ = true;
    }
    if (step.as<ToTensor>() != nullptr) {
      return plan_.to_tensor_ = true;
    }
    if (const auto* transpose = step.as<Transpose>()) {  // once: the next would turn a tensor
      const bool possible = transpose->makes_chw() && !plan_.to_tensor_ && !transposed_;
      transposed_ = true;
      return possible;
    }
    if (const auto* normalize = step.as<Normalize>()) {
      return take_normalize(*normalize);
    }
    return !plan_.to_tensor_ && !plan_.normalize_ && take_geometry(step);
  }
  [[nodiscard]] const FusedPlan& plan() const { return plan_; }

 private:
  bool take_normalize(const Normalize& normalize) {
    if (plan_.normalize_.has_value()) {
      return false;
    }
    plan_.normalize_ = normalize;
    plan_.normalizes_bytes_ = !plan_.to_tensor_;
    return true;
  }

  bool take_geometry(const AnyTransform& step) {
    if (const auto* resize = step.as<Resize>()) {
      const ResizeOptions& options = resize->options();
      return resample({options.interpolation, options.antialias}, resize->fixed_size());
    }
    if (const auto* part = step.as<RandomResizedCrop>()) {
      const RandomResizedCropOptions& options = part->options();
      return resample({options.interpolation, options.antialias}, part->size());
    }
    if (const auto* middle = step.as<CenterCrop>()) {  // pads smaller pictures with zeros
      return pad({}) && crop(middle->size());
    }
    if (const auto* somewhere = step.as<RandomCrop>()) {
      const RandomCropOptions& options = somewhere->options();
      const bool pads = options.pad_if_needed || options.padding != image::Padding{};
      return (!pads || pad({options.mode, options.fill})) && crop(somewhere->size());
    }
    if (const auto* border = step.as<Pad>()) {
      if (plan_.size_.has_value()) {
        plan_.size_->height += border->padding().top + border->padding().bottom;
        plan_.size_->width += border->padding().left + border->padding().right;
      }
      return pad(border->options());
    }
    return false;
  }

  /// Once, and of the source's own pixels: a border or a flip before it would be resized too.
  bool resample(const image::ResizeOptions& options, const std::optional<Size>& size) {
    const bool possible = !plan_.resize_.has_value() && !padded_ && !flipped_;
    plan_.resize_ = options;
    plan_.size_ = size;
    cropped_ = false;
    return possible;
  }
  bool crop(Size size) {
    plan_.size_ = size;
    return cropped_ = true;
  }
  /// After a cut, a border would show what was cut off.
  bool pad(const image::PadOptions& options) {
    const bool possible = !cropped_ && options.mode == image::PadMode::kConstant &&
                          (!padded_ || options.fill == plan_.border_);
    plan_.border_ = options.fill;
    padded_ = true;
    return possible;
  }

  FusedPlan plan_;
  bool transposed_ = false;
  bool flipped_ = false;
  bool cropped_ = false;
  bool padded_ = false;
};

FusedDraw FusedPlan::draw(Size source, data::Random& random) const {
  Tracker tracker(source);
  for_each(chain_, random, [&](const AnyTransform& step, data::Random& stream) {
    tracker.apply(step, stream);
  });
  return tracker.draw();
}

FusedPlan::Arithmetic FusedPlan::arithmetic(image::Order order) const {
  const auto channels = static_cast<size_t>(image::channels_of(order));
  Arithmetic all{.is_u8 = !to_tensor_ && !normalize_.has_value(),
                 .unit = true,
                 .mean = std::vector<float>(channels, 0.0F),
                 .std = std::vector<float>(channels, 1.0F)};
  if (normalize_.has_value()) {
    const auto type = normalizes_bytes_ ? image::Type::kU8 : image::Type::kF32;
    Normalize::Constants constants = normalize_->constants(order, type);
    all.mean = std::move(constants.mean);
    all.std = std::move(constants.std);
    all.unit = !normalizes_bytes_ || normalize_->options().scale == image::Scale::kUnit;
  }
  return all;
}

std::optional<FusedPlan> recognise(const Compose& chain) {
  Recogniser recogniser(chain);
  data::Random unused(0, 0, 0);
  bool possible = true;
  size_t steps = 0;
  for_each(chain, unused, [&](const AnyTransform& step, data::Random&) {
    possible = possible && recogniser.take(step);
    ++steps;
  });
  return possible && steps > 0 ? std::optional(recogniser.plan()) : std::nullopt;
}

}  // namespace argosy::vision
