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

/// The first pictures of an evaluation on this rank, with their labels and the network's answers.
///
/// Takes samples from batches with images [N, C, H, W] of one or three channels, scores [N,
/// classes], one label for each image, and images as large as the first. Other batches give no
/// samples.
/// Numbers become colors by the smallest and the largest value of each channel in the first batch.
/// This undoes a normalization as far as it can be known. u8 are colors already.
class EvalSamples final {
 public:
  explicit EvalSamples(std::size_t most = 16) : most_(most) {}

  /// Sets the names that stand for labels 0, 1, …. Labels beyond them stay numbers.
  void set_class_names(std::vector<std::string> names) { names_ = std::move(names); }
  void clear();
  void add(const EvalStep& step);

  [[nodiscard]] bool empty() const { return samples_.empty(); }
  /// Returns the pictures with their captions: "cat", marked as right, or "cat, said dog", marked
  /// as wrong.
  [[nodiscard]] std::vector<runs::PagePicture> pictures() const;
  /// Returns all pictures in rows of four, each in a green frame if right, in a red one if wrong.
  /// Call it only if there are samples.
  [[nodiscard]] image::Image grid() const;
  /// Returns the captions as a Markdown table, in the order of grid().
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
  at::Tensor low_{};    // of each channel: the value that becomes 0
  at::Tensor scale_{};  // of each channel: 255 / (largest - low)
};

}  // namespace argosy::train::detail
