#pragma once

#include <cstddef>
#include <cstdint>

#include <ATen/core/Tensor.h>

namespace argosy::optim {

/// How processes with the same parameters divide an optimizer's steps: each updates its part of
/// every parameter and hands the new values out to the others, and the state lies in memory that
/// all of them see. Same bits as without it. See parallel::ddp::DividedStep.
class StepDivision {
 public:
  /// Elements of a parameter, in the order of its memory.
  struct Part {
    std::size_t begin = 0;
    std::size_t end = 0;
    bool divided = false;  ///< false: all elements, and nobody else updates them
  };

  virtual ~StepDivision() = default;
  StepDivision() = default;
  StepDivision(const StepDivision&) = delete;
  StepDivision& operator=(const StepDivision&) = delete;
  StepDivision(StepDivision&&) = delete;
  StepDivision& operator=(StepDivision&&) = delete;

  /// Which part this process updates.
  [[nodiscard]] virtual Part part_of(const at::Tensor& parameter) const = 0;
  /// Memory that all processes see for a state of a divided parameter, in its layout. `index`:
  /// which state. To be written between begin() and end() only.
  [[nodiscard]] virtual at::Tensor state_of(const at::Tensor& parameter,
                                            std::size_t index) const = 0;

  /// Collective: returns when all processes are about to update. `digest` tells what each is about
  /// to do. Errors: UsageError when they differ; CommError, TimeoutError naming ranks.
  virtual void begin(uint64_t digest) = 0;
  /// Copies `bytes` of new values at `data`, in this process's part of a parameter, to the others.
  virtual void hand_out(const void* data, std::size_t bytes) const noexcept = 0;
  /// Collective: returns when every process has all new values. Errors: as begin(); the parameters
  /// are then partly old and partly new.
  virtual void end() = 0;
  /// By this process alone: nobody writes into its parameters any more, nor are they divided.
  virtual void leave() noexcept = 0;
};

}  // namespace argosy::optim
