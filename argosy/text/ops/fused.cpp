#include "argosy/text/ops/fused.h"

#include <algorithm>
#include <cstddef>

#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>

#include "argosy/base/check.h"
#include "argosy/text/ops/activation_kernels.h"

namespace argosy::text::ops {
namespace {

/// Elements that are worth a thread.
constexpr int64_t kElementsOfAPart = 16384;

kernels::Kind kind_of(const at::Tensor& x) {
  return x.scalar_type() == at::kFloat ? kernels::Kind::kF32 : kernels::Kind::kBf16;
}

void* place_in(const at::Tensor& x, int64_t at) {
  return static_cast<std::byte*>(x.data_ptr()) + at * static_cast<int64_t>(x.element_size());
}

}  // namespace

bool can_fuse(const at::Tensor& x) {
  return x.defined() && x.device().is_cpu() && x.layout() == at::kStrided && x.is_contiguous() &&
         (x.scalar_type() == at::kFloat || x.scalar_type() == at::kBFloat16) && x.numel() > 0;
}

bool can_fuse_if_defined(const at::Tensor& x) {
  return !x.defined() || can_fuse(x);
}

kernels::Source source_of(const at::Tensor& x, int64_t at) {
  return x.defined() ? kernels::Source{place_in(x, at), kind_of(x)} : kernels::Source{};
}

kernels::Target target_of(const at::Tensor& x, int64_t at) {
  return x.defined() ? kernels::Target{place_in(x, at), kind_of(x)} : kernels::Target{};
}

c10::optional<at::Tensor> if_defined(const at::Tensor& x) {
  return x.defined() ? c10::optional<at::Tensor>(x) : c10::nullopt;
}

at::Tensor converted(const at::Tensor& x, at::ScalarType type) {
  if (x.scalar_type() == type) {
    return x;
  }
  at::Tensor y = at::empty(x.sizes(), x.options().dtype(type));
  for_rows(x.numel(), 1, [&](int64_t begin, int64_t end) {
    kernels::convert(source_of(x, begin), end - begin, target_of(y, begin));
  });
  return y;
}

void for_rows(int64_t rows, int64_t width, const std::function<void(int64_t, int64_t)>& body) {
  const int64_t grain = std::max<int64_t>(1, kElementsOfAPart / std::max<int64_t>(1, width));
  at::parallel_for(0, rows, grain, body);
}

void refuse_second_derivative(std::string_view operation) {
  ARGOSY_CHECK(
      !at::GradMode::is_enabled(),
      "text.ops",
      "{} has no second derivative: call backward without create_graph, or compute in f64, "
      "which libtorch's operators do",
      operation);
}

}  // namespace argosy::text::ops
