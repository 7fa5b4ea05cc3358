#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace argosy::parallel {

struct DdpBucketStats {
  int64_t bytes = 0;                      ///< of the flat buffer, gaps included
  std::vector<std::string> parameters{};  ///< in the order in which they are expected
  /// How many of all parameters were ready when the last reduction of this bucket started. Fewer
  /// than all: communication ran beside backward.
  size_t ready_at_start = 0;
};

/// What a wrapper knows about itself. Source of the names: c10d::DDPLoggingData.
struct DdpStats {
  int rank = -1;
  int world_size = 0;
  size_t parameters = 0;  ///< tensors that are trained, each once
  int64_t parameter_bytes = 0;
  std::string comm_hook = "average";
  /// "channels_last", "contiguous", "as_is"; "auto" until that is decided. And why.
  std::string memory_format{};
  std::string memory_format_reason{};
  std::vector<DdpBucketStats> buckets{};  ///< in the order of reduction; empty in a group of one
  bool rebuilt = false;                   ///< the buckets follow the order of arrival
  /// Names in the order in which the gradients of the first reduced pass arrived, on this rank.
  std::vector<std::string> arrival_order{};
  /// Of the last reduced pass: parameters without a gradient on this rank.
  std::vector<std::string> unused{};
  int64_t reduced_passes = 0;    ///< backward passes that averaged gradients
  int64_t copied_gradients = 0;  ///< gradients that did not arrive in place, over all passes

  /// Of the last forward, and of the last reduced backward pass.
  std::chrono::nanoseconds forward{0};
  std::chrono::nanoseconds backward{0};       ///< from its first node seen to its last
  std::chrono::nanoseconds communication{0};  ///< from the first start to the last end of a bucket
  std::chrono::nanoseconds exposed{0};        ///< the part of it for which backward() had to wait
};

/// When the gradients of the last averaged backward pass were on their way, on this rank.
struct CommunicationTimes {
  using Moment = std::chrono::steady_clock::time_point;

  int64_t pass = 0;  ///< averaged passes so far; 0: no times yet
  Moment begun{};    ///< the first bucket was sent
  Moment waited{};   ///< backward had nothing else to do from here on
  Moment ended{};    ///< the last bucket had come
};

}  // namespace argosy::parallel
