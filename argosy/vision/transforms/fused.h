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

// How a chain that is written plainly is done in one pass: decode, crop, resize, flip, normalize,
// straight into the batch. No second interface: recognise() reads the chain that there is.
namespace argosy::vision {

/// What a chain does to the pixels of one sample, in this order.
struct FusedDraw {
  /// Part of the source that counts; nothing beside it has a share in the result.
  image::Box source{};
  /// What that is resized to; its own size where the chain does not resize.
  image::Size resized{};
  /// What is kept of the resized picture. Rows and columns beyond its edges are
  /// FusedPlan::border().
  image::Box window{};
  bool flip_x = false;  ///< left and right of the window exchanged
  bool flip_y = false;  ///< top and bottom

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
  /// Draws what the chain draws from the same `random`, which moves on as by a call of the chain.
  /// Errors: what the chain's steps say of a source of this size (RandomCrop of a smaller one).
  [[nodiscard]] FusedDraw draw(image::Size source, data::Random& random) const;

  /// How the chain resizes; none where it does not.
  [[nodiscard]] const std::optional<image::ResizeOptions>& resize() const { return resize_; }
  /// What lies beyond the resized picture's edges, one number for each channel, in u8.
  [[nodiscard]] const image::Fill& border() const { return border_; }
  /// Size of all results; none where it depends on the sample.
  [[nodiscard]] const std::optional<image::Size>& size() const { return size_; }

  /// How u8 becomes a number of the result. f32 with the bits of the chain:
  /// ((unit ? u8 / 255 : u8) - mean[c]) / std[c], each operation rounded.
  struct Arithmetic {
    bool is_u8 = false;         ///< bytes stay bytes; the rest does not count
    bool unit = true;           ///< divided by 255 first
    std::vector<float> mean{};  ///< one for each channel; 0 where the chain does not normalize
    std::vector<float> std{};   ///< likewise 1
  };
  /// Of u8 pictures with these channels. Errors: as Normalize's, for channels that do not fit it.
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
  bool normalizes_bytes_ = false;  // Normalize meets u8, not what ToTensor made
};

/// The plan of a chain whose result one pass gives, bit for bit; none for every other chain.
///
/// Recognised, in any order in which each step sees what it would see in one pass:
/// - at most one of Resize and RandomResizedCrop, before it at most RandomCrop without a border;
/// - RandomCrop, CenterCrop and Pad; those which put a border (CenterCrop does around a small
///   picture) before anything is cut off, with a constant, all of them with one;
/// - RandomHorizontalFlip and RandomVerticalFlip, anywhere but before resizing;
/// - ToTensor, Transpose() and one Normalize, each with or without the others, after the geometry;
/// - chains of these in the chain.
/// Not recognised: anything else (colors, rotations, users' functions), mirrored borders, chains
/// without steps.
[[nodiscard]] std::optional<FusedPlan> recognise(const Compose& chain);

}  // namespace argosy::vision
