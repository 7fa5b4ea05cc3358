// CSV, and the tables of the facial-keypoints contest in it. Seeds: corpus/csv.
// fuzz-sources: formats/csv.cpp formats/file_reader.cpp datasets/grays.cpp datasets/keypoints.cpp
//   datasets/files.cpp datasets/pixel_source.cpp os/fd.cpp os/whole_file.cpp
// fuzz-libraries: -lisal
// fuzz-options: -max_len=16384
// fuzz-rooms: argosy::datasets
#include <cstdint>
#include <string>

#include "argosy/base/error.h"
#include "argosy/datasets/keypoints.h"
#include "argosy/formats/csv.h"

#include "tests/fuzz/fuzz_file.h"

namespace {

using namespace argosy::formats;   // NOLINT(google-build-using-namespace): this file is about it
using namespace argosy::datasets;  // NOLINT(google-build-using-namespace)

constexpr int64_t kMostBytes = 1 << 20;

template <typename Read>
void attempt(const Read& read) {
  try {
    read();
  } catch (const argosy::DataError&) {
  }
}

void read_fields(const std::string& path) {
  CsvReader table(path, {.most_row_bytes = 1 << 16, .most_bytes = kMostBytes});
  volatile size_t bytes = 0;
  while (table.next()) {
    if (table.fields().size() != table.header().size()) {
      std::abort();
    }
    for (const auto field : table.fields()) {
      bytes = bytes + (field.empty() ? 0 : static_cast<size_t>(field.front() + field.back()));
    }
  }
}

void read_points(const std::string& path, Points points) {
  const Keypoints faces = read_keypoints(path, {.points = points, .most_bytes = kMostBytes});
  const size_t n = faces.rows.size();
  if (faces.pixels.size() != n * static_cast<size_t>(faces.side * faces.side) ||
      faces.points.size() != n * faces.names.size() * 2) {
    std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string& path = fuzz_file(data, size);
  attempt([&] { read_fields(path); });
  for (const Points points : {Points::kDrop, Points::kForwardFill, Points::kKeep}) {
    attempt([&] { read_points(path, points); });
  }
  attempt([&] { (void)read_faces(path, kMostBytes); });
  attempt([&] { (void)read_id_lookup(path); });
  return 0;
}
