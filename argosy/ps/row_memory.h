#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "argosy/base/result.h"
#include "argosy/os/growing_memory.h"

namespace argosy::ps {

/// Rows of one width by number, side by side. Not thread-safe, but that several threads may read.
class RowMemory final {
 public:
  /// `stride`: floats of a row.
  explicit RowMemory(size_t stride) : stride_(stride) {}

  [[nodiscard]] float* at(uint32_t row) const {
    return reinterpret_cast<float*>(memory_.bytes().data()) + row * stride_;
  }
  /// Brings the row into the cache: it lies in two lines of it or more.
  void prefetch(uint32_t row) const {
    constexpr size_t kLine = 16;  // floats
    for (size_t i = 0; i < stride_; i += kLine) {
      __builtin_prefetch(at(row) + i, 1);
    }
    __builtin_prefetch(at(row) + stride_ - 1, 1);
  }

  /// Returns a row that nobody has. What it holds is anything; others may lie elsewhere afterwards.
  /// Errors: errno of mmap; then all is as before.
  [[nodiscard]] Result<uint32_t> take();
  void give_back(uint32_t row) { free_.push_back(row); }

  /// Moves rows so that all lie in front of the free ones, whose memory goes back to the system.
  /// `for_each_row` calls its argument with the number of each row that somebody has, by reference,
  /// and finds that of its new place there.
  template <typename ForEachRow>
  void close_up(ForEachRow for_each_row) {
    const size_t kept = taken();
    std::erase_if(free_, [&](uint32_t row) { return row >= kept; });
    for_each_row([&](uint32_t& row) {
      if (row >= kept) {
        std::memcpy(at(free_.back()), at(row), row_bytes());
        row = free_.back();
        free_.pop_back();
      }
    });
    rows_ = kept;
    memory_.give_back(bytes());
  }

  /// Returns how many rows somebody has.
  [[nodiscard]] size_t taken() const { return rows_ - free_.size(); }
  /// True when more than an eighth is free.
  [[nodiscard]] bool is_loose() const { return 8 * free_.size() > rows_; }
  /// Returns what rows take of memory, with those that nobody has.
  [[nodiscard]] size_t bytes() const { return rows_ * row_bytes(); }
  [[nodiscard]] size_t stride() const { return stride_; }
  [[nodiscard]] size_t row_bytes() const { return stride_ * sizeof(float); }

 private:
  size_t stride_;
  os::GrowingMemory memory_{};
  std::vector<uint32_t> free_{};  ///< rows that were given back
  size_t rows_ = 0;               ///< with the free ones
};

}  // namespace argosy::ps
