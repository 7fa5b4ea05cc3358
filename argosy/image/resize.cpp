#include "argosy/image/resize.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "argosy/base/check.h"
#include "argosy/image/color_alpha.h"
#include "argosy/image/resize_byte_dot.h"
#include "argosy/image/resize_kernels.h"
#include "argosy/image/resize_plan.h"
#include "argosy/image/resize_weights.h"

namespace argosy::image {
namespace {

using detail::Taps;

BoxF all_of(const Image& image) {
  return {0, 0, static_cast<double>(image.height()), static_cast<double>(image.width())};
}

Image resize_u8(const Image& image, const BoxF& box, Size size, const ResizeOptions& options) {
  Resampler resampler(
      image.size(), box, size, image.channels(), {options.interpolation, options.antialias});
  Image result(size, image.order());
  resampler.start(image.row<uint8_t>(0), image.row_bytes());
  for (int y = 0; y < size.height; ++y) {
    resampler.next(result.row<uint8_t>(y));
  }
  return result;
}

/// Each row of an f32 image in a new width.
Image across_f32(const Image& image, const Taps<double>& taps) {
  Image result({image.height(), taps.size()}, image.order(), Type::kF32);
  for (int y = 0; y < image.height(); ++y) {
    detail::weigh_columns(image.row<float>(y), taps, image.channels(), result.row<float>(y));
  }
  return result;
}

Image down_f32(const Image& image, const Taps<double>& taps) {
  Image result({taps.size(), image.width()}, image.order(), Type::kF32);
  std::vector<const float*> rows;
  for (int y = 0; y < taps.size(); ++y) {
    rows.clear();
    for (int k = 0; k < taps.count[static_cast<size_t>(y)]; ++k) {
      rows.push_back(image.row<float>(taps.first[static_cast<size_t>(y)] + k));
    }
    detail::weigh_rows(rows.data(),
                       taps.of(y),
                       static_cast<int>(rows.size()),
                       int64_t{image.width()} * image.channels(),
                       result.row<float>(y));
  }
  return result;
}

Image resize_f32(const Image& image, const BoxF& box, Size size, const ResizeOptions& options) {
  const detail::Edges edges = detail::edges_of(box, image.size());
  detail::check_target(size);
  Taps<double> across, down;
  detail::make_taps({image.width(), edges.left, edges.right, size.width}, options, across);
  detail::make_taps({image.height(), edges.top, edges.bottom, size.height}, options, down);
  return detail::down_first(image.size(), size, options.antialias)
             ? across_f32(down_f32(image, down), across)
             : down_f32(across_f32(image, across), down);
}

/// Which of its old pixels new pixel i is a copy of, counted from the first; -1: of none.
int copied(const Taps<int32_t>& taps, int i) {
  const int32_t* weights = taps.of(i);
  int at = -1;
  for (int k = 0; k < taps.count[static_cast<size_t>(i)]; ++k) {
    if (weights[k] == 1 << detail::kFractionBits && at < 0) {
      at = k;
    } else if (weights[k] != 0) {
      return -1;
    }
  }
  return at;
}

/// New pixels are the old ones.
bool changes_nothing(const Taps<int32_t>& taps) {
  for (int i = 0; i < taps.size(); ++i) {
    const int at = copied(taps, i);
    if (at < 0 || taps.first[static_cast<size_t>(i)] + at != i) {
      return false;
    }
  }
  return true;
}

Resampler::Range range_of(const Taps<int32_t>& taps) {
  Resampler::Range range{taps.first.front(), 0};
  for (size_t i = 0; i < taps.first.size(); ++i) {
    range.begin = std::min(range.begin, taps.first[i]);
    range.end = std::max(range.end, taps.first[i] + taps.count[i]);
  }
  return range;
}

void check_part(const Box& part, Size target) {
  ARGOSY_CHECK(part.height > 0 && part.width > 0 && part.top >= 0 && part.left >= 0 &&
                   part.top <= target.height - part.height &&
                   part.left <= target.width - part.width,
               detail::kResize,
               "expected a part inside of the {} x {} target, got {} x {} at row {}, column {}",
               target.height,
               target.width,
               part.height,
               part.width,
               part.top,
               part.left);
}

/// Rows of bytes for the kernels, each at the start of a cache line.
struct Rows {
  std::vector<uint8_t> bytes{};
  int64_t stride = 0;

