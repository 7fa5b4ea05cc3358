#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace argosy {

/// Seeds libtorch's generators of the CPU and of every CUDA device: initialisation of weights,
/// dropout, randperm, torch::rand. Ranks with a `rank` each draw numbers of their own.
///
///     argosy::seed_everything(42);                    // all ranks alike: weights start equal
///     argosy::seed_everything(42, group.rank());      // after the model is made: dropout differs
///
/// Rank 0 has the seed itself, so that one process draws what it would without the second argument.
/// Not covered: data loading, which has streams of its own for each sample (data::Random: set
/// DataLoaderOptions' and samplers' .seed), std::rand, and generators that the program made.
/// Thread-safe. Errors: UsageError for a negative rank.
void seed_everything(uint64_t seed, int rank = 0);

namespace engine {

/// What seed_everything() gives the generators of a rank: `seed` for rank 0, well mixed others.
[[nodiscard]] uint64_t seed_of_rank(uint64_t seed, int rank);

enum class Deterministic {
  kOff,   ///< libtorch's choice of algorithms
  kWarn,  ///< deterministic ones, and a warning where there is none
  kOn,    ///< deterministic ones; operators without one throw c10::Error
};

/// Same input, same bits, run after run: libtorch uses deterministic algorithms only, and cuDNN
/// neither tries algorithms out nor takes those that add atomically. Sets the whole process.
///
///     for (const std::string& gap : engine::set_deterministic(engine::Deterministic::kOn)) …
///
/// Returns what is not covered here, in words, empty when nothing: cuBLAS without
/// CUBLAS_WORKSPACE_CONFIG; another number of OpenMP threads adds up differently. The CPU's
/// operators and Argosy's own reductions are deterministic anyway, for the same number of threads
/// and ranks. kOff returns nothing. Call it before the first operator. Cost: up to 2 × on CUDA.
std::vector<std::string> set_deterministic(Deterministic mode);
/// What is set.
[[nodiscard]] Deterministic deterministic();

}  // namespace engine
}  // namespace argosy
