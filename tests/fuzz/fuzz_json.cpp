// MNIST as JSON, with images of two numbers. Seeds: corpus/json.
// fuzz-sources: formats/file_reader.cpp datasets/json_text.cpp datasets/mnist_json.cpp
//   datasets/files.cpp datasets/pixel_source.cpp
// fuzz-libraries: -lisal -lsimdjson
// fuzz-options: -max_len=16384
// fuzz-rooms: argosy::datasets
#include <cstdint>

#include "argosy/base/error.h"
#include "argosy/datasets/mnist_json.h"

#include "tests/fuzz/fuzz_file.h"

namespace {

using argosy::datasets::MnistJsonSplit;

void check(const MnistJsonSplit& split) {
  if (split.values.size() != 2 * split.labels.size()) {
    std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const bool all = size == 0 || data[size - 1] != '\n';
  try {
    const auto digits = argosy::datasets::read_mnist_json(
        fuzz_file(data, size), {.pixels = 2, .train = all, .test = all, .most_bytes = 1 << 20});
    check(digits.train);
    check(digits.valid);
    check(digits.test);
  } catch (const argosy::DataError&) {
  }
  return 0;
}
