#pragma once

#include <cstdint>

#include "argosy/comm/collectives.h"
#include "argosy/parallel/ddp/parameter_table.h"

namespace argosy::parallel::ddp {

/// Counts updates and the averaged passes before each, so that ranks which are out of step can be
/// named. Each rank counts by itself.
///
/// Whatever changes parameters between two passes is an update, whoever's optimizer makes it.
class PassCounter final {
 public:
  /// A pass begins. Cost: reads four elements of each parameter.
  [[nodiscard]] transport::TrainingPlace next(const ParameterTable& table);
  /// All ranks do this at the same place, and count from there.
  void restart() { place_ = {}; }

 private:
  transport::TrainingPlace place_{};
  uint64_t sample_ = 0;  // of the parameters, when the last pass began
};

}  // namespace argosy::parallel::ddp
