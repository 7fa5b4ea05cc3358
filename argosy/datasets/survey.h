#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "argosy/datasets/source.h"

namespace argosy::datasets {

struct SurveyOptions {
  /// How many pictures are decoded for the figures of their pixels, evenly spaced; 0: all.
  int64_t pictures = 1000;
  int threads = 0;  ///< 0: one for each CPU
};

/// Least and greatest of something.
struct Range {
  double least = 0;
  double most = 0;
};

/// Mean and standard deviation of one channel, of pixels divided by 255: what Normalize wants.
struct ChannelFigures {
  double mean = 0;
  double deviation = 0;
};

/// What a data set holds, in numbers.
struct Survey {
  int64_t samples = 0;
  std::vector<int64_t> per_class{};  ///< samples of label 0, 1, …
  int64_t without_label = 0;
  Range height{};  ///< of the pictures
  Range width{};
  std::vector<int64_t> channels{};        ///< which numbers of channels there are, ascending
  int64_t pictures = 0;                   ///< that were decoded for the following
  Range pixels{};                         ///< 0 to 255
  std::vector<ChannelFigures> figures{};  ///< by channel; empty where channels differ
  Range points{};                         ///< coordinates of keypoints
  std::vector<int64_t> unknown_points{};  ///< of each keypoint: samples in which it is not known
  int64_t without_points = 0;             ///< samples without keypoints, in a set that has them
  int64_t damaged = 0;                    ///< pictures that cannot be read
  std::string first_damage{};             ///< the first of them, in words
  /// Samples that cannot be used: damaged records, labels outside the classes.
  int64_t unusable = 0;
  std::vector<std::string> first_unusable{};  ///< up to kMostTold of them, in words

  static constexpr size_t kMostTold = 10;
};

/// Reads every sample's label and shape (of encoded pictures the header) and decodes some of them.
/// What is damaged is counted and told, and no error.
[[nodiscard]] Survey survey(const Source& source, const SurveyOptions& options = {});

}  // namespace argosy::datasets
