#pragma once

#include <cstddef>
#include <functional>
#include <vector>

namespace argosy::optim::kernels {

/// A part of one of many arrays.
struct Piece {
  std::size_t array;
  std::size_t begin;
  std::size_t count;
};

/// Elements that one thread takes at a time: large enough to pay for waking it, small enough to
/// share out evenly, and the four arrays of Adam stay in a core's second-level cache.
inline constexpr std::size_t kBlock = std::size_t{32} * 1024;

/// Cuts arrays of the given lengths at multiples of kBlock. The pieces do not depend on the number
/// of threads, hence neither do sums over them. Empty arrays have no piece.
[[nodiscard]] std::vector<Piece> cut(const std::vector<std::size_t>& lengths);

/// Calls body(i) for each piece, small neighbours batched, on up to `threads` threads of OpenMP
/// (the ones that libtorch's operators use). Returns when all are done. `body` must not throw.
void for_each_piece(const std::vector<Piece>& pieces,
                    int threads,
                    const std::function<void(std::size_t)>& body);

}  // namespace argosy::optim::kernels
