#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "argosy/datasets/source.h"

namespace argosy::datasets {

struct PackOptions {
  std::string split{};  ///< the only split to write; empty: all, one after the other
  /// Samples of the source that are not written, ascending, such as damaged ones (see damage.h).
  std::vector<int64_t> leave_out{};
  /// Called with the number of samples written so far.
  std::function<void(int64_t done)> on_sample = nullptr;
};

struct Packed {
  int64_t samples = 0;
  int64_t bytes = 0;  ///< size of the record file
};

/// Writes samples into a record file (formats/records.h), each as a formats::PackedSample. Pictures
/// stay as they are in the source, so encoded ones stay encoded. The file records the split of each
/// sample, and appears whole or not at all.
/// Errors: UsageError for an unknown split; DataError of the source and of the file.
Packed pack(const Source& source, const std::string& path, const PackOptions& options = {});

}  // namespace argosy::datasets
