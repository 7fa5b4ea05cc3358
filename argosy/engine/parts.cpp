#include "argosy/engine/parts.h"

#include <exception>
#include <mutex>
#include <utility>

#include <ATen/ops/empty_strided.h>
#include <c10/core/GradMode.h>

#include "argosy/base/check.h"
#include "argosy/base/log.h"
#include "argosy/engine/layout.h"

namespace argosy::engine {
namespace {

/// nullptr: its values are not in a file, or it is a view of what is there, which operators read.
std::shared_ptr<ComingMemory> file_of(const at::Tensor& tensor) {
  auto memory = coming_memory_of(tensor);
  const bool is_all = memory != nullptr && memory->can_read() && tensor.is_contiguous() &&
                      !tensor.is_neg() && tensor.nbytes() == tensor.storage().nbytes();
  return is_all ? memory : nullptr;
}

at::Tensor read_from(ComingMemory& file, const at::Tensor& tensor, const IndexRange& range) {
  const at::Tensor read = file.read(tensor, range);
  return read.scalar_type() == tensor.scalar_type() ? read : read.view(tensor.scalar_type());
}

class DividedTensor final : public FetchedMemory {
 public:
  DividedTensor(TensorPart part, std::function<at::Tensor()> gather)
      : part_(std::move(part)), gather_(std::move(gather)) {}

  std::optional<TensorPart> own_part(const at::Tensor& view, bool /*to_write*/) override {
    ARGOSY_CHECK(view.nbytes() == view.storage().nbytes(),
                 "engine.own_part",
                 "a view of a tensor that ranks divide has no part of its own. Take all of it");
    return part_;
  }

 private:
  at::Tensor fetch() override {
    const at::Tensor whole = gather_();
    return elements_of(whole, {0, whole.numel()});
  }

  const TensorPart part_;
  const std::function<at::Tensor()> gather_;
};

}  // namespace

void FetchedMemory::before_use(bool writes) noexcept {
  const std::scoped_lock lock(mutex_);
  written_ = written_ || writes;
  if (uses_++ > 0) {
    return;
  }
  try {
    lent_ = fetch();
    lend(lent_);
  } catch (const std::exception& error) {
    log::error("a tensor has no values: {}", error.what());
    error_ = std::current_exception();
    lend_nothing();
  }
}

void FetchedMemory::after_use() noexcept {
  const std::scoped_lock lock(mutex_);
  if (--uses_ > 0) {
    return;
  }
  if (const at::Tensor lent = std::exchange(lent_, at::Tensor()); written_ && lent.defined()) {
    settle(lent);
  } else {
    take_back();
  }
}

void FetchedMemory::check() {
  const std::scoped_lock lock(mutex_);
  if (error_ != nullptr) {
    std::rethrow_exception(std::exchange(error_, nullptr));
  }
}

bool is_in_file(const at::Tensor& tensor) {
  return file_of(tensor) != nullptr;
}

at::Tensor divided_tensor(const at::Tensor& like,
                          const TensorPart& part,
                          std::function<at::Tensor()> gather) {
  const auto memory = std::make_shared<DividedTensor>(part, std::move(gather));
  return memory->make_flat(like.numel(), part.elements.options())
      .as_strided(like.sizes(), like.strides());
}

at::Tensor elements_of(const at::Tensor& dense, const IndexRange& part) {
  return dense.as_strided({part.size()}, {1}, dense.storage_offset() + part.begin);
}

at::Tensor in_order_of(const at::Tensor& like, const at::Tensor& tensor) {
  if (same_storage_order(like, tensor) && !tensor.is_neg()) {
    return tensor;
  }
  return at::empty_strided(like.sizes(), like.strides(), like.options().dtype(tensor.dtype()))
      .set_requires_grad(false)
      .copy_(tensor.detach());
}

std::optional<TensorPart> own_part(const at::Tensor& tensor, bool to_write) {
  const auto memory = coming_memory_of(tensor);
  if (memory == nullptr || memory->can_read()) {
    return std::nullopt;
  }
  ARGOSY_CHECK(is_dense(tensor) || tensor.numel() == 0,
               "engine.own_part",
               "a view of a tensor that ranks divide has no part of its own. Take all of it");
  return memory->own_part(tensor, to_write);
}

at::Tensor elements_like(const at::Tensor& like, const at::Tensor& from, const IndexRange& range) {
  const bool alike = same_storage_order(like, from);
  if (const auto file = file_of(from)) {
    return alike ? read_from(*file, from, range)
                 : elements_of(in_order_of(like, values_of(from)), range);
  }
  return elements_of(in_order_of(like, values_of(from).detach()), range);
}

void copy_values(const at::Tensor& to, const at::Tensor& from) {
  const c10::NoGradGuard no_grad;
  if (const auto part = own_part(to)) {
    // Before the part is asked for: to read divided values may bring others up to date.
    const at::Tensor values = elements_like(to, from, part->range);
    if (const auto own = own_part(to, /*to_write=*/true)) {
      own->elements.copy_(values);
      return;
    }
  }
  to.detach().copy_(values_of(from));
}

at::Tensor values_of(const at::Tensor& tensor) {
  const auto memory = coming_memory_of(tensor);
  if (memory == nullptr) {
    return tensor;
  }
  if (const auto file = file_of(tensor)) {
    return read_from(*file, tensor, {0, tensor.numel()}).view(tensor.sizes());
  }
  const c10::NoGradGuard no_grad;
  at::Tensor gathered = tensor.detach().clone();
  memory->check();
  return gathered;
}

}  // namespace argosy::engine
