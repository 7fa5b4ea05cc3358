#include "argosy/recommend/click_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include <ATen/Functions.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/linear.h>

#include "argosy/base/check.h"
#include "argosy/recommend/click_ids.h"

namespace argosy::recommend {
namespace {

const ClickModelOptions& checked(const ClickModelOptions& options) {
  ARGOSY_CHECK(options.dim > 0, "recommend.model", "dim: expected 1 or more, got {}", options.dim);
  ARGOSY_CHECK(std::ranges::all_of(options.hidden, [](int64_t width) { return width > 0; }),
               "recommend.model",
               "hidden: expected widths from 1 on, got {}",
               fmt::join(options.hidden, ", "));
  return options;
}

torch::nn::Sequential deep_of(const ClickModelOptions& options) {
  torch::nn::Sequential deep;
  int64_t width = kClickColumns * options.dim;
  for (const int64_t next : options.hidden) {
    deep->push_back(torch::nn::Linear(width, next));
    deep->push_back(torch::nn::ReLU());
    width = next;
  }
  deep->push_back(torch::nn::Linear(width, 1));
  return deep;
}

}  // namespace

ClickModelImpl::ClickModelImpl(const ClickModelOptions& options)
    : options_(checked(options)),
      columns_(
          register_module("columns",
                          ps::Embedding(ps::EmbeddingOptions{.dim = 1 + options.dim,
                                                             .rule = options.rule,
                                                             .lr = options.row_lr,
                                                             .initial_range = options.initial_range,
                                                             .seed = options.seed,
                                                             .entry = options.entry}))),
      deep_(register_module("deep", deep_of(options))) {}

at::Tensor ClickModelImpl::forward(const at::Tensor& ids) {
  const at::Tensor rows = columns_->forward(ids);
  at::Tensor odds = rows.select(2, 0).sum(1);
  const at::Tensor factors = rows.narrow(2, 1, options_.dim);
  if (options_.network == ClickNetwork::kDeepFm) {  // the sum over all pairs of columns
    odds = odds + 0.5 * (factors.sum(1).square() - factors.square().sum(1)).sum(1);
  }
  return odds + deep_->forward(factors.flatten(1)).squeeze(1);
}

}  // namespace argosy::recommend
