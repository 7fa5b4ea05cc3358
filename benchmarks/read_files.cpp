// How long a whole file takes to become numbers in memory:
//
//     bench_read_files keypoints training.csv.gz
//     bench_read_files mnist_json mnist.json.gz
//
// Prints a line for compare.py: milliseconds, numbers read, their sum. Free of libtorch. The peer
// is peers/read_files.py.
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <exception>
#include <functional>
#include <numeric>
#include <string>

#include "argosy/datasets/keypoints.h"
#include "argosy/datasets/mnist_json.h"

namespace {

struct Outcome {
  size_t numbers = 0;
  double sum = 0;
};

template <typename Numbers>
Outcome outcome(const Numbers& numbers) {
  return {numbers.size(), std::accumulate(numbers.begin(), numbers.end(), 0.0)};
}

double ms_of(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
      .count();
}

void report(const std::string& kind, double ms, const Outcome& outcome) {
  fmt::print("{{\"bench\": \"{}\", \"samples_ms\": [{:.3f}], \"numbers\": {}, \"sum\": {:.6f}}}\n",
             kind,
             ms,
             outcome.numbers,
             outcome.sum);
}

}  // namespace

int main(int argc, char** argv) {
  using namespace argosy::datasets;
  const std::string kind = argc == 3 ? argv[1] : "";
  try {
    if (kind == "keypoints") {
      Keypoints faces;
      const double ms = ms_of([&] { faces = read_keypoints(argv[2], {.points = Points::kKeep}); });
      report(kind, ms, outcome(faces.pixels));
    } else if (kind == "mnist_json") {
      MnistJsonSplits digits;
      const double ms = ms_of([&] { digits = read_mnist_json(argv[2]); });
      report(kind, ms, outcome(digits.train.values));
    } else {
      fmt::print(stderr, "usage: bench_read_files keypoints|mnist_json FILE\n");
      return 2;
    }
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
  return 0;
}
