#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "argosy/datasets/source.h"

namespace argosy::datasets {

struct Damage {
  int64_t index = 0;
  std::string reason{};  ///< with the sample's name or number
};

struct FindDamageOptions {
  int threads = 0;  ///< 0: one for each CPU
  /// Called in the calling thread with the number of samples looked at so far.
  std::function<void(int64_t done)> on_samples = nullptr;
};

/// Decodes every picture of a split, and returns the samples on which a training would fail, in
/// their order: pictures that end early or are not pictures, and damaged records. Other damage
/// inside a JPEG is accepted, as by the data sets. Stored pixels need no decoding.
[[nodiscard]] std::vector<Damage> find_damage(const Source& source,
                                              const SplitRange& split,
                                              const FindDamageOptions& options = {});

}  // namespace argosy::datasets
