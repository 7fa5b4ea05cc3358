#include "argosy/datasets/cifar.h"

#include "argosy/datasets/cifar_batch.h"
#include "argosy/datasets/cifar_files.h"

namespace argosy::datasets {

CifarData read_cifar(const std::string& path, const CifarOptions& options) {
  options.limits.validate();
  CifarFiles files = read_cifar_files(path, options);
  CifarData data;
  size_t bytes = 0;
  for (const CifarFile& batch : files.batches) {
    bytes += batch.bytes.size();
  }
  data.pixels.reserve(bytes);  // a little more than the pixels; untouched pages cost nothing
  for (CifarFile& batch : files.batches) {
    append_cifar_batch(batch, data);
    batch.bytes = std::vector<uint8_t>();  // as the pixels grow, the files go
  }
  set_cifar_classes(files.names, data);
  return data;
}

}  // namespace argosy::datasets
