#include "argosy/engine/seed.h"

#include <mutex>
#include <optional>
#include <string>

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <torch/utils.h>

#include "argosy/base/check.h"
#include "argosy/base/env.h"

namespace argosy {

namespace {

/// The program's seed, and with what we have seeded the generator since.
struct Seeds {
  std::mutex mutex{};
  std::optional<uint64_t> of_program{};
  uint64_t of_generator = 0;
};

Seeds& seeds() {
  static Seeds all;
  return all;
}

}  // namespace

void seed_everything(uint64_t seed, int rank) {
  ARGOSY_CHECK(rank >= 0, "engine.seed_everything", "rank must not be negative, got {}", rank);
  Seeds& all = seeds();
  const std::lock_guard lock(all.mutex);
  all.of_program = seed;
  all.of_generator = engine::seed_of_rank(seed, rank);
  torch::manual_seed(all.of_generator);
}

namespace engine {
namespace {

/// cuBLAS is deterministic with one of these only; NVIDIA, "cuBLAS: results reproducibility".
bool cublas_workspace_is_fixed() {
  const std::optional<std::string> config = env::get("CUBLAS_WORKSPACE_CONFIG");
  return config == ":4096:8" || config == ":16:8";
}

}  // namespace

uint64_t base_seed() {
  Seeds& all = seeds();
  const std::lock_guard lock(all.mutex);
  const uint64_t now = at::globalContext().defaultGenerator(at::kCPU).current_seed();
  if (!all.of_program.has_value() || now != all.of_generator) {
    all.of_program = now;
    all.of_generator = now;
  }
  return *all.of_program;
}

void keep_base_seed() {
  Seeds& all = seeds();
  const std::lock_guard lock(all.mutex);
  if (all.of_program.has_value()) {
    all.of_generator = at::globalContext().defaultGenerator(at::kCPU).current_seed();
  }
}

void seed_generators(uint64_t seed) {
  (void)base_seed();  // before it is overwritten
  Seeds& all = seeds();
  const std::lock_guard lock(all.mutex);
  all.of_generator = seed;
  torch::manual_seed(seed);
}

uint64_t seed_of_rank(uint64_t seed, int rank) {
  if (rank == 0) {
    return seed;
  }
  // SplitMix64's steps (Steele et al., "Fast splittable pseudorandom number generators", 2014):
  // neighbouring ranks and seeds share nothing.
  uint64_t z = seed + static_cast<uint64_t>(rank) * 0x9e3779b97f4a7c15ULL;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

std::vector<std::string> set_deterministic(Deterministic mode) {
  const bool on = mode != Deterministic::kOff;
  at::Context& context = at::globalContext();
  context.setDeterministicAlgorithms(on, /*warn_only=*/mode == Deterministic::kWarn);
  context.setDeterministicCuDNN(on);
  if (on) {
    context.setBenchmarkCuDNN(false);
  }
  std::vector<std::string> gaps;
  if (on && at::Context::hasCUDA() && !cublas_workspace_is_fixed()) {
    gaps.emplace_back("cuBLAS: set CUBLAS_WORKSPACE_CONFIG=:4096:8 before the program starts");
  }
  if (on && !env::get("OMP_NUM_THREADS").has_value() && at::get_num_threads() > 1) {
    gaps.emplace_back(
        "threads of an operator: their number decides the order of sums; set OMP_NUM_THREADS to "
        "repeat a run on another machine");
  }
  return gaps;
}

Deterministic deterministic() {
  const at::Context& context = at::globalContext();
  if (!context.deterministicAlgorithms()) {
    return Deterministic::kOff;
  }
  return context.deterministicAlgorithmsWarnOnly() ? Deterministic::kWarn : Deterministic::kOn;
}

}  // namespace engine
}  // namespace argosy