  void reserve(int64_t count, int64_t row_bytes) {
    constexpr int64_t kLine = 64;
    stride = (row_bytes + kLine - 1) / kLine * kLine;
    bytes.resize(static_cast<size_t>(count * stride));
  }
  [[nodiscard]] uint8_t* at(int64_t row) { return bytes.data() + row * stride; }
};

}  // namespace

std::string_view to_string(Interpolation interpolation) {
  switch (interpolation) {
    case Interpolation::kNearest:
      return "nearest";
    case Interpolation::kBilinear:
      return "bilinear";
    case Interpolation::kBicubic:
      return "bicubic";
    case Interpolation::kBox:
      return "box";
    case Interpolation::kHamming:
      return "hamming";
    case Interpolation::kLanczos:
      return "lanczos";
  }
  return "?";
}

Image resize(const Image& image, Size size, const ResizeOptions& options) {
  return resize(image, all_of(image), size, options);
}

Image shrunk(const Image& image, int most) {
  const double scale = static_cast<double>(most) / std::max(image.height(), image.width());
  const auto side = [&](int of) { return std::max(1, static_cast<int>(std::lround(of * scale))); };
  return scale >= 1 && !image.empty()
             ? image
             : resize(image, {.height = side(image.height()), .width = side(image.width())});
}

Image resize(const Image& image, const BoxF& source, Size size, const ResizeOptions& options) {
  detail::check_options(options.interpolation, options.antialias);
  if (image.type() == Type::kF32) {
    return resize_f32(image, source, size, options);
  }
  if (image.order() != Order::kRgba || options.interpolation == Interpolation::kNearest) {
    return resize_u8(image, source, size, options);
  }
  if (size == image.size() && source == all_of(image)) {
    return image;
  }
  Image result = resize_u8(detail::premultiply(image), source, size, options);
  detail::unpremultiply(result);
  return result;
}

/// Across first: rows that passed wait in a ring for the second pass, which reads some of them for
/// each of its rows. Down first: the rows of one reading of the columns' weights are made at once.
/// Either way what lies between the passes stays in the first-level cache.
struct Resampler::Impl {
  Taps<int32_t> across{}, down{};
  Taps<double> exact{};  // kept for its memory
  detail::ByteDotColumns byte_dot{};
  detail::ColumnScratch scratch{};
  bool byte_dot_across = false;
  bool narrow = true;  ///< the pass across changes something
  bool down_first = false;
  int channels = 0;
  int64_t row_bytes = 0;  ///< of a new row
  Range rows{}, columns{};

  Rows waiting{};                        ///< between the passes; across first: a ring
  int ring_mask = 0;                     ///< its rows - 1, which are a power of 2
  Rows ready{};                          ///< down first: new rows
  std::vector<const uint8_t*> inputs{};  ///< of a row of the pass down

  const uint8_t* pixels = nullptr;
  size_t source_row_bytes = 0;
  int made = 0;  ///< across first: source rows that passed; down first: new rows
  int next_y = 0;

