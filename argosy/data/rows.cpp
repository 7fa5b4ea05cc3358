#include "argosy/data/rows.h"

#include <cstring>

#include <torch/types.h>

namespace argosy::data::detail {
namespace {

/// Whether elements lie at the same places: a dimension of one element has no say.
bool same_places(at::IntArrayRef sizes, at::IntArrayRef a, at::IntArrayRef b) {
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] != 1 && a[i] != b[i]) {
      return false;
    }
  }
  return true;
}

bool is_row_major(at::IntArrayRef sizes, at::IntArrayRef strides) {
  int64_t expected = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    if (sizes[i] != 1 && strides[i] != expected) {
      return false;
    }
    expected *= sizes[i];
  }
  return true;
}

/// [channels][pixels] → [pixels][channels].
template <int kChannels>
void interleave(const uint32_t* from, uint32_t* to, int64_t pixels) {
  for (int64_t i = 0; i < pixels; ++i) {
    for (int64_t c = 0; c < kChannels; ++c) {
      to[i * kChannels + c] = from[c * pixels + i];
    }
  }
}

}  // namespace

RowWriter::RowWriter(const at::Tensor& batch)
    : batch_(batch),
      memory_(static_cast<char*>(batch.data_ptr())),
      row_bytes_(batch.numel() == 0 ? 0 : batch.nbytes() / static_cast<size_t>(batch.size(0))),
      row_major_(batch.is_contiguous()) {}

RowWriter::Way RowWriter::way_for(const at::Tensor& source, at::IntArrayRef strides) const {
  // Lazily conjugated or negated tensors hold other bytes than they show.
  if (source.is_conj() || source.is_neg()) {
    return Way::kElements;
  }
  const at::IntArrayRef sizes = batch_.sizes().slice(1);
  if (same_places(sizes, strides, batch_.strides().slice(1))) {
    return Way::kBytes;
  }
  // RGB images of f32, [C, H, W] into channels_last: libtorch's copy runs loops of three elements.
  const bool interleaves = sizes.size() == 3 && sizes[0] == 3 && batch_.element_size() == 4 &&
                           batch_.is_contiguous(at::MemoryFormat::ChannelsLast) &&
                           is_row_major(sizes, strides);
  return interleaves ? Way::kInterleave : Way::kElements;
}

void RowWriter::copy(int64_t row, const void* from, Way way) const {
  void* to = memory_ + static_cast<size_t>(row) * row_bytes_;
  if (way == Way::kBytes) {
    std::memcpy(to, from, row_bytes_);
  } else {
    interleave<3>(static_cast<const uint32_t*>(from),
                  static_cast<uint32_t*>(to),
                  batch_.size(2) * batch_.size(3));
  }
}

void RowWriter::write(int64_t row, const at::Tensor& sample) const {
  if (row_bytes_ == 0) {
    return;
  }
  const bool simple = row_major_ && sample.is_contiguous() && !sample.is_conj() && !sample.is_neg();
  const Way way = simple ? Way::kBytes : way_for(sample, sample.strides());
  if (way == Way::kElements) {
    batch_.select(0, row).copy_(sample);
  } else {
    copy(row, sample.data_ptr(), way);
  }
}

template <typename To, typename From>
void RowWriter::write_rows(const at::Tensor& source, size_t rows, To to, From from) const {
  if (row_bytes_ == 0) {
    return;
  }
  const Way way = way_for(source, source.strides().slice(1));
  const auto pitch_bytes = source.stride(0) * static_cast<int64_t>(source.element_size());
  const auto* first = static_cast<const char*>(source.data_ptr());
  for (size_t i = 0; i < rows; ++i) {
    if (way == Way::kElements) {
      batch_.select(0, to(i)).copy_(source.select(0, from(i)));
    } else {
      copy(to(i), first + from(i) * pitch_bytes, way);
    }
  }
}

void RowWriter::gather(const at::Tensor& source, std::span<const int64_t> from) const {
  write_rows(
      source,
      from.size(),
      [](size_t i) { return static_cast<int64_t>(i); },
      [&](size_t i) { return from[i]; });
}

void RowWriter::scatter(const at::Tensor& source, std::span<const int64_t> to) const {
  write_rows(
      source,
      to.size(),
      [&](size_t i) { return to[i]; },
      [](size_t i) { return static_cast<int64_t>(i); });
}

}  // namespace argosy::data::detail
