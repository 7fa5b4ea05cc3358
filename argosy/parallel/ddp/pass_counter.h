#pragma once

#include <cstdint>

#include "argosy/comm/collectives.h"
#include "argosy/parallel/ddp/parameter_table.h"

namespace argosy::parallel::ddp {

/// Counts updates, and the averaged passes before each, so that an error can name ranks that are
/// out of step. Each rank counts by itself.
///
/// Any change of parameters between two passes is an update, whoever's optimizer makes it.
class PassCounter final {
 public:
  /// Counts a pass that begins. Cost: reads four elements of each parameter.
  [[nodiscard]] transport::TrainingPlace next(const ParameterTable& table);
  /// Returns another number than before if a parameter has changed. Cost: as above.
  [[nodiscard]] static uint64_t sample_of(const ParameterTable& table);
  [[nodiscard]] const transport::TrainingPlace& place() const { return place_; }  ///< of next()
  /// Starts the count again. All ranks must call it at the same point.
  void restart() { place_ = {}; }

 private:
  transport::TrainingPlace place_{};
  uint64_t sample_ = 0;  // of the parameters, when the last pass began
};

}  // namespace argosy::parallel::ddp
