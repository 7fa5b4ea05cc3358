#include "argosy/parallel/ddp/shared_part.h"

#include <algorithm>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>

#include "argosy/base/check.h"
#include "argosy/parallel/ddp/buckets.h"

namespace argosy::parallel::ddp {
namespace {

constexpr size_t kSharedPartLine = 64;  // a cache line, and the widest vector register
constexpr size_t kPage = 4096;  // parts of different ranks share none: each is given back alone

size_t rounded(size_t bytes, size_t step) {
  return (bytes + step - 1) / step * step;
}

}  // namespace

Allocate ordinary_memory() {
  return [](int64_t elements, const at::TensorOptions& options) {
    return at::zeros({elements}, options);
  };
}

int64_t aligned_bytes(const at::Tensor& tensor) {
  return static_cast<int64_t>(rounded(tensor.nbytes(), kSharedPartLine));
}

int64_t aligned_bytes(std::span<const at::Tensor> tensors) {
  int64_t bytes = 0;
  for (const at::Tensor& tensor : tensors) {
    bytes += aligned_bytes(tensor);
  }
  return bytes;
}

SharedPart::SharedPart(std::shared_ptr<comm::SharedBlock> block, int rank, int ranks)
    : block_(std::move(block)),
      rank_(rank),
      ranks_(ranks),
      stride_(block_->bytes().size() / static_cast<size_t>(ranks)) {}

SharedPart::~SharedPart() {
  if (!kept_) {
    block_->discard(static_cast<size_t>(rank_) * stride_, stride_);
  }
}

std::shared_ptr<SharedPart> SharedPart::create(int64_t bytes,
                                               const comm::Group& group,
                                               std::chrono::milliseconds timeout) {
  const size_t stride = rounded(static_cast<size_t>(bytes), kPage);
  std::shared_ptr<comm::SharedBlock> block =
      comm::share_memory(stride * static_cast<size_t>(group.size()), group, {.timeout = timeout});
  return block == nullptr ? nullptr
                          : std::shared_ptr<SharedPart>(
                                new SharedPart(std::move(block), group.rank(), group.size()));
}

at::Tensor SharedPart::zeros(int64_t elements, const at::TensorOptions& options) {
  const size_t bytes = static_cast<size_t>(elements) * options.dtype().itemsize();
  ARGOSY_INVARIANT(used_ + bytes <= stride_, "parallel.ddp.shared_part");
  std::byte* const data = block_->bytes().data() + static_cast<size_t>(rank_) * stride_ + used_;
  used_ += rounded(bytes, kSharedPartLine);
  return at::from_blob(
      data, {elements}, [keep = shared_from_this()](void* /*data*/) {}, options);
}

Allocate SharedPart::allocate() {
  return [self = shared_from_this()](int64_t elements, const at::TensorOptions& options) {
    return self->zeros(elements, options);
  };
}

std::byte* SharedPart::of(int rank, const void* mine) const {
  const auto offset = static_cast<const std::byte*>(mine) - block_->bytes().data();
  return block_->bytes().data() + offset + (rank - rank_) * static_cast<ptrdiff_t>(stride_);
}

bool SharedPart::holds(const void* data) const {
  const auto* const begin = block_->bytes().data() + static_cast<size_t>(rank_) * stride_;
  return data >= begin && data < begin + stride_;
}

void SharedPart::take_out(const at::Tensor& tensor, void* mine) {
  const at::NoGradGuard no_grad;
  const_cast<at::Tensor&>(tensor).set_data(tensor.detach().clone());  // NOLINT: a handle
  outside_.push_back({.tensor = tensor, .place = mine, .data = tensor.data_ptr()});
}

bool SharedPart::keeps(const at::Tensor& tensor) const {
  return holds(tensor.data_ptr()) || std::ranges::any_of(outside_, [&](const Outside& each) {
           return each.tensor.is_same(tensor) && each.data == tensor.data_ptr();
         });
}

void SharedPart::bring_back() {
  const at::NoGradGuard no_grad;
  for (Outside& each : std::exchange(outside_, {})) {
    if (each.tensor.data_ptr() != each.data) {
      continue;
    }
    const at::Tensor flat = at::from_blob(
        each.place,
        {each.tensor.numel()},
        [keep = shared_from_this()](void* /*data*/) {},
        each.tensor.options().requires_grad(false));
    const at::Tensor place = view_in(flat, 0, each.tensor);
    place.copy_(each.tensor);
    each.tensor.set_data(place);
  }
}

std::shared_ptr<SharedPart> move_into_shared_memory(std::span<const at::Tensor> parameters,
                                                    const comm::Group& group,
                                                    std::chrono::milliseconds timeout) {
  std::shared_ptr<SharedPart> part = SharedPart::create(aligned_bytes(parameters), group, timeout);
  if (part == nullptr) {
    return nullptr;
  }
  const at::NoGradGuard no_grad;
  const at::Tensor movable = at::zeros({static_cast<int64_t>(parameters.size())}, at::kByte);
  auto* const flags = movable.data_ptr<uint8_t>();
  for (size_t i = 0; i < parameters.size(); ++i) {
    const bool own = parameters[i].unsafeGetTensorImpl()->storage().use_count() == 1;
    flags[i] = own && parameters[i].is_non_overlapping_and_dense() ? 1 : 0;
  }
  comm::all_reduce(movable, group, {.op = comm::ReduceOp::kMin, .timeout = timeout});
  for (size_t i = 0; i < parameters.size(); ++i) {
    const at::Tensor& parameter = parameters[i];
    const at::Tensor flat =
        part->zeros(parameter.numel(), parameter.options().requires_grad(false));
    if (flags[i] != 0) {
      const at::Tensor place = view_in(flat, 0, parameter);
      place.copy_(parameter);
      const_cast<at::Tensor&>(parameter).set_data(
          place);  // NOLINT: a handle, of which there are more
    }
  }
  return part;
}

}  // namespace argosy::parallel::ddp
