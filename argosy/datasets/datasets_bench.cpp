// What packing brings: a whole set is opened and each of its bytes is read, in its own format and
// as record file. The files are in the page cache.
#include <filesystem>
#include <numeric>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "argosy/datasets/pack.h"
#include "argosy/datasets/sets.h"

namespace argosy::datasets {
namespace {

namespace fs = std::filesystem;

struct Set {
  const char* name;
  const char* path;  ///< below the folder of the real data
};

constexpr Set kSets[]{{"cifar10", "cifar10/cifar-10-binary.tar.gz"},
                      {"cifar10", "cifar10/cifar-10-python.tar.gz"},
                      {"flowers102", "flowers102"},
                      {"keypoints", "keypoints"},
                      {"mnist", "mnist"},
                      {"mnist_json", "mnist/mnist.json.gz"}};

/// Opens it and reads all bytes of all samples. Returns the number of samples.
int64_t read_all(const std::string& set, const std::string& path) {
  const auto source = open(set, {.path = path});
  Scratch scratch;
  uint64_t sum = 0;
  for (int64_t i = 0; i < source->size(); ++i) {
    const Sample sample = source->get(i, scratch);
    sum = std::accumulate(sample.picture.bytes.begin(), sample.picture.bytes.end(), sum);
  }
  benchmark::DoNotOptimize(sum);
  return source->size();
}

void original(benchmark::State& state, const Set& set) {
  const fs::path path = fs::path(ARGOSY_SHARED_DATA) / set.path;
  if (!fs::exists(path)) {
    state.SkipWithError("no real data beside the repository");
    return;
  }
  int64_t samples = 0;
  for (auto _ : state) {
    samples += read_all(set.name, path.string());
  }
  state.SetItemsProcessed(samples);
}

void packed(benchmark::State& state, const Set& set) {
  const fs::path path = fs::path(ARGOSY_SHARED_DATA) / set.path;
  if (!fs::exists(path)) {
    state.SkipWithError("no real data beside the repository");
    return;
  }
  const std::string out = (fs::temp_directory_path() / "argosy_datasets_bench.rec").string();
  pack(*open(set.name, {.path = path.string()}), out);
  int64_t samples = 0;
  for (auto _ : state) {
    samples += read_all("records", out);
  }
  state.SetItemsProcessed(samples);
  fs::remove(out);
}

const bool kRegistered = [] {
  for (const Set& set : kSets) {
    benchmark::RegisterBenchmark((std::string("original/") + set.path).c_str(), original, set)
        ->Unit(benchmark::kMillisecond);
    benchmark::RegisterBenchmark((std::string("packed/") + set.path).c_str(), packed, set)
        ->Unit(benchmark::kMillisecond);
  }
  return true;
}();

}  // namespace
}  // namespace argosy::datasets
