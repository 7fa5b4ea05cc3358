#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace argosy::parallel {

/// One bucket of gradients, as DdpStats reports it.
struct DdpBucketStats {
  int64_t bytes = 0;                      ///< size of the flat buffer, gaps included
  std::vector<std::string> parameters{};  ///< in the order in which gradients are expected
  /// The number of the model's parameters whose gradients were ready when the last reduction of
  /// this bucket started. Fewer than all means that communication overlapped with backward.
  size_t ready_at_start = 0;
};

/// What a wrapper reports about itself. Source of the names: c10d::DDPLoggingData.
struct DdpStats {
  int rank = -1;
  int world_size = 0;
  size_t parameters = 0;  ///< number of trained tensors; a shared tensor counts once
  int64_t parameter_bytes = 0;
  std::string comm_hook = "average";
  /// "channels_last", "contiguous" or "as_is"; "auto" until it is decided. The reason follows.
  std::string memory_format{};
  std::string memory_format_reason{};
  std::vector<DdpBucketStats> buckets{};  ///< in the order of reduction; empty in a group of one
  bool rebuilt = false;                   ///< the buckets follow the order of arrival
  /// Names of the parameters in the order in which this rank's first averaged pass reached them.
  std::vector<std::string> arrival_order{};
  /// Parameters that got no gradient on this rank in the last averaged pass.
  std::vector<std::string> unused{};
  int64_t reduced_passes = 0;    ///< backward passes that averaged gradients
  int64_t copied_gradients = 0;  ///< gradients that had to be copied into a bucket, all passes

  /// Durations of the last forward and of the last averaged backward pass.
  std::chrono::nanoseconds forward{0};
  std::chrono::nanoseconds backward{0};  ///< from its first node seen to its last
  // Of the host. On a device work is queued, and nobody waits: see torch's profiler for its times.
  std::chrono::nanoseconds communication{0};  ///< from the first start to the last end of a bucket
  std::chrono::nanoseconds exposed{0};        ///< the time for which backward() waited for it
};

/// When this rank communicated in its last averaged backward pass.
struct CommunicationTimes {
  using Moment = std::chrono::steady_clock::time_point;

  int64_t pass = 0;  ///< averaged passes so far; 0: the moments are not set
  Moment begun{};    ///< the reduction of the first bucket began
  Moment waited{};   ///< backward began to wait
  Moment ended{};    ///< the reduction of the last bucket ended
};

}  // namespace argosy::parallel
