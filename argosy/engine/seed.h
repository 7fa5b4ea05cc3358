#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace argosy {

/// Seeds libtorch's generators of the CPU and of every CUDA device. They drive the initialisation
/// of weights, dropout, randperm and torch::rand. Ranks that pass different `rank`s draw different
/// numbers.
///
///     argosy::seed_everything(42);                    // all ranks alike: weights start equal
///     argosy::seed_everything(42, group.rank());      // after the model is made: dropout differs
///
/// Rank 0 uses the seed itself, so one process draws the same numbers with and without the second
/// argument.
/// Not covered: data loading, which has separate streams for each sample (data::Random; set the
/// .seed of DataLoaderOptions and of samplers), std::rand, and generators that the program made.
/// Thread-safe. Errors: UsageError for a negative rank.
void seed_everything(uint64_t seed, int rank = 0);

namespace engine {

/// Returns the `seed` of the last seed_everything(), whatever its rank, or what the program has
/// given torch::manual_seed() since, or libtorch's default.
[[nodiscard]] uint64_t base_seed();
/// Call it after the generators got a state of before: base_seed() stays what it is.
void keep_base_seed();
/// Seeds the generators that seed_everything() seeds, and leaves base_seed() as it is.
void seed_generators(uint64_t seed);

/// Returns the seed that seed_everything() gives a rank's generators: `seed` for rank 0, a
/// well-mixed one for other ranks.
[[nodiscard]] uint64_t seed_of_rank(uint64_t seed, int rank);

enum class Deterministic {
  kOff,   ///< libtorch's choice of algorithms
  kWarn,  ///< deterministic ones; a warning for an operator without one
  kOn,    ///< deterministic ones; an operator without one throws c10::Error
};

/// Makes the same input give the same bits, run after run. libtorch then uses only deterministic
/// algorithms, and cuDNN neither tries algorithms out nor uses those that add atomically. It sets
/// the whole process.
///
///     for (const std::string& gap : engine::set_deterministic(engine::Deterministic::kOn)) …
///
/// Returns in words what this does not cover here, or nothing: cuBLAS needs
/// CUBLAS_WORKSPACE_CONFIG, and another number of OpenMP threads sums in another order. With the
/// same number of threads and ranks, the CPU's operators and Argosy's own reductions are
/// deterministic anyway. kOff returns nothing. Call it before the first operator. Cost: up to 2 ×
/// on CUDA.
std::vector<std::string> set_deterministic(Deterministic mode);
/// Returns the current mode.
[[nodiscard]] Deterministic deterministic();

}  // namespace engine
}  // namespace argosy
