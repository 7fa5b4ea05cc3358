// All-reduce over Gloo between processes: rank order against Gloo's ring.
// Columns: ranks, size, algorithm, median and fastest time, bandwidth of the data at the median.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "argosy/rendezvous/file_store.h"
#include "argosy/transport/gloo/gloo.h"

#include "tests/support/run_ranks.h"
#include "tests/support/temp_dir.h"

namespace {

using namespace argosy;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void measure(int rank, int size, const std::string& path) {
  const auto store = rendezvous::file_store(path);
  const auto make = [&](const char* name, transport::GlooAlgorithm algorithm) {
    return transport::make_gloo(
        rendezvous::prefix_store(store, name), rank, size, {.algorithm = algorithm});
  };
  const auto ordered = make("ordered", transport::GlooAlgorithm::kRankOrder);
  const auto ring = make("ring", transport::GlooAlgorithm::kRing);
  for (const int64_t bytes : {4LL << 10, 1LL << 20, 32LL << 20}) {
    const int repetitions = bytes < 1 << 20 ? 400 : (bytes < 32 << 20 ? 60 : 11);
    std::vector<float> data(static_cast<size_t>(bytes / 4), 0.5F);
    std::vector<double> microseconds[2];
    for (int i = -3; i < repetitions; ++i) {  // the first three warm up
      for (const int which : {0, 1}) {        // interleaved: noise hits both
        auto& transport = which == 0 ? *ordered : *ring;
        transport.barrier(30s);
        const auto begin = Clock::now();
        transport.all_reduce(
            data.data(), bytes / 4, transport::DType::kF32, transport::ReduceOp::kAvg, 30s);
        if (i >= 0) {
          microseconds[which].push_back(
              std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
        }
      }
    }
    if (std::any_of(data.begin(), data.end(), [](float v) { return v != 0.5F; })) {
      fmt::print("wrong result: the numbers do not count\n");
    }
    for (const int which : {0, 1}) {
      if (rank == 0) {
        fmt::print(
            "{} ranks {:>9} B  {:<10} median {:>9.1f} us  fastest {:>9.1f} us  {:>6.2f} GB/s\n",
            size,
            bytes,
            which == 0 ? "rank order" : "ring",
            median(microseconds[which]),
            *std::min_element(microseconds[which].begin(), microseconds[which].end()),
            static_cast<double>(bytes) / median(microseconds[which]) / 1e3);
      }
    }
  }
}

}  // namespace

int main() {
  for (const int size : {2, 4}) {
    const test::TempDir folder;
    const auto outcomes = test::try_run_ranks(
        size,
        [&](int rank) { measure(rank, size, (folder.path() / "store").string()); },
        {.mode = test::RankMode::kProcesses, .deadline = 300s});
    fmt::print("{}", outcomes[0].output);
    for (const auto& outcome : outcomes) {
      if (!outcome.ok()) {
        fmt::print("{}\n", describe(outcome));
        return 1;
      }
    }
  }
  return 0;
}
