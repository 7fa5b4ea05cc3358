#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "argosy/transport/reduce.h"
#include "argosy/transport/types.h"

// Elements of any type from whole numbers, and what a reduction of them must give, worked out in
// wide integers and not by the code under test.
namespace argosy::conformance {

constexpr transport::DType kAllTypes[] = {transport::DType::kF32,
                                          transport::DType::kF64,
                                          transport::DType::kF16,
                                          transport::DType::kBf16,
                                          transport::DType::kI8,
                                          transport::DType::kU8,
                                          transport::DType::kI32,
                                          transport::DType::kI64,
                                          transport::DType::kBool};

constexpr transport::ReduceOp kAllOps[] = {transport::ReduceOp::kSum,
                                           transport::ReduceOp::kAvg,
                                           transport::ReduceOp::kMin,
                                           transport::ReduceOp::kMax,
                                           transport::ReduceOp::kProduct,
                                           transport::ReduceOp::kBand,
                                           transport::ReduceOp::kBor,
                                           transport::ReduceOp::kBxor};

/// The bytes of `value` as an element of this type: a whole number, or for floats any.
[[nodiscard]] std::string encode(transport::DType dtype, double value);

/// Element i of rank r's input: small whole numbers of both signs where the type has them.
[[nodiscard]] int64_t input_value(transport::DType dtype, transport::ReduceOp op, int r, int64_t i);

/// The bytes of op over ranks 0 … n-1 of input_value(…, r, i).
[[nodiscard]] std::string expected(transport::DType dtype,
                                   transport::ReduceOp op,
                                   int n,
                                   int64_t i);

/// A buffer of elements that starts `skew` bytes after an aligned address, with a guard behind.
class Buffer final {
 public:
  Buffer(transport::DType dtype, int64_t count, size_t skew = 0)
      : size_(transport::size_of(dtype)), skew_(skew) {
    memory_.assign(skew + static_cast<size_t>(count) * size_ + kGuard, '\x5a');
  }
  [[nodiscard]] char* data() { return memory_.data() + skew_; }
  void set(int64_t i, const std::string& bytes) {
    std::memcpy(data() + static_cast<size_t>(i) * size_, bytes.data(), size_);
  }
  [[nodiscard]] std::string get(int64_t i) {
    return {data() + static_cast<size_t>(i) * size_, size_};
  }
  [[nodiscard]] bool guard_holds() const {
    for (size_t i = memory_.size() - kGuard; i < memory_.size(); ++i) {
      if (memory_[i] != '\x5a') {
        return false;
      }
    }
    return true;
  }

 private:
  static constexpr size_t kGuard = 64;
  size_t size_;
  size_t skew_;
  std::vector<char> memory_;
};

}  // namespace argosy::conformance
