#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include <ATen/core/Tensor.h>

#include "argosy/comm/collectives.h"
#include "argosy/comm/group.h"
#include "argosy/engine/named.h"
#include "argosy/optim/step_division.h"
#include "argosy/parallel/ddp/shared_part.h"

namespace argosy::parallel::ddp {

/// The ranks of a host divide an optimizer's step: each updates its share of all elements, in its
/// own memory, and writes the new values into the parameters of the others as well, which wait for
/// it in step(). The optimizer's state lies in memory that all of them see, once for all ranks.
///
/// Same bits as when each rank updates everything, for gradients and parameters are equal on all.
/// After an error in step() the parameters of this rank no longer lie in shared memory: nobody
/// writes to them any more, but they may be partly old and partly new.
class DividedStep final : public optim::StepDivision {
 public:
  /// Collective. `values`: where the parameters of the model lie, the same ones on all ranks; those
  /// elsewhere are not divided. `states`: tensors of state that a parameter has. nullptr, on all
  /// ranks, when there is no memory.
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

  /// From now on, on all ranks, the parameters are those in the part of rank 0, and no new values
  /// need to be handed out. Until unshare(), or the end of this object, when each rank takes a copy
  /// with it. Twice does nothing. A barrier follows each: nobody writes before all have done it.
  void share();
  void unshare();

  [[nodiscard]] Part part_of(const at::Tensor& parameter) const override;
  [[nodiscard]] at::Tensor state_of(const at::Tensor& parameter, std::size_t index) const override;
  void begin(uint64_t digest) override;
  void hand_out(const void* data, std::size_t bytes) const noexcept override;
  void end() override;
  /// The parameters take a copy with them.
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
  template <typename Collective>
  void or_leave(Collective collective);

  std::shared_ptr<SharedPart> values_;
  std::shared_ptr<comm::SharedBlock> states_{};
  comm::Group group_;
  std::chrono::milliseconds timeout_;
  bool shared_ = false;          ///< the parameters of all ranks are those of rank 0
  std::size_t state_bytes_ = 0;  ///< of one tensor of state of every parameter
  std::unordered_map<const void*, Place> places_{};  ///< by where the values lie
};

}  // namespace argosy::parallel::ddp
