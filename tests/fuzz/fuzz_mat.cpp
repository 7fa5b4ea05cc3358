// MATLAB 5 files. Seeds: corpus/mat.
// fuzz-sources: formats/file_reader.cpp formats/mat.cpp
//   formats/mat_elements.cpp
// fuzz-libraries: -lisal -lz
// fuzz-options: -max_len=16384
// fuzz-rooms: argosy::formats
#include <cstdint>
#include <numeric>

#include "argosy/base/error.h"
#include "argosy/formats/mat.h"

#include "tests/fuzz/fuzz_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const auto file = argosy::formats::read_mat(fuzz_file(data, size), {.most_bytes = 1 << 20});
    for (const auto& array : file.arrays) {
      int64_t numbers = 1;
      for (const int64_t dim : array.dims) {
        numbers *= dim;
      }
      if (numbers != array.size() || array.doubles().size() != static_cast<size_t>(numbers)) {
        std::abort();
      }
      try {
        (void)array.integers();
      } catch (const argosy::DataError&) {
      }
    }
  } catch (const argosy::DataError&) {
  }
  return 0;
}
