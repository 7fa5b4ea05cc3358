#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "argosy/image/image.h"
#include "argosy/runs/picture_page.h"
#include "argosy/train/callback.h"

namespace argosy::train::detail {

/// The first pictures of an evaluation on this rank, with what they are and what the network said.
///
/// Takes part where a batch has images [N, C, H, W] with one channel or three, scores [N, classes]
/// and one label for each, and images as large as the first. Of anything else there are no samples.
/// Numbers become colors by the smallest and the largest of each channel in the first batch, which
/// undoes a normalization as far as can be known; u8 are colors already.
class EvalSamples final {
 public:
  explicit EvalSamples(std::size_t most = 16) : most_(most) {}

  /// Of labels 0, 1, …, in the place of numbers; labels beyond them stay numbers.
  void set_class_names(std::vector<std::string> names) { names_ = std::move(names); }
  void clear();
  void add(const EvalStep& step);

  [[nodiscard]] bool empty() const { return samples_.empty(); }
  /// Each with its label as caption, "cat", marked as right; else "cat, said dog", marked as wrong.
  [[nodiscard]] std::vector<runs::PagePicture> pictures() const;
  /// All beside each other in rows of four, in a green frame if right, in a red one if wrong. Only
  /// where it is not empty.
  [[nodiscard]] image::Image grid() const;
  /// The captions as a Markdown table, in the order of grid().
  [[nodiscard]] std::string table() const;

 private:
  struct Sample {
    at::Tensor pixels_chw{};  // u8
    int64_t label = 0;
    int64_t said = 0;
  };
  [[nodiscard]] std::string name_of(int64_t label) const;
  [[nodiscard]] std::string caption_of(const Sample& sample) const;

  std::size_t most_;
  std::vector<Sample> samples_{};
  std::vector<std::string> names_{};
  at::Tensor low_{};    // of each channel: what becomes 0
  at::Tensor scale_{};  // and 255 over the distance to the largest
};

}  // namespace argosy::train::detail
