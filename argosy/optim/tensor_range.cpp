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

/// Of each block, in the order of kernels::fold(). In pieces: in double a tensor takes twice its
/// memory.
at::Tensor squares_of_blocks(const at::Tensor& tensor) {
  constexpr int64_t kBlock = kernels::kSquaresBlock;
  constexpr int64_t kPiece = int64_t{1} << 24;
  static_assert(kPiece % kBlock == 0);
  const at::Tensor flat = tensor.is_non_overlapping_and_dense()
                              ? tensor.as_strided({tensor.numel()}, {1})
                              : tensor.flatten();
  std::vector<at::Tensor> sums;
  for (const at::Tensor& piece : flat.split(kPiece)) {
    at::Tensor numbers = piece.to(at::kDouble).square();
    if (const int64_t rest = numbers.numel() % kBlock; rest > 0) {
      numbers = at::constant_pad_nd(numbers, {0, kBlock - rest});
    }
    numbers = numbers.view({-1, kBlock});
    for (int64_t width = kBlock / 2; width > 0; width /= 2) {
      numbers = numbers.narrow(1, 0, width).add(numbers.narrow(1, width, width));
    }
    sums.push_back(numbers.flatten());
  }
  return at::cat(sums);
}

/// Waits for each device once.
std::vector<std::vector<double>> numbers_in(const std::vector<at::Tensor>& tensors) {
  std::map<std::string, std::vector<std::size_t>> by_device;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    by_device[tensors[i].device().str()].push_back(i);
  }
  std::vector<std::vector<double>> values(tensors.size());
  for (const auto& [device, places] : by_device) {
    std::vector<at::Tensor> of_device;
    for (const std::size_t place : places) {
      of_device.push_back(tensors[place].to(at::kDouble).flatten());
    }
    const at::Tensor all = at::cat(of_device).cpu();
    const double* next = all.data_ptr<double>();
    for (std::size_t i = 0; i < places.size(); ++i) {
      values[places[i]].assign(next, next + of_device[i].numel());
      next += of_device[i].numel();
    }
  }
  return values;
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
  std::vector<double> values;
  for (const std::vector<double>& one : numbers_in(numbers)) {
    values.push_back(one.front());
  }
  return values;
}

std::vector<ExactSum> sums_of_squares_on_device(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> of_blocks;
  for (const at::Tensor& tensor : tensors) {
    of_blocks.push_back(squares_of_blocks(tensor));
  }
  std::vector<ExactSum> sums(tensors.size());
  const std::vector<std::vector<double>> all = numbers_in(of_blocks);
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (const double sum : all[i]) {
      sums[i].add(sum);
    }
  }
  return sums;
}

std::vector<kernels::ExactSums> sums_of_squares(const TensorList& params,
                                                const TensorList& updates) {
  std::vector<at::Tensor> both = params.tensors();
  both.insert(both.end(), updates.tensors().begin(), updates.tensors().end());
  const std::vector<ExactSum> squares = sums_of_squares_on_device(both);
  std::vector<kernels::ExactSums> sums;
  for (std::size_t i = 0; i < params.tensors().size(); ++i) {
    sums.push_back({squares[i], squares[params.tensors().size() + i]});
  }
  return sums;
}

}  // namespace argosy::optim
