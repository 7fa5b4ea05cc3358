#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <ATen/core/Tensor.h>

namespace argosy::data::detail {

/// Writes samples into the rows of a batch: by memcpy where both lie alike in memory, else element
/// by element.
class RowWriter final {
 public:
  /// `batch`: [rows, …] on the CPU, each row dense (any order of its dimensions).
  explicit RowWriter(const at::Tensor& batch);

  /// `sample` has a row's shape and dtype.
  void write(int64_t row, const at::Tensor& sample) const;

  /// Row i becomes row from[i] of `source`: [n, …] of the same dtype and row shape.
  void gather(const at::Tensor& source, std::span<const int64_t> from) const;
  /// Row to[i] becomes row i of `source`.
  void scatter(const at::Tensor& source, std::span<const int64_t> to) const;

 private:
  /// How tensors of a row's shape with these strides are copied.
  enum class Way { kBytes, kInterleave, kElements };
  [[nodiscard]] Way way_for(const at::Tensor& source, at::IntArrayRef strides) const;
  void copy(int64_t row, const void* from, Way way) const;
  template <typename To, typename From>
  void write_rows(const at::Tensor& source, size_t rows, To to, From from) const;

  at::Tensor batch_;
  char* memory_;
  size_t row_bytes_ = 0;
  bool row_major_;
};

}  // namespace argosy::data::detail
