#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "argosy/datasets/source.h"

namespace argosy::datasets {

struct SurveyOptions {
  /// How many pictures, evenly spaced, are decoded for the figures of pixels. 0: all.
  int64_t pictures = 1000;
  int threads = 0;  ///< 0: one for each CPU
};

/// The least and the greatest value of something.
struct Extremes {
  double least = 0;
  double most = 0;
};

/// Mean and standard deviation of one channel, for pixels divided by 255, as Normalize takes them.
struct ChannelFigures {
  double mean = 0;
  double deviation = 0;
};

/// The content of a data set in numbers.
struct Survey {
  int64_t samples = 0;
  std::vector<int64_t> per_class{};  ///< samples of label 0, 1, …
  int64_t without_label = 0;
  Extremes height{};  ///< heights of the pictures
  Extremes width{};
  std::vector<int64_t> channels{};        ///< the numbers of channels that occur, ascending
  int64_t pictures = 0;                   ///< pictures that were decoded for the fields below
  Extremes pixels{};                      ///< 0 to 255
  std::vector<ChannelFigures> figures{};  ///< by channel; empty if the numbers of channels differ
  Extremes points{};                      ///< coordinates of keypoints
  std::vector<int64_t> unknown_points{};  ///< for each keypoint: samples in which it is not known
  int64_t without_points = 0;             ///< samples without keypoints, in a set that has them
  int64_t damaged = 0;                    ///< pictures that cannot be read
  std::string first_damage{};             ///< the first of them, in words
  /// Samples that cannot be used: damaged records, labels outside the classes.
  int64_t unusable = 0;
  std::vector<std::string> first_unusable{};  ///< up to kMostTold of them, in words

  static constexpr size_t kMostTold = 10;
};

/// Reads every sample's label and shape (for encoded pictures the header) and decodes some of them.
/// Damage is counted and reported; it is not an error.
[[nodiscard]] Survey survey(const Source& source, const SurveyOptions& options = {});

}  // namespace argosy::datasets
