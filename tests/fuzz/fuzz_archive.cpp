// fuzz-sources: formats/archive.cpp formats/archive_stream.cpp
// fuzz-sources: formats/file_reader.cpp formats/shown_name.cpp os/fd.cpp os/memory.cpp
// fuzz-libraries: -larchive -lz -lisal
// fuzz-options: -max_len=16384
// fuzz-rooms: argosy::formats
#include <array>

#include "argosy/base/error.h"
#include "argosy/formats/archive.h"

#include "tests/fuzz/fuzz_file.h"

namespace {

using argosy::formats::ArchiveImage;
using argosy::formats::ArchiveReader;

// Small, so that a run stays short; each is met by some input.
constexpr argosy::formats::ArchiveLimits kLimits{
    .members = 200, .member_bytes = 1 << 20, .total_bytes = 4 << 20, .ratio = 100};

void check(bool condition) {
  if (!condition) {
    std::abort();
  }
}

void read_members(const std::string& path) {
  ArchiveReader reader(path, kLimits);
  for (int i = 0; const auto member = reader.next(); ++i) {
    check(!member->name.empty() && member->name[0] != '/' && member->size >= 0);
    std::array<uint8_t, 300> piece{};
    if (i % 3 == 0) {
      check(static_cast<int64_t>(reader.read_all().size()) == member->size);
    } else if (i % 3 == 1) {
      (void)reader.read(piece);
    }
  }
}

void read_image(const std::string& path) {
  const ArchiveImage image(path, {}, kLimits);
  static volatile uint8_t sink;  // so that every byte is read
  for (size_t i = 0; i < image.size(); ++i) {
    check(image.find(image.name(i)) == i);
    for (const uint8_t byte : image.bytes(i)) {
      sink = byte;
    }
  }
  (void)sink;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string& path = fuzz_file(data, size);
  try {
    read_members(path);
  } catch (const argosy::DataError&) {  // what bad input is to bring
  }
  try {
    read_image(path);
  } catch (const argosy::DataError&) {
  }
  return 0;
}
