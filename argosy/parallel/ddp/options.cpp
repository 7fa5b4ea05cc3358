#include "argosy/parallel/ddp/options.h"

#include "argosy/base/check.h"

namespace argosy::parallel {

void DdpOptions::validate() const {
  constexpr const char* kWhere = "parallel.DdpOptions";
  ARGOSY_CHECK(first_bucket_bytes > 0,
               kWhere,
               "first_bucket_bytes must be positive, got {}",
               first_bucket_bytes);
  ARGOSY_CHECK(
      bucket_cap_bytes > 0, kWhere, "bucket_cap_bytes must be positive, got {}", bucket_cap_bytes);
  ARGOSY_CHECK(
      virtual_ranks >= 0, kWhere, "virtual_ranks must not be negative, got {}", virtual_ranks);
  if (shard.has_value()) {
    ARGOSY_CHECK(
        shard->degree >= 0, kWhere, "shard: degree must not be negative, got {}", shard->degree);
    ARGOSY_CHECK(shard->unit_bytes >= 0 && shard->kept >= 0,
                 kWhere,
                 "shard: unit_bytes and kept must not be negative, got {} and {}",
                 shard->unit_bytes,
                 shard->kept);
    ARGOSY_CHECK(memory_format != engine::MemoryFormat::kAuto,
                 kWhere,
                 "shard: memory_format = auto needs whole weights for its trial. Choose "
                 "contiguous, channels_last or as_is");
  }
  ARGOSY_CHECK(timeout.count() >= 0,
               kWhere,
               "timeout must not be negative, got {} ms. Zero means the group's.",
               timeout.count());
}

}  // namespace argosy::parallel
