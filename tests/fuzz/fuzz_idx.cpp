// fuzz-sources: formats/file_reader.cpp formats/idx.cpp
// fuzz-libraries: -lz -lisal
// fuzz-options: -max_len=4096
// fuzz-rooms: argosy::formats
#include <algorithm>

#include "argosy/base/error.h"
#include "argosy/formats/idx.h"

#include "tests/fuzz/fuzz_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const argosy::formats::IdxArray array = argosy::formats::read_idx(fuzz_file(data, size));
    int64_t bytes = argosy::formats::element_bytes(array.type);
    for (const int64_t dim : array.dims) {  // a product that has a zero may overflow before it
      bytes =
          std::find(array.dims.begin(), array.dims.end(), 0) != array.dims.end() ? 0 : bytes * dim;
    }
    if (bytes != static_cast<int64_t>(array.bytes.size())) {
      std::abort();
    }
  } catch (const argosy::DataError&) {  // what bad input is to bring
  }
  return 0;
}
