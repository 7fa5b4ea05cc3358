#include "argosy/parallel/ddp/options.h"

#include "argosy/base/check.h"

namespace argosy::parallel {
namespace {

void check_types(const MixedPrecision& mixed) {
  const auto is_short = [](at::ScalarType type) {
    return type == at::kHalf || type == at::kBFloat16;
  };
  ARGOSY_CHECK(is_short(mixed.param_dtype),
               "parallel.DdpOptions",
               "shard: mixed_precision: param_dtype must be Half or BFloat16, got {}",
               c10::toString(mixed.param_dtype));
  ARGOSY_CHECK(mixed.reduces_in() == mixed.param_dtype || mixed.reduces_in() == at::kFloat,
               "parallel.DdpOptions",
               "shard: mixed_precision: reduce_dtype must be Float or that of the parameters, got "
               "{}",
               c10::toString(mixed.reduces_in()));
}

}  // namespace

int ShardOptions::degree_of(int ranks) const {
  if (mesh.valid()) {
    ARGOSY_CHECK(
        mesh.ranks().size() == ranks,
        "parallel.fully_shard",
        "shard: the mesh has {} ranks, and {} are to divide the parameters. Give a mesh of "
        "all of them",
        mesh.ranks().size(),
        ranks);
    return static_cast<int>(mesh.size("sharding"));
  }
  ARGOSY_CHECK(degree == 0 || ranks % degree == 0,
               "parallel.fully_shard",
               "shard: {} ranks cannot be divided into groups of degree = {}",
               ranks,
               degree);
  return degree == 0 ? ranks : degree;
}

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
    ARGOSY_CHECK(shard->degree == 0 || !shard->mesh.valid(),
                 kWhere,
                 "shard: degree = {} and a mesh, which has a degree of its own. Give one of them",
                 shard->degree);
    ARGOSY_CHECK(shard->unit_bytes >= 0 && shard->kept >= 0,
                 kWhere,
                 "shard: unit_bytes and kept must not be negative, got {} and {}",
                 shard->unit_bytes,
                 shard->kept);
    ARGOSY_CHECK(!shard->offload.has_value() || !shard->offload->folder.empty(),
                 kWhere,
                 "shard: offload: the folder is missing, in whose files state is to lie");
    if (shard->mixed_precision.has_value()) {
      check_types(*shard->mixed_precision);
      ARGOSY_CHECK(!autocast.has_value(),
                   kWhere,
                   "autocast and shard.mixed_precision exclude each other: the one keeps f32 "
                   "parameters and casts in each operator, the other has 16-bit parameters. Leave "
                   "one of them out");
    }
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
