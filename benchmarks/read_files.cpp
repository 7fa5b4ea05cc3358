// Seconds that a whole file takes to become numbers in memory, for peers/read_files.py:
//   bench_read_files keypoints training.csv.gz
//   bench_read_files mnist_json mnist.json.gz
// Prints one line of JSON: seconds, numbers read, their sum (which the peer compares).
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <exception>
#include <functional>
#include <numeric>
#include <string>

#include "argosy/formats/keypoints.h"
#include "argosy/formats/mnist_json.h"

namespace {

struct Outcome {
  size_t numbers = 0;
  double sum = 0;
};

template <typename Numbers>
Outcome outcome(const Numbers& numbers) {
  return {numbers.size(), std::accumulate(numbers.begin(), numbers.end(), 0.0)};
}

double seconds_of(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void report(double seconds, const Outcome& outcome) {
  fmt::print("{{\"seconds\": {:.6f}, \"numbers\": {}, \"sum\": {:.6f}}}\n",
             seconds,
             outcome.numbers,
             outcome.sum);
}

}  // namespace

int main(int argc, char** argv) {
  using namespace argosy::formats;
  const std::string kind = argc == 3 ? argv[1] : "";
  try {
    if (kind == "keypoints") {
      Keypoints faces;
      const double seconds =
          seconds_of([&] { faces = read_keypoints(argv[2], {.missing = Missing::kKeep}); });
      report(seconds, outcome(faces.pixels));
    } else if (kind == "mnist_json") {
      MnistJson digits;
      const double seconds = seconds_of([&] { digits = read_mnist_json(argv[2]); });
      report(seconds, outcome(digits.train.values));
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
