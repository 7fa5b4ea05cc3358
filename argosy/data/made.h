#pragma once

#include <cstdint>
#include <optional>
#include <type_traits>
#include <vector>

#include "argosy/base/error.h"
#include "argosy/data/bad_samples.h"
#include "argosy/data/collate.h"
#include "argosy/data/dataset.h"
#include "argosy/data/loader_options.h"

namespace argosy::data::detail {

/// A batch, and the outcome for its samples.
template <typename Batch>
struct Made {
  std::optional<Batch> batch{};  ///< nullopt: no sample was good, or the stream has ended
  int64_t samples = 0;
  BadSamples bad{};
  bool ended = false;  ///< its stream has ended
};

/// Thrown when a loop was left and needs no more samples. Prefetch drops it.
inline void check_wanted(const BatchContext& context) {
  if (context.stopped()) {
    throw InternalError("data.DataLoader", "a dropped batch was used");
  }
}

/// Returns the batch of the samples. context.indices are their names in messages.
template <typename D, typename Collate, typename Sample>
auto collate_or_name(const D& dataset,
                     const Collate& collate,
                     const std::vector<Sample>& samples,
                     const BatchContext& context,
                     int64_t number) {
  try {
    return collate_samples(dataset, collate, samples, context);
  } catch (...) {
    rethrow_as_data_error({"collate", context.indices, context.epoch, number});
  }
}

}  // namespace argosy::data::detail
