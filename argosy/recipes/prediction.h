#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "argosy/recipes/pictures.h"
#include "argosy/runs/picture_page.h"

// Internal to the room.
namespace argosy::recipes {

/// A class and the model's probability for it.
struct Guess {
  int64_t label = 0;
  double probability = 0;
};

/// The model's output for one picture.
struct Prediction {
  int64_t index = 0;
  std::string name{};            ///< the picture's name; may be empty
  int64_t label = -1;            ///< the true class; -1: not known
  std::vector<int64_t> tags{};   ///< of a set with several classes on a picture: those on it
  std::vector<Guess> guesses{};  ///< the likeliest first; empty for points
  std::vector<float> points{};   ///< x, y, x, y … in pixels of the stored picture
  std::vector<float> true_points{};

  [[nodiscard]] bool right() const { return !guesses.empty() && guesses.front().label == label; }
};

/// Returns the predictions for `outputs`: [N, classes] logits or [N, 2 K] coordinates, in the order
/// of `examples`.
[[nodiscard]] std::vector<Prediction> predictions_of(const PictureAssembly& assembly,
                                                     const Examples& examples,
                                                     const at::Tensor& outputs,
                                                     int64_t topk);

/// Writes predictions in the format of the ending .jsonl or .csv. "" and "-": CSV on standard
/// output.
/// Errors: UsageError for another ending; DataError with path.
void write_predictions(const std::string& path,
                       const std::vector<Prediction>& predictions,
                       const DataSet& data);

/// Returns a page of at most `size` predictions, evenly spread, with what was predicted and what is
/// true.
[[nodiscard]] runs::PicturePage sheet_of(const std::vector<Prediction>& predictions,
                                         const Examples& examples,
                                         const DataSet& data,
                                         int64_t size);

}  // namespace argosy::recipes
