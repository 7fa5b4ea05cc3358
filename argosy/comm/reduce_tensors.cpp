#include "argosy/comm/reduce_tensors.h"

#include <cstddef>

#include <ATen/ATen.h>

namespace argosy::comm {
namespace {

using transport::DType;
using transport::ReduceOp;

class TreeOfTensors final {
 public:
  TreeOfTensors(DType dtype, ReduceOp op) : dtype_(dtype), op_(op) {}

  [[nodiscard]] at::Tensor combined(const std::vector<at::Tensor>& terms,
                                    const uint8_t* merges) const {
    std::vector<at::Tensor> stack;
    for (size_t i = 0; i < terms.size(); ++i) {
      stack.push_back(widened(terms[i]));
      for (int merge = 0; merge < merges[i]; ++merge) {
        const at::Tensor right = stack.back();
        stack.pop_back();
        stack.back() = folded(stack.back(), right);
      }
    }
    return stack.front();
  }

  [[nodiscard]] at::Tensor divided(const at::Tensor& sum, int64_t divisor) const {
    if (op_ != ReduceOp::kAvg) {
      return sum;
    }
    // A tensor: by a scalar libtorch multiplies with the inverse on some devices.
    const at::Tensor by = at::full({}, divisor, sum.options());
    return sum.is_floating_point() ? at::div(sum, by) : at::div(sum, by, "trunc");
  }

 private:
  [[nodiscard]] at::Tensor widened(const at::Tensor& term) const {
    if (dtype_ == DType::kF16 || dtype_ == DType::kBf16) {
      return term.to(at::kFloat);
    }
    if (dtype_ == DType::kBool) {
      return term.ne(0).to(at::kByte);
    }
    return op_ == ReduceOp::kAvg && !term.is_floating_point() ? term.to(at::kLong) : term;
  }

  [[nodiscard]] at::Tensor folded(const at::Tensor& left, const at::Tensor& right) const {
    switch (dtype_ == DType::kBool ? of_bits() : op_) {
      case ReduceOp::kSum:
      case ReduceOp::kAvg:
        return at::add(left, right);
      case ReduceOp::kProduct:
        return at::mul(left, right);
      case ReduceOp::kMin:
        return at::where(left.ne(left).logical_or_(left.lt(right)), left, right);
      case ReduceOp::kMax:
        return at::where(left.ne(left).logical_or_(left.gt(right)), left, right);
      case ReduceOp::kBand:
        return at::bitwise_and(left, right);
      case ReduceOp::kBor:
        return at::bitwise_or(left, right);
      case ReduceOp::kBxor:
        return at::bitwise_xor(left, right);
    }
    return left;
  }
  /// What an operation means for bool.
  [[nodiscard]] ReduceOp of_bits() const {
    switch (op_) {
      case ReduceOp::kSum:
      case ReduceOp::kMax:
        return ReduceOp::kBor;
      case ReduceOp::kProduct:
      case ReduceOp::kMin:
        return ReduceOp::kBand;
      default:
        return op_;
    }
  }

  const DType dtype_;
  const ReduceOp op_;
};

}  // namespace

at::Tensor reduce_tensors(const std::vector<at::Tensor>& terms,
                          const uint8_t* merges,
                          int64_t divisor,
                          DType dtype,
                          ReduceOp op) {
  const at::NoGradGuard no_grad;
  const TreeOfTensors tree(dtype, op);
  return tree.divided(tree.combined(terms, merges), divisor);
}

}  // namespace argosy::comm
