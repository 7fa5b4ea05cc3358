#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include <ATen/core/Tensor.h>

#include "argosy/comm/collectives.h"
#include "argosy/comm/group.h"
#include "argosy/engine/memory_count.h"
#include "argosy/engine/named.h"
#include "argosy/optim/step_division.h"
#include "argosy/parallel/ddp/shared_part.h"

namespace argosy::parallel::ddp {

/// Divides an optimizer's step among the ranks of a host. Each rank updates its share of all
/// elements in its own memory and also writes the new values into the other ranks' parameters.
/// step() waits for all of them. The optimizer's state exists once for all ranks, in shared memory.
///
/// The results have the same bits as when each rank updates everything, because gradients and
/// parameters are equal on all ranks. After an error in step(), this rank's parameters no longer
/// lie in shared memory. Nobody else writes to them then, but they may be partly old and partly
/// new.
class DividedStep final : public optim::StepDivision {
 public:
  /// Collective. `values` is the memory of the model's parameters, the same ones on all ranks;
  /// parameters elsewhere are not divided. `states` is the number of state tensors per parameter.
  /// Returns nullptr on all ranks if there is no memory.
  [[nodiscard]] static std::shared_ptr<DividedStep> create(const engine::NamedTensors& parameters,
                                                           std::size_t states,
                                                           std::shared_ptr<SharedPart> values,
                                                           const comm::Group& group,
                                                           std::chrono::milliseconds timeout);

  ~DividedStep() override;
  DividedStep(const DividedStep&) = delete;
  DividedStep& operator=(const DividedStep&) = delete;
  DividedStep(DividedStep&&) = delete;
  DividedStep& operator=(DividedStep&&) = delete;

  /// Makes rank 0's part hold the parameters of all ranks, so no new values need to be copied. It
  /// lasts until unshare(), or until this object ends; each rank then takes a copy with it. A
  /// second call does nothing. A barrier follows each, so nobody writes before all ranks have done
  /// it.
  void share();
  void unshare();

  [[nodiscard]] Part part_of(const at::Tensor& parameter) const override;
  [[nodiscard]] at::Tensor state_of(const at::Tensor& parameter, std::size_t index) const override;
  void begin(uint64_t digest, const InWords& in_words) override;
  void hand_out(const void* data, std::size_t bytes) const noexcept override;
  void end() override;
  /// Gives the parameters a copy of their values.
  void leave() noexcept override;

 private:
  struct Place {
    at::Tensor parameter{};
    void* own = nullptr;     ///< its place in this rank's part of the memory
    std::size_t offset = 0;  ///< in bytes, among all divided parameters
    Part part{};
  };

  DividedStep(std::shared_ptr<SharedPart> values,
              const comm::Group& group,
              std::chrono::milliseconds timeout);
  std::size_t place(const engine::NamedTensors& parameters);
  void place_at(const std::function<void*(void* own)>& where, bool with_values);
  [[nodiscard]] const Place* find(const at::Tensor& parameter) const;
  [[noreturn]] void throw_another_step(const InWords& in_words);
  template <typename Collective>
  void or_leave(Collective collective);

  std::shared_ptr<SharedPart> values_;
  std::shared_ptr<comm::SharedBlock> states_{};
  std::optional<engine::CountedMemory> counted_states_{};  ///< this rank's share of them
  comm::Group group_;
  std::chrono::milliseconds timeout_;
  uint32_t steps_ = 0;                               ///< that began, equal on all ranks
  bool shared_ = false;                              ///< all ranks use rank 0's parameters
  std::size_t state_bytes_ = 0;                      ///< of one state tensor of all parameters
  std::unordered_map<const void*, Place> places_{};  ///< by the address of the values
};

}  // namespace argosy::parallel::ddp
