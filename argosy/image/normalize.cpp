#include "argosy/image/normalize.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "argosy/base/check.h"
#include "argosy/image/normalize_kernels.h"

namespace argosy::image {
namespace {

constexpr size_t kPixels = 256;  // that are taken apart at a time

/// Of `channels` channels side by side, from `first` on.
kernels::NormalizeRun run_of(const Normalization& wanted, size_t first, size_t channels) {
  kernels::NormalizeRun run{};
  run.divisor = wanted.divisor;
  run.divisor_inverse = 1.0F / wanted.divisor;
  for (size_t i = 0; i < kernels::kNormalizeRun; ++i) {
    const size_t c = first + i % channels;
    run.mean[i] = wanted.mean[c];
    run.std[i] = wanted.std[c];
    run.std_inverse[i] = 1.0F / wanted.std[c];
  }
  return run;
}

void check_divisor(const char* name, float value) {
  ARGOSY_CHECK(std::isfinite(value) && value != 0,
               "image.Normalizer",
               "expected {} to be a finite number other than 0, got {}",
               name,
               value);
}

std::array<float, 256> table_of(const Normalization& wanted, size_t channel) {
  std::array<float, 256> table{};
  for (size_t v = 0; v < table.size(); ++v) {
    const float scaled = static_cast<float>(v) / wanted.divisor;
    table[v] = (scaled - wanted.mean[channel]) / wanted.std[channel];
  }
  return table;
}

/// Does the arithmetic of the kernel give the table's bits?
bool equals(const std::array<float, 256>& table, const kernels::NormalizeRun& run) {
  std::array<uint8_t, 256> values{};
  std::iota(values.begin(), values.end(), uint8_t{0});
  std::array<float, 256> computed{};
  kernels::normalize(values.data(), values.size(), run, computed.data());
  using Bits = std::array<uint32_t, 256>;
  return std::bit_cast<Bits>(computed) == std::bit_cast<Bits>(table);
}

}  // namespace

struct Normalizer::Tables {
  size_t channels = 0;
  std::vector<std::array<float, 256>> values{};  // of each channel
  std::vector<kernels::NormalizeRun> planes{};   // each channel alone
  kernels::NormalizeRun side_by_side{};
  bool by_arithmetic = false;  // same bits as the table's, and faster
};

Normalizer::Normalizer(const Normalization& wanted) {
  ARGOSY_CHECK(wanted.channels >= 1 && wanted.channels <= 4,
               "image.Normalizer",
               "expected 1 to 4 channels, got {}",
               wanted.channels);
  check_divisor("divisor", wanted.divisor);
  Tables tables{.channels = static_cast<size_t>(wanted.channels),
                .by_arithmetic = kernels::can_normalize()};
  for (size_t c = 0; c < tables.channels; ++c) {
    check_divisor("std", wanted.std[c]);
    tables.values.push_back(table_of(wanted, c));
    tables.planes.push_back(run_of(wanted, c, 1));
    tables.by_arithmetic =
        tables.by_arithmetic && equals(tables.values.back(), tables.planes.back());
  }
  tables.side_by_side = run_of(wanted, 0, tables.channels);
  tables_ = std::make_shared<const Tables>(std::move(tables));
}

float Normalizer::operator()(int channel, uint8_t value) const {
  return tables_->values[static_cast<size_t>(channel)][value];
}

void Normalizer::row(const uint8_t* pixels, int width, const RowTarget& target) const {
  const Tables& tables = *tables_;
  const size_t channels = tables.channels;
  const auto count = static_cast<size_t>(width);
  if (tables.by_arithmetic && (channels == 1 || target.channel_stride == 1)) {
    kernels::normalize(pixels, count * channels, tables.side_by_side, target.first);
    return;
  }
  const size_t step = target.channel_stride == 1 ? channels : 1;  // from a pixel to the next
  if (!tables.by_arithmetic || channels != 3) {
    for (size_t c = 0; c < channels; ++c) {
      const std::array<float, 256>& table = tables.values[c];
      float* out = target.first + c * target.channel_stride;
      for (size_t x = 0; x < count; ++x) {
        out[x * step] = table[pixels[x * channels + c]];
      }
    }
    return;
  }
  std::array<uint8_t, 3 * kPixels> planes;  // NOLINT(*-member-init): written before it is read
  for (size_t x = 0; x < count; x += kPixels) {
    const size_t some = std::min(kPixels, count - x);
    kernels::split_channels(pixels + 3 * x, some, planes.data(), kPixels);
    for (size_t c = 0; c < 3; ++c) {
      float* out = target.first + c * target.channel_stride + x;
      kernels::normalize(planes.data() + c * kPixels, some, tables.planes[c], out);
    }
  }
}

}  // namespace argosy::image
