// The memory that an operation reads and writes: that of the tensors where their elements lie in
// order, else another.
#pragma once

#include <algorithm>
#include <functional>
#include <numeric>
#include <vector>

#include "arguments.h"

namespace argosy_torch {

inline int64_t bytes_of(const at::Tensor& tensor) {
  return static_cast<int64_t>(tensor.nbytes());
}

// What an operation reads: the tensor itself where its elements lie in order.
inline at::Tensor to_read(const char* op, const at::Tensor& tensor) {
  check(op, tensor);
  return tensor.resolve_conj().resolve_neg().contiguous();
}

// What an operation writes. finish() copies it to the tensor, where it is not the tensor itself.
class Written {
 public:
  Written() = default;
  Written(const char* op, const at::Tensor& tensor) : Written(op, tensor, tensor.scalar_type()) {}
  // With what the tensor holds, for operations that read it too.
  static Written with_contents(const char* op, const at::Tensor& tensor) {
    return with_contents(op, tensor, tensor.scalar_type());
  }
  // As numbers of another type.
  static Written with_contents(const char* op, const at::Tensor& tensor, at::ScalarType type) {
    Written written(op, tensor, type);
    if (!written.memory_.is_same(tensor)) {
      written.memory_.copy_(tensor);
    }
    return written;
  }
  void* data() const { return memory_.data_ptr(); }
  const at::Tensor& memory() const { return memory_; }
  void finish() const {
    if (!memory_.is_same(tensor_)) {
      tensor_.copy_(memory_);
    }
  }

 private:
  Written(const char* op, const at::Tensor& tensor, at::ScalarType type) : tensor_(tensor) {
    check_written(op, tensor);
    memory_ =
        tensor.is_contiguous() && type == tensor.scalar_type()
            ? tensor
            : at::empty_like(tensor, tensor.options().dtype(type), at::MemoryFormat::Contiguous);
  }
  at::Tensor tensor_;
  at::Tensor memory_;
};

// Tensors one after another in one piece of memory, in bytes.
class Flat {
 public:
  Flat() = default;
  // What an operation reads.
  static Flat taken(const char* op, const Tensors& tensors) {
    const Flat flat(op, tensors, check);
    flat.take();
    return flat;
  }
  // What an operation writes, or reads and writes.
  Flat(const char* op, const Tensors& tensors) : Flat(op, tensors, check_written) {}
  const at::Tensor& memory() const { return memory_; }
  void* data() const { return memory_.data_ptr(); }
  const int64_t* counts() const { return counts_.data(); }
  int64_t bytes() const { return memory_.numel(); }
  bool even() const {
    return std::adjacent_find(counts_.begin(), counts_.end(), std::not_equal_to<>()) ==
           counts_.end();
  }
  // Fills the memory from the tensors.
  void take() const {
    each([](const at::Tensor& tensor, const at::Tensor& piece) { piece.copy_(tensor); });
  }
  // Fills the tensors from the memory.
  void give() const {
    each([](const at::Tensor& tensor, const at::Tensor& piece) { tensor.copy_(piece); });
  }

 private:
  using Check = void(const char* op, const at::Tensor& tensor);
  Flat(const char* op, const Tensors& tensors, Check check) : tensors_(tensors) {
    for (const at::Tensor& tensor : tensors) {
      check(op, tensor);
      counts_.push_back(bytes_of(tensor));
    }
    memory_ = at::empty({std::accumulate(counts_.begin(), counts_.end(), int64_t{0})}, at::kByte);
  }
  template <typename Copy>
  void each(Copy copy) const {
    int64_t begin = 0;
    for (size_t i = 0; i < tensors_.size(); ++i) {
      if (counts_[i] > 0) {
        const at::Tensor& tensor = tensors_[i];
        copy(tensor,
             at::from_blob(static_cast<char*>(data()) + begin, tensor.sizes(), tensor.options()));
      }
      begin += counts_[i];
    }
  }
  Tensors tensors_;
  std::vector<int64_t> counts_;
  at::Tensor memory_;
};

// Over the elements of `memory`, in place.
inline ArgosyStep sums(const char* op,
                       ArgosyStepKind kind,
                       const at::Tensor& memory,
                       const c10d::ReduceOp& reduction) {
  ArgosyStep step{};
  step.kind = kind;
  step.type = type_of(op, memory);
  step.reduction = reduction_of(op, reduction);
  TORCH_CHECK(library().argosy_is_defined(step.reduction, step.type) != 0,
              "argosy: ",
              op,
              ": tensors of ",
              memory.scalar_type(),
              " have no such reduction: BAND, BOR and BXOR are for integers and bool, AVG is not "
              "for bool.");
  step.output = memory.data_ptr();
  step.count = memory.numel();
  return step;
}

// The type in which several tensors of one process are summed, so that 16 bits are rounded once.
inline at::ScalarType type_of_sums(const at::Tensor& tensor) {
  const at::ScalarType type = tensor.scalar_type();
  return type == at::kHalf || type == at::kBFloat16 ? at::kFloat : type;
}

// Within a process, element by element.
inline void combine(ArgosyReduction reduction, at::Tensor into, const at::Tensor& from) {
  switch (reduction) {
    case ARGOSY_SUM:
      into.add_(from);
      break;
    case ARGOSY_PRODUCT:
      into.mul_(from);
      break;
    case ARGOSY_MIN:
      at::minimum_out(into, into, from);
      break;
    case ARGOSY_MAX:
      at::maximum_out(into, into, from);
      break;
    case ARGOSY_BAND:
      into.bitwise_and_(from);
      break;
    case ARGOSY_BOR:
      into.bitwise_or_(from);
      break;
    case ARGOSY_BXOR:
      into.bitwise_xor_(from);
      break;
    case ARGOSY_AVG:
      TORCH_CHECK(false, "argosy: a mean is not taken of two");
  }
}

// The tensors but one, each of which gets what that one has at the end.
inline Tensors others(const char* op, const Tensors& tensors, const at::Tensor& one) {
  Tensors rest;
  for (const at::Tensor& tensor : tensors) {
    if (&tensor != &one) {
      check_written(op, tensor);
      rest.push_back(tensor);
    }
  }
  return rest;
}

inline void copy_to(const Tensors& tensors, const at::Tensor& from) {
  for (const at::Tensor& tensor : tensors) {
    tensor.copy_(from);
  }
}

}  // namespace argosy_torch
