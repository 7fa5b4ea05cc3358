#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "argosy/transport/types.h"

namespace argosy::transport {

/// The collectives, and the meeting of the ranks that comes before them.
enum class Op : uint8_t {
  kConnect,
  kAllReduce,
  kReduce,
  kReduceScatter,
  kBroadcast,
  kAllGather,
  kAllGatherV,
  kGather,
  kScatter,
  kAllToAll,
  kAllToAllV,
  kBarrier,
  kShare,
};

/// A collective as one rank calls it. Ranks whose calls differ in any field do not do the same, and
/// must not take each other's data. It lies in shared memory too: plain values, no pointers.
struct Call {
  Op op = Op::kBarrier;
  DType dtype = DType::kU8;
  ReduceOp reduction = ReduceOp::kSum;
  int32_t root = -1;   ///< -1: it has none
  int64_t bytes = 0;   ///< as messages say it; 0 for kAllToAllV, where each rank has its own
  uint64_t parts = 0;  ///< a digest of how kAllGatherV divides the bytes; 0 for the others
  int64_t seq = -1;    ///< its number in the group; -1: it has none yet
  uint64_t step = 0;   ///< a digest of the step of a collective that is made of several
  TrainingPlace place{};

  friend bool operator==(const Call&, const Call&) = default;
};

/// Equal for equal calls; for others different, but for one pair in 2^64.
[[nodiscard]] uint64_t digest(const Call& call);
/// One number of two, whose order matters. For digests, not against an adversary.
[[nodiscard]] constexpr uint64_t mixed(uint64_t digest, uint64_t value) {
  const uint64_t product = (digest ^ value) * 0x9e3779b97f4a7c15ULL;
  return product ^ product >> 29U;
}
/// `call` as a step of `whole`: it is named like `whole`, and meets the same step of it only.
[[nodiscard]] Call step_of(const Call& whole, const Call& call);

/// "all_reduce".
[[nodiscard]] const char* name_of(Op op);
/// "reduce of 400 B of f32 (sum) with root 1".
[[nodiscard]] std::string in_words(const Call& call);
/// "rank 0 called barrier where rank 1 called broadcast of 8 B of f32 with root 0".
[[nodiscard]] std::string disagreement(std::string_view rank,
                                       const Call& call,
                                       std::string_view other_rank,
                                       const Call& other);

}  // namespace argosy::transport
