// All-reduce between processes of one host: shared memory, Gloo, and a plain copy of as many bytes
// by every rank, interleaved. Columns: ranks, size, way, median and fastest time, bandwidth of the
// data at the median.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "argosy/rendezvous/file_store.h"
#include "argosy/transport/gloo/gloo.h"
#include "argosy/transport/shm/shm.h"

#include "tests/support/run_ranks.h"
#include "tests/support/temp_dir.h"

namespace {

using namespace argosy;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

struct Way {
  std::string name;
  std::function<void(std::vector<float>&)> run;
  std::vector<double> microseconds{};
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void reduce(transport::Transport& transport, std::vector<float>& data) {
  transport.all_reduce(
      data.data(), std::ssize(data), transport::DType::kF32, transport::ReduceOp::kAvg, 30s);
}

void print(const Way& way, int size, int64_t bytes) {
  fmt::print("{} ranks {:>9} B  {:<10} median {:>9.1f} us  fastest {:>9.1f} us  {:>6.2f} GB/s\n",
             size,
             bytes,
             way.name,
             median(way.microseconds),
             *std::min_element(way.microseconds.begin(), way.microseconds.end()),
             static_cast<double>(bytes) / median(way.microseconds) / 1e3);
}

void measure(int rank, int size, const std::string& path) {
  const auto store = rendezvous::file_store(path);
  const auto gloo = transport::make_gloo(rendezvous::prefix_store(store, "gloo"), rank, size);
  const auto shm = transport::make_shm(rendezvous::prefix_store(store, "shm"), rank, size);
  for (const int64_t bytes : {4LL << 10, 64LL << 10, 1LL << 20, 32LL << 20}) {
    const int repetitions = bytes < 1 << 20 ? 400 : (bytes < 32 << 20 ? 60 : 11);
    std::vector<float> data(static_cast<size_t>(bytes / 4), 0.5F);
    std::vector<float> other(data.size());
    std::vector<Way> ways{
        {"shm", [&](auto& values) { reduce(*shm, values); }},
        {"gloo", [&](auto& values) { reduce(*gloo, values); }},
        {"copy",
         [&](auto& values) {
           std::memcpy(other.data(), values.data(), static_cast<size_t>(bytes));
         }},
    };
    for (int i = -3; i < repetitions; ++i) {  // the first three warm up
      for (Way& way : ways) {                 // interleaved: noise hits all
        shm->barrier(30s);
        const auto begin = Clock::now();
        way.run(data);
        if (i >= 0) {
          way.microseconds.push_back(
              std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
        }
      }
    }
    if (std::any_of(data.begin(), data.end(), [](float v) { return v != 0.5F; })) {
      fmt::print("wrong result: the numbers do not count\n");
    }
    for (const Way& way : ways) {
      if (rank == 0) {
        print(way, size, bytes);
      }
    }
  }
}

}  // namespace

int main() {
  for (const int size : {2, 4, 8}) {
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
