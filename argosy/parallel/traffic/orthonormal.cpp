#include "argosy/parallel/traffic/orthonormal.h"

#include <cmath>

namespace argosy::parallel::traffic {
namespace {

template <typename T>
double dot(const T* a, const T* b, int64_t length) {
  double sum = 0;
  for (int64_t i = 0; i < length; ++i) {
    sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  }
  return sum;
}

template <typename T>
std::vector<int64_t> orthonormalize(T* matrix, int64_t rows, int64_t length) {
  // What is left of a row in the span of others is rounding, some 2^-23 of it in f32.
  constexpr double kRounding = sizeof(T) == 4 ? 1e-5 : 1e-13;
  std::vector<int64_t> empty;
  for (int64_t r = 0; r < rows; ++r) {
    T* const row = matrix + r * length;
    const double before = std::sqrt(dot(row, row, length));
    for (int round = 0; round < 2; ++round) {
      for (int64_t other = 0; other < r; ++other) {
        const T* const base = matrix + other * length;
        const double share = dot(row, base, length);
        for (int64_t i = 0; i < length; ++i) {
          row[i] = static_cast<T>(row[i] - share * base[i]);
        }
      }
    }
    const double left = std::sqrt(dot(row, row, length));
    const bool is_empty = !(left > kRounding * before);
    if (is_empty && !std::isnan(left)) {
      empty.push_back(r);
    }
    for (int64_t i = 0; i < length; ++i) {
      row[i] = is_empty && !std::isnan(left) ? T(0) : static_cast<T>(row[i] / left);
    }
  }
  return empty;
}

uint64_t mixed(uint64_t x) {  // SplitMix64
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31U);
}

template <typename T>
void randomize(T* values, int64_t count, uint64_t seed) {
  for (int64_t i = 0; i < count; ++i) {
    const uint64_t bits = mixed(seed ^ mixed(static_cast<uint64_t>(i)));
    values[i] = static_cast<T>(static_cast<double>(bits >> 11U) * 0x1p-52 - 1);
  }
}

}  // namespace

std::vector<int64_t> orthonormalize_rows(const at::Tensor& matrix) {
  const at::Tensor here = matrix.cpu().contiguous();
  auto empty = here.scalar_type() == at::kDouble
                   ? orthonormalize(here.data_ptr<double>(), here.size(0), here.size(1))
                   : orthonormalize(here.data_ptr<float>(), here.size(0), here.size(1));
  if (!here.is_same(matrix)) {
    matrix.copy_(here);
  }
  return empty;
}

void fill_random(const at::Tensor& tensor, uint64_t seed) {
  const at::Tensor here = tensor.cpu().contiguous();
  if (here.scalar_type() == at::kDouble) {
    randomize(here.data_ptr<double>(), here.numel(), mixed(seed));
  } else {
    randomize(here.data_ptr<float>(), here.numel(), mixed(seed));
  }
  if (!here.is_same(tensor)) {
    tensor.copy_(here);
  }
}

}  // namespace argosy::parallel::traffic
