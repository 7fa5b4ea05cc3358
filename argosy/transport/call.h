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

/// A collective as one rank calls it. Ranks whose calls differ in any field must not take each
/// other's data. A Call also lies in shared memory, so it holds plain values and no pointers.
struct Call {
  Op op = Op::kBarrier;
  DType dtype = DType::kU8;
  ReduceOp reduction = ReduceOp::kSum;
  int32_t root = -1;  ///< -1: the operation has no root
  int64_t bytes = 0;  ///< as messages say it; 0 for kAllToAllV, where ranks differ
  /// A digest of how kAllGatherV divides the bytes, or a reduction deals its leaves; 0 in other
  /// operations.
  uint64_t parts = 0;
  int64_t seq = -1;   ///< its number in the group; -1: it has no number yet
  uint64_t step = 0;  ///< a digest of the step, when a collective consists of several
  bool exact = true;  ///< sums are in the tree's order: always, where there is no other
  TrainingPlace place{};

  friend bool operator==(const Call&, const Call&) = default;
};

/// Equal for equal calls. For calls that differ, it is equal for one pair in 2^64.
[[nodiscard]] uint64_t digest(const Call& call);
/// Makes one number of two, whose order matters. Good for digests, useless against an adversary.
[[nodiscard]] constexpr uint64_t mixed(uint64_t digest, uint64_t value) {
  const uint64_t product = (digest ^ value) * 0x9e3779b97f4a7c15ULL;
  return product ^ product >> 29U;
}
/// Returns `call` as a step of `whole`. It has the name of `whole`, and matches the same step only.
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
