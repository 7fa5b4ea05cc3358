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

/// A batch, and what became of its samples.
template <typename Batch>
struct Made {
  std::optional<Batch> batch{};  ///< none: no sample of it was good, or its stream has ended
  int64_t samples = 0;
  BadSamples bad{};
  bool ended = false;  ///< its stream has nothing any more
};

/// A loop that has been left needs no more samples: prefetch drops what is thrown here.
inline void check_wanted(const BatchContext& context) {
  if (context.stopped()) {
    throw InternalError("data.DataLoader", "a dropped batch was used");
  }
}

/// The samples' batch. context.indices: what messages call them.
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
