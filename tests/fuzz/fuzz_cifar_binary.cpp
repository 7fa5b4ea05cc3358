// fuzz-sources: formats/archive.cpp formats/archive_stream.cpp datasets/cifar.cpp
//   datasets/cifar_batch.cpp datasets/cifar_files.cpp datasets/files.cpp
//   datasets/pixel_source.cpp formats/file_reader.cpp formats/pickle.cpp formats/pickle_input.cpp
//   formats/pickle_numpy.cpp formats/pickle_objects.cpp formats/pickle_stack.cpp
//   formats/pickle_text.cpp formats/pickle_tree.cpp formats/pickle_value.cpp formats/shown_name.cpp
//   os/fd.cpp os/memory.cpp
// fuzz-libraries: -larchive -lz -lisal
// fuzz-options: -max_len=16384
// fuzz-rooms: argosy::datasets
#include "argosy/base/error.h"
#include "argosy/datasets/cifar.h"

#include "tests/fuzz/fuzz_file.h"

namespace {

using argosy::datasets::CifarData;

void check(bool condition) {
  if (!condition) {
    std::abort();
  }
}

void check_data(const CifarData& data) {
  const auto classes = static_cast<size_t>(data.num_classes);
  check(data.size() > 0 && data.pixels.size() == data.size() * CifarData::kImageBytes);
  check(data.classes.size() == classes);
  check(data.coarse_labels.size() == (classes == 100 ? data.size() : 0));
  for (const uint8_t label : data.labels) {
    check(label < classes);
  }
  for (const uint8_t label : data.coarse_labels) {
    check(label < data.coarse_classes.size());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const argosy::formats::ArchiveLimits limits{
      .members = 200, .member_bytes = 1 << 20, .total_bytes = 4 << 20, .ratio = 100};
  const std::string& path = fuzz_file(data, size);
  for (const auto part :
       {argosy::datasets::CifarPart::kTrain, argosy::datasets::CifarPart::kTest}) {
    try {
      check_data(argosy::datasets::read_cifar(path, {.part = part, .limits = limits}));
    } catch (const argosy::DataError&) {  // what bad input is to bring
    }
  }
  return 0;
}
