// The header of a file of safetensors. Seeds: corpus/safetensors.
// fuzz-sources: formats/safetensors.cpp formats/safetensors_header.cpp os/fd.cpp
// fuzz-libraries:
// fuzz-options: -max_len=4096
// fuzz-rooms: argosy::formats.safetensors
#include <cstdlib>
#include <vector>

#include "argosy/base/error.h"
#include "argosy/formats/safetensors.h"

#include "tests/fuzz/fuzz_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace argosy::formats;  // NOLINT(google-build-using-namespace): this file is about it
  try {
    const SafetensorsFile file(fuzz_file(data, size));
    int64_t bytes = file.header().data_offset;
    for (const SafetensorEntry& entry : file.header().entries) {
      std::vector<std::byte> values(static_cast<size_t>(entry.bytes));
      file.read(entry, values);  // within the file, or it throws
      bytes += entry.bytes;
    }
    if (bytes != static_cast<int64_t>(size)) {
      std::abort();
    }
    // What was read can be written again.
    (void)lay_out_safetensors(file.header().entries, file.header().metadata);
  } catch (const argosy::DataError&) {  // what bad input is to bring
  }
  return 0;
}
