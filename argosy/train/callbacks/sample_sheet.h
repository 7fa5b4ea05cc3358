#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "argosy/datasets/contact_sheet.h"
#include "argosy/image/image.h"
#include "argosy/train/callback.h"

namespace argosy::train::detail {

/// The first pictures of an evaluation on this rank, with what they are and what the network said.
///
/// Takes part where a batch has images [N, C, H, W] with one channel or three, scores [N, classes]
/// and one label for each; of anything else there is no sheet. Numbers become colours by the
/// smallest and the largest of each channel in the first batch, which undoes a normalisation as far
/// as can be known; u8 are colours already.
class SampleSheet final {
 public:
  explicit SampleSheet(std::size_t most = 16) : most_(most) {}

  /// Of labels 0, 1, …, in the place of numbers; labels beyond them stay numbers.
  void set_class_names(std::vector<std::string> names) { names_ = std::move(names); }
  void clear();
  void add(const EvalStep& step);

  [[nodiscard]] bool empty() const { return tiles_.empty(); }
  /// Each with its label below, "7" or "cat", green where the network says so too; else "7, said
  /// 1", red. Names that do not fit beside each other are cut. Only where it is not empty.
  [[nodiscard]] image::Image sheet() const;

 private:
  [[nodiscard]] std::string name_of(int64_t label) const;
  [[nodiscard]] std::string caption_of(int64_t is, int64_t said) const;

  std::size_t most_;
  std::vector<datasets::Tile> tiles_;
  std::vector<std::string> names_{};
  at::Tensor low_;    // of each channel: what becomes 0
  at::Tensor scale_;  // and 255 over the distance to the largest
};

}  // namespace argosy::train::detail
