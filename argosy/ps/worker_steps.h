#pragma once

#include <string>
#include <vector>

#include "argosy/ps/tables.h"

namespace argosy::ps {

/// How a worker makes the steps of a training. Internal to the room.
class WorkerSteps {
 public:
  WorkerSteps() = default;
  virtual ~WorkerSteps() = default;
  WorkerSteps(const WorkerSteps&) = delete;
  WorkerSteps& operator=(const WorkerSteps&) = delete;
  WorkerSteps(WorkerSteps&&) = delete;
  WorkerSteps& operator=(WorkerSteps&&) = delete;

  /// Reads what the training begins with. `checkpoint`: with which the servers begin, on the first
  /// worker; else "".
  virtual void begin(const std::string& /*checkpoint*/) { pull(); }
  /// Makes a step of the gradients that are there, and has the parameters of the next one.
  virtual void step() = 0;
  /// Reads the parameters as they are now.
  virtual void pull() = 0;
  /// Brings to the servers what they do not have yet.
  virtual void send_rest() {}
  /// Returns the parameters, where the servers do not have them.
  [[nodiscard]] virtual std::vector<SavedDense> dense() { return {}; }
  /// No worker makes steps any more.
  virtual void end() {}
};

}  // namespace argosy::ps
