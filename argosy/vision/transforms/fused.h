#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "argosy/data/random.h"
#include "argosy/image/geometry.h"
#include "argosy/image/image.h"
#include "argosy/image/resize.h"
#include "argosy/vision/transforms/compose.h"
#include "argosy/vision/transforms/tensor.h"

// Runs an ordinary chain in one pass: decode, crop, resize, flip, normalize, straight into the
// batch. There is no second interface: recognise() reads the existing chain.
namespace argosy::vision {

/// The geometry that a chain applies to one sample, in this order.
struct FusedDraw {
  /// The used part of the source. Pixels outside it do not influence the result.
  image::Box source{};
  /// The size to which that part is resized; its own size if the chain does not resize.
  image::Size resized{};
  /// The part of the resized picture that is kept. Rows and columns beyond its edges are
  /// FusedPlan::border().
  image::Box window{};
  bool flip_x = false;  ///< swap left and right of the window
  bool flip_y = false;  ///< swap top and bottom

  bool operator==(const FusedDraw&) const = default;
};

/// The geometry and arithmetic of a recognised chain.
///
///     const std::optional<FusedPlan> plan = recognise(augment);
///     if (plan) {
///       const FusedDraw draw = plan->draw(header.size, random);   // what augment would draw
///       ... decode only draw.source, resize, keep the window, flip,
///       ... value = (u8 / 255 - mean[c]) / std[c]                 // plan->arithmetic(order)
///     } else {
///       augment(decode(bytes), random);
///     }
///
/// A value; thread-safe: everything is const.
class FusedPlan final {
 public:
  /// Makes the chain's draws from the same `random`, which then advances as in a call of the chain.
  /// Errors: those of the chain's steps for a source of this size (RandomCrop of a smaller one).
  [[nodiscard]] FusedDraw draw(image::Size source, data::Random& random) const;

  /// The options by which the chain resizes; nullopt if it does not.
  [[nodiscard]] const std::optional<image::ResizeOptions>& resize() const { return resize_; }
  /// The value beyond the resized picture's edges, one number per channel, in u8.
  [[nodiscard]] const image::Fill& border() const { return border_; }
  /// Size of all results; nullopt if it depends on the sample.
  [[nodiscard]] const std::optional<image::Size>& size() const { return size_; }

  /// The conversion of u8 to the result's numbers. In f32 it gives the bits of the chain: ((unit ?
  /// u8 / 255 : u8) - mean[c]) / std[c], each operation rounded.
  struct Arithmetic {
    bool is_u8 = false;         ///< bytes stay bytes; the other fields are unused
    bool unit = true;           ///< divide by 255 first
    std::vector<float> mean{};  ///< per channel; 0 if the chain does not normalize
    std::vector<float> std{};   ///< per channel; 1 if it does not
  };
  /// Returns the arithmetic for u8 pictures with these channels. Errors: those of Normalize for
  /// channels that do not fit it.
  [[nodiscard]] Arithmetic arithmetic(image::Order order) const;

 private:
  friend class Recogniser;
  explicit FusedPlan(Compose chain) : chain_(std::move(chain)) {}

  Compose chain_;
  std::optional<image::ResizeOptions> resize_{};
  image::Fill border_{};
  std::optional<image::Size> size_{};
  bool to_tensor_ = false;
  std::optional<Normalize> normalize_{};
  bool normalizes_bytes_ = false;  // Normalize gets u8, not ToTensor's result
};

/// Returns the plan of a chain whose result one pass gives, bit for bit; nullopt for every other
/// chain.
///
/// A chain is recognised if it consists of these steps, in any order in which each step gets the
/// same input as in one pass:
/// - at most one of Resize and RandomResizedCrop, before it at most a RandomCrop without a border;
/// - RandomCrop, CenterCrop and Pad. Steps that add a border (CenterCrop does around a small
///   picture) come before any that cuts, and use the same constant;
/// - RandomHorizontalFlip and RandomVerticalFlip, anywhere except before resizing;
/// - ToTensor, Transpose() and one Normalize, each optional, after the geometry;
/// - chains of these steps.
/// Not recognised: all other steps (colors, rotations, users' functions), mirrored borders, and
/// chains without steps.
[[nodiscard]] std::optional<FusedPlan> recognise(const Compose& chain);

}  // namespace argosy::vision
