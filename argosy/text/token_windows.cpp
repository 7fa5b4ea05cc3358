#include "argosy/text/token_windows.h"

#include <fmt/format.h>

#include <torch/types.h>

#include "argosy/base/check.h"

namespace argosy::text {
namespace {

constexpr const char* kWindows = "text.TokenWindows";

}  // namespace

TokenWindows::TokenWindows(TokenFile file, const TokenWindowsOptions& options)
    : file_(std::move(file)), options_(options) {
  ARGOSY_CHECK(options.sequence_length > 0,
               kWindows,
               "sequence_length must be positive, got {}",
               options.sequence_length);
  ARGOSY_CHECK(
      options.stride >= 0, kWindows, "stride must not be negative, got {}", options.stride);
  if (options_.stride == 0) {
    options_.stride = options_.sequence_length;
  }
  const int64_t all = file_.size();
  ARGOSY_CHECK(options.first >= 0 && options.first <= all && options.tokens.value_or(0) >= 0 &&
                   options.tokens.value_or(0) <= all - options.first,
               kWindows,
               "first = {}, tokens = {}: {} has {} tokens",
               options.first,
               options.tokens.value_or(all - options.first),
               file_.path(),
               all);
  const int64_t tokens = options.tokens.value_or(all - options.first);
  const int64_t rest = tokens - options_.sequence_length - 1;
  ARGOSY_CHECK(rest >= 0,
               kWindows,
               "{} has {} tokens{}, and a window takes {} (sequence_length and the last target). "
               "Set a shorter .sequence_length, or make the file of more text",
               file_.path(),
               tokens,
               tokens == all ? "" : fmt::format(" from {} on", options.first),
               options_.sequence_length + 1);
  size_ = rest / options_.stride + 1;
}

void TokenWindows::write(int64_t index, int64_t* inputs, int64_t* targets) const {
  ARGOSY_CHECK(index >= 0 && index < size_,
               kWindows,
               "index {} is outside the data set of {} windows",
               index,
               size_);
  const int64_t first = options_.first + index * options_.stride;
  const auto length = static_cast<size_t>(options_.sequence_length);
  file_.copy(first, {inputs, length});
  file_.copy(first + 1, {targets, length});
}

std::pair<at::Tensor, at::Tensor> TokenWindows::get(int64_t index) const {
  at::Tensor inputs = at::empty({options_.sequence_length}, at::kLong);
  at::Tensor targets = at::empty({options_.sequence_length}, at::kLong);
  write(index, inputs.data_ptr<int64_t>(), targets.data_ptr<int64_t>());
  return {std::move(inputs), std::move(targets)};
}

std::tuple<at::Tensor, at::Tensor> TokenWindows::get_batch(
    std::span<const int64_t> indices, const data::BatchContext& context) const {
  const int64_t length = options_.sequence_length;
  const auto windows = static_cast<int64_t>(indices.size());
  at::Tensor inputs = context.empty({windows, length}, at::kLong);
  at::Tensor targets = context.empty({windows, length}, at::kLong);
  for (int64_t row = 0; row < windows; ++row) {
    write(indices[static_cast<size_t>(row)],
          inputs.data_ptr<int64_t>() + row * length,
          targets.data_ptr<int64_t>() + row * length);
  }
  return {std::move(inputs), std::move(targets)};
}

}  // namespace argosy::text
