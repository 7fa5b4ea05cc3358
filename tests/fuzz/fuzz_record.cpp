// Record files: the file, its metadata and the samples in it. The checksums that random bytes
// cannot hit are set right, where the layout allows it, after the bytes were tried as they are.
// Seeds: corpus/record.
// fuzz-sources: formats/packed_sample.cpp formats/records.cpp os/fd.cpp os/whole_file.cpp
//   os/memory.cpp
// fuzz-libraries:
// fuzz-options: -max_len=16384
// fuzz-rooms: argosy::formats
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "argosy/base/error.h"
#include "argosy/formats/packed_sample.h"
#include "argosy/formats/record_layout.h"
#include "argosy/formats/records.h"

#include "tests/fuzz/fuzz_file.h"

namespace {

using namespace argosy::formats;  // NOLINT(google-build-using-namespace): this file is about it
using Bytes = std::vector<uint8_t>;

uint64_t number_at(const Bytes& file, size_t at) {
  return layout::from_little<uint64_t>(std::as_bytes(std::span(file)).data() + at);
}

uint64_t checksum(const Bytes& file, size_t at, size_t bytes, uint64_t seed) {
  return layout::checksum(std::as_bytes(std::span(file)).subspan(at, bytes), seed);
}

void set_number(Bytes& file, size_t at, uint64_t number) {
  const auto raw = layout::to_little(number);
  std::memcpy(file.data() + at, raw.data(), raw.size());
}

bool fits(const Bytes& file, uint64_t at, uint64_t bytes) {
  return at <= file.size() && bytes <= file.size() - at;
}

/// Makes the checksums those of the bytes as they are.
void mend(Bytes& file) {
  if (file.size() < layout::kHeaderBytes + layout::kFooterBytes) {
    return;
  }
  const uint64_t metadata = number_at(file, 16);
  if (fits(file, layout::kHeaderBytes, metadata)) {
    const uint64_t seed = checksum(file, 0, 24, 0);
    set_number(file, 24, checksum(file, layout::kHeaderBytes, metadata, seed));
  }
  const size_t footer = file.size() - layout::kFooterBytes;
  const uint64_t index = number_at(file, footer);
  if (index > footer) {
    return;
  }
  for (uint64_t i = 0; i < (footer - index) / 8; ++i) {
    const uint64_t at = number_at(file, index + 8 * i);
    if (fits(file, at, layout::kRecordHeaderBytes) &&
        fits(file, at + layout::kRecordHeaderBytes, number_at(file, at))) {
      set_number(
          file, at + 8, checksum(file, at + layout::kRecordHeaderBytes, number_at(file, at), i));
    }
  }
  set_number(
      file, footer + 16, checksum(file, index, footer - index, checksum(file, footer, 16, 0)));
}

void read(const Bytes& file) {
  try {
    const RecordReader in(fuzz_file(file.data(), file.size()));
    try {
      (void)unpack_metadata(pack_metadata(unpack_metadata(in.metadata())));
    } catch (const argosy::DataError&) {
    }
    for (int64_t i = 0; i < in.size(); ++i) {
      try {
        const PackedSample sample = unpack_sample(in.record(i), in.path(), i);
        (void)unpack_sample(pack_sample(sample));
      } catch (const argosy::DataError&) {
      }
    }
  } catch (const argosy::DataError&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Bytes file(data, data + size);
  read(file);
  mend(file);
  read(file);
  return 0;
}
