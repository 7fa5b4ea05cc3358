#pragma once

#include <cstdint>
#include <string>

#include <ATen/core/Tensor.h>

namespace argosy::parallel::sharded {

/// Memory in files of a folder, whose pages the system may write out and drop. The files have no
/// names, so that nothing is left behind, however the process ends.
class StateFiles final {
 public:
  /// Errors: ConfigError for a folder in which no file can be made.
  explicit StateFiles(std::string folder);
  /// Returns zeros. Errors: ConfigError where the disk is full.
  [[nodiscard]] at::Tensor zeros(int64_t elements, const at::TensorOptions& options) const;

 private:
  std::string folder_;
};

}  // namespace argosy::parallel::sharded
