#pragma once

#include <cstddef>
#include <vector>

namespace fake_nccl {

/// Of an element of NCCL's type.
[[nodiscard]] size_t size_of(int type);
/// All ranks' data combined by NCCL's operation, as NCCL may do it: one rank after another, from a
/// rank that depends on the element, averages divided first, 16 bits rounded each time. So not in
/// the order of a tree.
[[nodiscard]] std::vector<std::byte> combined(const std::vector<std::vector<std::byte>>& ranks,
                                              int type,
                                              int op);

}  // namespace fake_nccl
