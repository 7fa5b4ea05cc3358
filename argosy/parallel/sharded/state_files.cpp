#include "argosy/parallel/sharded/state_files.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <memory>
#include <system_error>
#include <utility>

#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>

#include "argosy/base/error.h"
#include "argosy/os/fd.h"
#include "argosy/os/memory.h"

namespace argosy::parallel::sharded {
namespace {

os::Mapping map_nameless(const std::string& folder, size_t bytes) {
  const auto refuse = [&](const std::string& why) -> os::Mapping {
    throw ConfigError("parallel.offload",
                      fmt::format("cannot make a file of {} bytes in the folder \"{}\": {}. Give "
                                  "one on a disk with room, whose file system has nameless files "
                                  "(ext4, xfs, btrfs, tmpfs)",
                                  bytes,
                                  folder,
                                  why));
  };
  auto file = os::open_file(folder, O_RDWR | O_TMPFILE, 0600);
  if (!file.ok()) {
    return refuse(file.failure().what);
  }
  // Room for all of it now, for a page that finds none later ends the process.
  int error = EINTR;
  while (error == EINTR) {  // a signal that the program has caught
    error = ::posix_fallocate(file->get(), 0, static_cast<off_t>(bytes));
  }
  if (error != 0) {
    return refuse(std::generic_category().message(error));
  }
  auto mapping = os::Mapping::map(file->get(), bytes, os::Access::kReadWrite);
  return mapping.ok() ? std::move(*mapping) : refuse(mapping.failure().what);
}

}  // namespace

StateFiles::StateFiles(std::string folder) : folder_(std::move(folder)) {
  (void)map_nameless(folder_, 1);
}

at::Tensor StateFiles::zeros(int64_t elements, const at::TensorOptions& options) const {
  if (elements == 0) {
    return at::zeros({0}, options);
  }
  const auto mapping = std::make_shared<os::Mapping>(
      map_nameless(folder_, static_cast<size_t>(elements) * options.dtype().itemsize()));
  return at::from_blob(
      mapping->bytes().data(), {elements}, [mapping](void* /*data*/) {}, options);
}

}  // namespace argosy::parallel::sharded