  [[nodiscard]] const uint8_t* source(int row) const {
    return pixels + static_cast<size_t>(row) * source_row_bytes;
  }
  void go_across(const detail::SourceRows& from, int count, const detail::ResultRows& to);
  void go_down(int y, int64_t bytes, uint8_t* row) const;
  void next_across_first(uint8_t* row);
  void next_down_first(uint8_t* row);
};

void Resampler::Impl::go_across(const detail::SourceRows& from,
                                int count,
                                const detail::ResultRows& to) {
  if (byte_dot_across) {
    byte_dot.weigh(from, count, to);
  } else {
    detail::weigh_columns(from, count, columns.end, across, channels, to, scratch);
  }
}

/// From `inputs`, the source rows of new row y.
void Resampler::Impl::go_down(int y, int64_t bytes, uint8_t* row) const {
  const int count = down.count[static_cast<size_t>(y)];
  const int32_t* weights = down.of(y);
  if (const int at = copied(down, y); at >= 0) {
    std::memcpy(row, inputs[static_cast<size_t>(at)], static_cast<size_t>(bytes));
  } else if (detail::has_byte_dot()) {
    detail::weigh_rows_byte_dot(inputs.data(), weights, count, bytes, row);
  } else {
    detail::weigh_rows(inputs.data(), weights, count, bytes, row);
  }
}

void Resampler::Impl::next_across_first(uint8_t* row) {
  const int y = next_y++;
  const int first = down.first[static_cast<size_t>(y)];
  const int count = down.count[static_cast<size_t>(y)];
  while (narrow && made < first + count) {
    const int some = std::min(detail::kRowsAtOnce, rows.end - made);
    detail::SourceRows from{};
    detail::ResultRows to{};
    for (int r = 0; r < some; ++r, ++made) {
      from[static_cast<size_t>(r)] = source(made);
      to[static_cast<size_t>(r)] = waiting.at(made & ring_mask);
    }
    go_across(from, some, to);
  }
  for (int k = 0; k < count; ++k) {
    inputs[static_cast<size_t>(k)] =
        narrow ? waiting.at((first + k) & ring_mask) : source(first + k);
  }
  go_down(y, row_bytes, row);
}

void Resampler::Impl::next_down_first(uint8_t* row) {
  if (next_y == made) {
    const int some = std::min(detail::kRowsAtOnce, down.size() - made);
    const int64_t begin = int64_t{columns.begin} * channels;
    const int64_t bytes = int64_t{columns.end} * channels - begin;
    detail::SourceRows from{};
    detail::ResultRows to{};
    for (int r = 0; r < some; ++r, ++made) {
      for (int k = 0; k < down.count[static_cast<size_t>(made)]; ++k) {
        inputs[static_cast<size_t>(k)] = source(down.first[static_cast<size_t>(made)] + k) + begin;
      }
      go_down(made, bytes, waiting.at(r) + begin);
      from[static_cast<size_t>(r)] = waiting.at(r);
      to[static_cast<size_t>(r)] = ready.at(r);
    }
    go_across(from, some, to);
  }
  std::memcpy(row, ready.at(next_y++ % detail::kRowsAtOnce), static_cast<size_t>(row_bytes));
}

Resampler::Resampler() : impl_(std::make_unique<Impl>()) {}
Resampler::Resampler(
    Size source, const BoxF& box, Size target, int channels, const ResamplerOptions& options)
    : Resampler() {
  plan(source, box, target, channels, options);
}
Resampler::Resampler(Resampler&&) noexcept = default;
Resampler& Resampler::operator=(Resampler&&) noexcept = default;
Resampler::~Resampler() = default;

void Resampler::plan(
    Size source, const BoxF& box, Size target, int channels, const ResamplerOptions& options) {
  detail::check_options(options.interpolation, options.antialias);
  const detail::Edges edges = detail::edges_of(box, source);
  detail::check_target(target);
  ARGOSY_CHECK(channels >= 1 && channels <= 4,
               detail::kResize,
               "expected 1 to 4 channels, got {}",
               channels);
  if (impl_ == nullptr) {
    impl_ = std::make_unique<Impl>();
  }
  Impl& impl = *impl_;
  impl.pixels = nullptr;
  impl.channels = channels;
  const Box part = options.part.value_or(Box{0, 0, target.height, target.width});
  check_part(part, target);
  impl.row_bytes = int64_t{part.width} * channels;
  const auto make = [&](const detail::Stretch& stretch, Taps<int32_t>& taps) {
    detail::make_taps(stretch, {options.interpolation, options.antialias}, impl.exact);
    detail::to_fixed(impl.exact, taps);
  };
  make({source.height, edges.top, edges.bottom, target.height}, impl.down);
  make({source.width, edges.left, edges.right, target.width}, impl.across);
  detail::keep(part.top, part.top + part.height, impl.down);
  detail::keep(part.left, part.left + part.width, impl.across);
  if (options.flip == Flip::kHorizontal) {
    detail::reverse(impl.across);
  }
  impl.rows = range_of(impl.down);
  impl.columns = range_of(impl.across);
  impl.narrow = part.width != source.width || !changes_nothing(impl.across);
  impl.byte_dot_across = impl.narrow && impl.byte_dot.plan(impl.across, channels);
  impl.inputs.resize(static_cast<size_t>(impl.down.most));
  impl.down_first = impl.narrow && detail::down_first(source, target, options.antialias);
  if (impl.down_first) {
    impl.waiting.reserve(detail::kRowsAtOnce, int64_t{source.width} * channels);
    impl.ready.reserve(detail::kRowsAtOnce, impl.row_bytes);
  } else {
    int ring = 1;
    while (ring < impl.down.most + detail::kRowsAtOnce) {
      ring *= 2;
    }
    impl.ring_mask = ring - 1;
    impl.waiting.reserve(ring, impl.row_bytes);
  }
}

Resampler::Range Resampler::rows() const {
  return impl_->rows;
}

Resampler::Range Resampler::columns() const {
  return impl_->columns;
}

int Resampler::rows_needed(int y) const {
  const Impl& impl = *impl_;
  constexpr int kBlock = detail::kRowsAtOnce;
  if (impl.down_first) {
    const auto last =
        static_cast<size_t>(std::min(impl.down.size(), (y / kBlock + 1) * kBlock) - 1);
    return impl.down.first[last] + impl.down.count[last];
  }
  const auto at = static_cast<size_t>(y);
  const int needed = impl.down.first[at] + impl.down.count[at] - impl.rows.begin;
  const int blocks = (needed + kBlock - 1) / kBlock;
  return std::min(impl.rows.end, impl.rows.begin + blocks * kBlock);
}

void Resampler::start(const uint8_t* pixels, size_t row_bytes) {
  impl_->pixels = pixels;
  impl_->source_row_bytes = row_bytes;
  impl_->made = impl_->down_first ? 0 : impl_->rows.begin;
  impl_->next_y = 0;
}

void Resampler::next(uint8_t* row) {
  Impl& impl = *impl_;
  ARGOSY_CHECK(impl.pixels != nullptr, detail::kResize, "next() without start()");
  ARGOSY_CHECK(
      impl.next_y < impl.down.size(), detail::kResize, "all {} rows were made", impl.down.size());
  if (impl.down_first) {
    impl.next_down_first(row);
  } else {
    impl.next_across_first(row);
  }
}

}  // namespace argosy::image
