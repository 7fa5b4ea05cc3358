// What is refused at the call of an operation: so one rank's mistake leaves its group whole. The
// messages have Gloo's words where programs look for them.
#pragma once

#include <cctype>
#include <vector>

#include <ATen/MemoryOverlap.h>

#include "work.h"

namespace argosy_torch {

inline ArgosyType type_of(const char* op, const at::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case at::kFloat:
      return ARGOSY_F32;
    case at::kDouble:
      return ARGOSY_F64;
    case at::kHalf:
      return ARGOSY_F16;
    case at::kBFloat16:
      return ARGOSY_BF16;
    case at::kChar:
      return ARGOSY_I8;
    case at::kByte:
      return ARGOSY_U8;
    case at::kInt:
      return ARGOSY_I32;
    case at::kLong:
      return ARGOSY_I64;
    case at::kBool:
      return ARGOSY_BOOL;
    default:
      TORCH_CHECK(false,
                  "argosy: ",
                  op,
                  ": tensors of ",
                  tensor.scalar_type(),
                  " cannot be reduced; expected Float, Double, Half, BFloat16, Char, Byte, Int, "
                  "Long or Bool. Reduce another type, and convert.");
  }
}

inline ArgosyReduction reduction_of(const char* op, const c10d::ReduceOp& reduction) {
  switch (static_cast<c10d::ReduceOp::RedOpType>(reduction)) {
    case c10d::ReduceOp::SUM:
      return ARGOSY_SUM;
    case c10d::ReduceOp::AVG:
      return ARGOSY_AVG;
    case c10d::ReduceOp::PRODUCT:
      return ARGOSY_PRODUCT;
    case c10d::ReduceOp::MIN:
      return ARGOSY_MIN;
    case c10d::ReduceOp::MAX:
      return ARGOSY_MAX;
    case c10d::ReduceOp::BAND:
      return ARGOSY_BAND;
    case c10d::ReduceOp::BOR:
      return ARGOSY_BOR;
    case c10d::ReduceOp::BXOR:
      return ARGOSY_BXOR;
    default:
      TORCH_CHECK(false,
                  "argosy: ",
                  op,
                  ": PREMUL_SUM is not supported. Multiply before the call, and use SUM.");
  }
}

inline void check(const char* op, const at::Tensor& tensor) {
  TORCH_CHECK(tensor.device().is_cpu(),
              "argosy: ",
              op,
              " of a tensor on ",
              tensor.device(),
              ": this backend is for tensors on the CPU. Name one for each device: "
              "init_process_group(\"cpu:argosy,cuda:nccl\").");
  TORCH_CHECK(tensor.layout() == at::kStrided,
              "argosy: ",
              op,
              " of a tensor with layout ",
              tensor.layout(),
              ": unsupported layout, expected a dense one. Call to_dense() before.");
}

inline void check_written(const char* op, const at::Tensor& tensor) {
  check(op, tensor);
  TORCH_CHECK(at::has_internal_overlap(tensor) != at::MemOverlap::Yes,
              "argosy: ",
              op,
              " into a tensor of which several elements lie at one place: sizes ",
              tensor.sizes(),
              ", strides ",
              tensor.strides(),
              ". Call clone() before.");
}

// What each tensor must have as the first one has it.
template <typename Property>
void check_each(const char* op, const Tensors& tensors, const char* what, Property property) {
  for (size_t i = 1; i < tensors.size(); ++i) {
    TORCH_CHECK(property(tensors[i]) == property(tensors[0]),
                "argosy: ",
                op,
                ": invalid tensor ",
                what,
                " at index ",
                i,
                ": ",
                property(tensors[i]),
                ", expected ",
                property(tensors[0]),
                ": tensors must all have the same ",
                what);
  }
}

// One or more tensors of one layout and type.
inline void check_kinds(const char* op, const Tensors& tensors) {
  TORCH_CHECK(!tensors.empty(), "argosy: ", op, " requires non-empty tensor list");
  check_each(op, tensors, "layout", [](const at::Tensor& tensor) { return tensor.layout(); });
  check_each(op, tensors, "type", [](const at::Tensor& tensor) { return tensor.scalar_type(); });
}

// Several tensors of one process, as if each were a rank's.
inline void check_alike(const char* op, const Tensors& tensors) {
  check_kinds(op, tensors);
  check_each(op, tensors, "size", [](const at::Tensor& tensor) { return tensor.sizes(); });
}

inline const at::Tensor& checked_root_tensor(const char* op, int64_t root, const Tensors& tensors) {
  TORCH_CHECK(root >= 0 && root < static_cast<int64_t>(tensors.size()),
              "argosy: ",
              op,
              ": invalid root tensor: ",
              root,
              " of ",
              tensors.size());
  return tensors[static_cast<size_t>(root)];
}

// The one entry of a list that an operation is called with. These checks have Gloo's words.
template <typename T>
T& only(const char* op, std::vector<T>& list, const char* what = "tensor list") {
  TORCH_CHECK(!list.empty(),
              "argosy: ",
              op,
              " requires a single-element ",
              what,
              ", got none: requires non-empty tensor list");
  TORCH_CHECK(list.size() == 1,
              "argosy: ",
              op,
              " requires a single-element ",
              what,
              ", got ",
              list.size(),
              ". Call it for each of them.");
  return list[0];
}

inline int checked_root(const char* op, int64_t root, int size) {
  TORCH_CHECK(root >= 0 && root < size,
              "argosy: ",
              op,
              ": invalid root rank: ",
              root,
              ", expected 0 to ",
              size - 1);
  return static_cast<int>(root);
}

// `what` is "input" or "output".
inline void check_list(const char* op, const Tensors& list, int size, const char* what) {
  TORCH_CHECK(static_cast<int>(list.size()) == size,
              "argosy: ",
              op,
              ": Incorrect ",
              what,
              " list size ",
              list.size(),
              ". ",
              static_cast<char>(std::toupper(what[0])),
              what + 1,
              " list size should be ",
              size,
              ": invalid ",
              what,
              " tensor list");
}

// Values that go from the one to the other.
inline void check_same(const char* op, const at::Tensor& from, const at::Tensor& to) {
  TORCH_CHECK(from.scalar_type() == to.scalar_type(),
              "argosy: ",
              op,
              " from ",
              from.scalar_type(),
              " to ",
              to.scalar_type(),
              ": invalid tensor type, expected the same on both sides");
}

inline void check_fits(const char* op, const at::Tensor& from, const at::Tensor& to) {
  check_same(op, from, to);
  TORCH_CHECK(from.numel() == to.numel(),
              "argosy: ",
              op,
              " of ",
              from.sizes(),
              " into ",
              to.sizes(),
              ": invalid tensor size, expected as many elements");
}

inline void check_gathered(const char* op,
                           const at::Tensor& whole,
                           const at::Tensor& part,
                           int size) {
  check_same(op, part, whole);
  TORCH_CHECK(whole.numel() == part.numel() * size,
              "argosy: ",
              op,
              ": the whole must have the elements of ",
              size,
              " parts, got ",
              whole.sizes(),
              " and ",
              part.sizes());
}

}  // namespace argosy_torch
