#pragma once

#include <memory>
#include <utility>

#include <ATen/core/Tensor.h>

#include "argosy/text/models/gpt.h"

namespace argosy::text {

/// A Gpt as trainers and wrappers call it: forward(tokens, targets) returns its loss, see
/// GptImpl::loss(). Parameters keep the Gpt's names.
///
///     text::Gpt gpt(options);
///     train::Model model{text::GptLoss(gpt)};
///     model.prepare(optim::AdamW(gpt, {.lr = 1e-3}), loss::FromNetwork(), {metrics::Perplexity()});
///     model.fit(windows, {.batch_size = 8});
///
/// In a loop of your own: `auto model = fleet::distributed_model(text::GptLoss(gpt));`, then
/// `model(tokens, targets).backward();`.
class GptLoss final {
 public:
  /// The trainer then gives the labels of a batch to forward, too.
  static constexpr bool kTakesLabels = true;

  explicit GptLoss(Gpt gpt) : gpt_(std::move(gpt)) {}

  at::Tensor forward(const at::Tensor& tokens, const at::Tensor& targets) {
    return gpt_->loss(tokens, targets);
  }
  GptLoss* operator->() { return this; }

  [[nodiscard]] const Gpt& gpt() const { return gpt_; }
  [[nodiscard]] std::shared_ptr<GptImpl> ptr() const { return gpt_.ptr(); }
  [[nodiscard]] bool is_empty() const { return gpt_.is_empty(); }

 private:
  Gpt gpt_;
};

}  // namespace argosy::text
