#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <ATen/core/Tensor.h>

namespace argosy::data::detail {

/// Writes samples into the rows of a batch, by memcpy if both have the same layout, else element by
/// element.
class RowWriter final {
 public:
  /// `batch`: [rows, …] on the CPU, each row dense (any order of its dimensions).
  explicit RowWriter(const at::Tensor& batch);

  /// `sample` has a row's shape and dtype.
  void write(int64_t row, const at::Tensor& sample) const;

  /// Copies row from[i] of `source` to row i. `source` is [n, …] with the same dtype and row shape.
  void gather(const at::Tensor& source, std::span<const int64_t> from) const;
  /// Copies row i of `source` to row to[i].
  void scatter(const at::Tensor& source, std::span<const int64_t> to) const;

 private:
  /// Returns how tensors of a row's shape with these strides are copied.
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
