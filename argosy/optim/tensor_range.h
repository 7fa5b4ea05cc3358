#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "argosy/optim/kernels/gradient.h"
#include "argosy/optim/kernels/squares.h"

// Internal to the room: the arithmetic of rules in memory that the kernels do not reach, because it
// is not the host's. It uses ATen's operators in the kernels' order, so a device that rounds as the
// CPU does gives the same bits.
namespace argosy::optim {

/// Tensors of one device and type, and operators that apply to each of them: libtorch's _foreach_
/// ones, with which a GPU starts a few kernels for all tensors instead of one for each. Names with
/// `_` change the tensors.
class TensorList final {
 public:
  TensorList() = default;
  explicit TensorList(std::vector<at::Tensor> tensors) : tensors_(std::move(tensors)) {}

  [[nodiscard]] const std::vector<at::Tensor>& tensors() const { return tensors_; }
  void push_back(at::Tensor tensor) { tensors_.push_back(std::move(tensor)); }

  [[nodiscard]] TensorList add(const TensorList& other) const;
  [[nodiscard]] TensorList add(double value) const;
  [[nodiscard]] TensorList sub(const TensorList& other) const;
  [[nodiscard]] TensorList mul(const TensorList& other) const;
  [[nodiscard]] TensorList mul(double value) const;
  [[nodiscard]] TensorList div(const TensorList& other) const;
  [[nodiscard]] TensorList div(double value) const;
  [[nodiscard]] TensorList sqrt() const;
  [[nodiscard]] TensorList sign() const;
  [[nodiscard]] TensorList clamp(double low, double high) const;
  [[nodiscard]] TensorList maximum(const TensorList& other) const;

  const TensorList& add_(const TensorList& other) const;
  const TensorList& add_(double value) const;
  const TensorList& sub_(const TensorList& other) const;
  const TensorList& mul_(double value) const;
  /// The i-th tensor by the i-th value.
  const TensorList& mul_(const std::vector<double>& values) const;
  const TensorList& div_(const TensorList& other) const;
  const TensorList& div_(double value) const;
  const TensorList& sqrt_() const;
  const TensorList& copy_(const TensorList& other) const;

 private:
  std::vector<at::Tensor> tensors_;
};

/// Whole parameters on a device that are updated alike, with the fields that MemoryRange has for
/// one on the CPU.
struct TensorRanges {
  TensorList params{};  ///< not leaves of autograd: written in place
  TensorList grads{};
  std::vector<TensorList> states{};   ///< in the order of Rule::state_names()
  std::vector<kernels::Sums> sums{};  ///< of each parameter, where the rule needs them
  std::size_t bytes = 0;              ///< of the parameters
};

/// Returns the gradients as the update sees them, like kernels::effective(). They may be
/// ranges.grads itself, so do not write to them.
[[nodiscard]] TensorList effective(const TensorRanges& ranges, const kernels::GradientTerms& terms);

/// Returns tensors of one number each. Waits for each device once.
[[nodiscard]] std::vector<double> fetch(const std::vector<at::Tensor>& numbers);
/// Of each tensor, in double, with the CPU's bits; waits for the device, once.
[[nodiscard]] std::vector<ExactSum> sums_of_squares_on_device(
    const std::vector<at::Tensor>& tensors);
/// Of each parameter and of what the rule compares it with. Waits for the device, once.
[[nodiscard]] std::vector<kernels::ExactSums> sums_of_squares(const TensorList& params,
                                                              const TensorList& updates);

}  // namespace argosy::optim
