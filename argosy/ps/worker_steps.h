#pragma once

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

  /// Makes a step of the gradients that are there, and has the parameters of the next one.
  virtual void step() = 0;
  /// Reads the parameters as they are now.
  virtual void pull() = 0;
};

}  // namespace argosy::ps
