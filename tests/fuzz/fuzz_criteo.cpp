// Logs of clicks in the form of Criteo's data sets. Seeds: corpus/criteo.
// fuzz-sources: formats/criteo.cpp formats/file_reader.cpp os/fd.cpp
// fuzz-libraries: -lisal
// fuzz-options: -max_len=16384
// fuzz-rooms: argosy::formats
#include <cstdint>
#include <cstdlib>
#include <string>

#include "argosy/base/error.h"
#include "argosy/formats/criteo.h"

#include "tests/fuzz/fuzz_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using argosy::formats::ClickBatch;
  const std::string& path = fuzz_file(data, size);
  try {
    argosy::formats::CriteoReader log(path);
    ClickBatch all;
    for (size_t most = 1; log.read(most, all) > 0; most = most % 7 + 1) {
      if (all.numbers.size() != all.size() * ClickBatch::kNumbers ||
          all.categories.size() != all.size() * ClickBatch::kCategories || all.size() > size) {
        std::abort();
      }
    }
    std::string text;
    for (size_t row = 0; row < all.size(); ++row) {
      append_criteo_line(all, row, text);
    }
  } catch (const argosy::DataError&) {
  }
  return 0;
}
