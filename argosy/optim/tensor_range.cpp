#include "argosy/optim/tensor_range.h"

#include <cmath>
#include <cstddef>
#include <map>
#include <string>

#include <ATen/Functions.h>

namespace argosy::optim {
namespace {

/// What libtorch 1.13 has no _foreach_ operator for.
template <typename Operator>
TensorList for_each_of(const TensorList& list, const TensorList& other, const Operator& apply) {
  TensorList results;
  for (std::size_t i = 0; i < list.tensors().size(); ++i) {
    results.push_back(apply(list.tensors()[i], other.tensors()[i]));
  }
  return results;
}

/// In pieces: in double a tensor takes twice its memory.
at::Tensor sum_of_squares(const at::Tensor& tensor) {
  constexpr int64_t kPiece = int64_t{1} << 24;
  if (tensor.numel() <= kPiece) {
    return tensor.to(at::kDouble).square().sum();
  }
  const at::Tensor flat = tensor.is_non_overlapping_and_dense()
                              ? tensor.as_strided({tensor.numel()}, {1})
                              : tensor.flatten();
  at::Tensor sum = at::zeros({}, flat.options().dtype(at::kDouble));
  for (const at::Tensor& piece : flat.split(kPiece)) {
    sum.add_(piece.to(at::kDouble).square().sum());
  }
  return sum;
}

}  // namespace

TensorList TensorList::add(const TensorList& other) const {
  return TensorList(at::_foreach_add(tensors_, other.tensors_));
}
TensorList TensorList::add(double value) const {
  return TensorList(at::_foreach_add(tensors_, value));
}
TensorList TensorList::sub(const TensorList& other) const {
  return TensorList(at::_foreach_sub(tensors_, other.tensors_));
}
TensorList TensorList::mul(const TensorList& other) const {
  return TensorList(at::_foreach_mul(tensors_, other.tensors_));
}
TensorList TensorList::mul(double value) const {
  return TensorList(at::_foreach_mul(tensors_, value));
}
TensorList TensorList::div(const TensorList& other) const {
  return TensorList(at::_foreach_div(tensors_, other.tensors_));
}
TensorList TensorList::div(double value) const {
  return TensorList(at::_foreach_div(tensors_, value));
}
TensorList TensorList::sqrt() const {
  return TensorList(at::_foreach_sqrt(tensors_));
}
TensorList TensorList::sign() const {
  return for_each_of(*this, *this, [](const at::Tensor& t, const at::Tensor&) { return t.sign(); });
}
TensorList TensorList::clamp(double low, double high) const {
  return for_each_of(
      *this, *this, [&](const at::Tensor& t, const at::Tensor&) { return t.clamp(low, high); });
}
TensorList TensorList::maximum(const TensorList& other) const {
  return for_each_of(
      *this, other, [](const at::Tensor& a, const at::Tensor& b) { return at::maximum(a, b); });
}

const TensorList& TensorList::add_(const TensorList& other) const {
  at::_foreach_add_(tensors_, other.tensors_);
  return *this;
}
const TensorList& TensorList::add_(double value) const {
  at::_foreach_add_(tensors_, value);
  return *this;
}
const TensorList& TensorList::sub_(const TensorList& other) const {
  at::_foreach_sub_(tensors_, other.tensors_);
  return *this;
}
const TensorList& TensorList::mul_(double value) const {
  at::_foreach_mul_(tensors_, value);
  return *this;
}
const TensorList& TensorList::mul_(const std::vector<double>& values) const {
  at::_foreach_mul_(tensors_, std::vector<at::Scalar>(values.begin(), values.end()));
  return *this;
}
const TensorList& TensorList::div_(const TensorList& other) const {
  at::_foreach_div_(tensors_, other.tensors_);
  return *this;
}
const TensorList& TensorList::div_(double value) const {
  at::_foreach_div_(tensors_, value);
  return *this;
}
const TensorList& TensorList::sqrt_() const {
  at::_foreach_sqrt_(tensors_);
  return *this;
}
const TensorList& TensorList::copy_(const TensorList& other) const {
  for_each_of(*this, other, [](const at::Tensor& to, const at::Tensor& from) {
    return to.copy_(from, /*non_blocking=*/true);
  });
  return *this;
}

TensorList effective(const TensorRanges& ranges, const kernels::GradientTerms& terms) {
  TensorList g = terms.scale == 1 ? ranges.grads : ranges.grads.mul(terms.scale);
  if (std::isfinite(terms.limit)) {
    g = g.clamp(-terms.limit, terms.limit);
  }
  switch (terms.penalty) {
    case kernels::Penalty::kNone:
      return g;
    case kernels::Penalty::kL1:
      return g.add(ranges.params.sign().mul_(terms.coeff));
    case kernels::Penalty::kL2:
      return g.add(ranges.params.mul(terms.coeff));
  }
  return g;
}

std::vector<double> fetch(const std::vector<at::Tensor>& numbers) {
  std::map<std::string, std::vector<std::size_t>> by_device;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    by_device[numbers[i].device().str()].push_back(i);
  }
  std::vector<double> values(numbers.size());
  for (const auto& [device, places] : by_device) {
    std::vector<at::Tensor> of_device;
    for (const std::size_t place : places) {
      of_device.push_back(numbers[place].to(at::kDouble));
    }
    const at::Tensor all = at::stack(of_device).cpu();
    for (std::size_t i = 0; i < places.size(); ++i) {
      values[places[i]] = all.data_ptr<double>()[i];
    }
  }
  return values;
}

std::vector<double> sums_of_squares_on_device(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> sums;
  for (const at::Tensor& tensor : tensors) {
    sums.push_back(sum_of_squares(tensor));
  }
  return fetch(sums);
}

std::vector<kernels::Sums> sums_of_squares(const TensorList& params, const TensorList& updates) {
  std::vector<at::Tensor> both = params.tensors();
  both.insert(both.end(), updates.tensors().begin(), updates.tensors().end());
  const std::vector<double> squares = sums_of_squares_on_device(both);
  std::vector<kernels::Sums> sums;
  for (std::size_t i = 0; i < params.tensors().size(); ++i) {
    sums.push_back({squares[i], squares[params.tensors().size() + i]});
  }
  return sums;
}

}  // namespace argosy::optim
