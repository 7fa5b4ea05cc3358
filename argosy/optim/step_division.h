#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

namespace argosy::optim {

/// How processes with the same parameters divide an optimizer's steps. Each updates its part of
/// every parameter and gives the new values to the others. The state lies in memory that all of
/// them see. The bits are the same as without it. See parallel::ddp::DividedStep.
class StepDivision {
 public:
  /// Elements of a parameter, in the order of its memory.
  struct Part {
    std::size_t begin = 0;
    std::size_t end = 0;
    bool divided = false;  ///< false: the part is all elements, and nobody else updates them
  };

  virtual ~StepDivision() = default;
  StepDivision() = default;
  StepDivision(const StepDivision&) = delete;
  StepDivision& operator=(const StepDivision&) = delete;
  StepDivision(StepDivision&&) = delete;
  StepDivision& operator=(StepDivision&&) = delete;

  /// Returns the part that this process updates.
  [[nodiscard]] virtual Part part_of(const at::Tensor& parameter) const = 0;
  /// Returns memory that all processes see, for state number `index` of a divided parameter, in its
  /// layout. Write to it only between begin() and end().
  [[nodiscard]] virtual at::Tensor state_of(const at::Tensor& parameter,
                                            std::size_t index) const = 0;

  /// What a process is about to do, in words: {{"learning rate of group 0", "0.1"}}.
  using InWords = std::function<std::vector<std::pair<std::string, std::string>>()>;
  /// Collective: returns when all processes are about to update. `digest` describes what each will
  /// do.
  /// Errors: UsageError naming the words that differ, if the digests do; CommError or TimeoutError
  /// naming ranks.
  virtual void begin(uint64_t digest, const InWords& in_words) = 0;
  /// Copies `bytes` of new values at `data`, in this process's part of a parameter, to the other
  /// processes.
  virtual void hand_out(const void* data, std::size_t bytes) const noexcept = 0;
  /// Collective: returns when every process has all new values. Errors: as begin(); the parameters
  /// are then partly old and partly new.
  virtual void end() = 0;
  /// Ends the division for this process alone: nobody writes into its parameters any more.
  virtual void leave() noexcept = 0;
};

}  // namespace argosy::optim
