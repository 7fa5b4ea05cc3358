#include "argosy/recommend/click_scores.h"

#include <algorithm>

#include <ATen/Functions.h>
#include <c10/core/GradMode.h>

namespace argosy::recommend {

void ClickScores::add(const at::Tensor& odds, const at::Tensor& clicked) {
  auc_.update(odds, clicked);
  // In f64: a sum of many lines.
  const at::Tensor wide = odds.to(at::kDouble);
  loss_sum_ += (at::softplus(wide) - wide * clicked.to(at::kDouble)).sum().item<double>();
  lines_ += odds.size(0);
}

int64_t for_each_odds(ClickModelImpl& model,
                      const ClickLog& log,
                      const std::function<void(const formats::ClickBatch& batch,
                                               const ClickInputs& inputs,
                                               const at::Tensor& odds)>& use) {
  const c10::AutoGradMode no_gradients(false);
  formats::CriteoReader reader(log.path);
  formats::ClickBatch batch;
  const auto most = [&] {
    return static_cast<size_t>(
        log.limit == 0 ? log.batch_size : std::min(log.batch_size, log.limit - reader.lines()));
  };
  for (; reader.read(most(), batch) > 0; batch.clear()) {
    const ClickInputs inputs = click_inputs(batch);
    use(batch, inputs, model.forward(inputs.ids));
  }
  return reader.lines();
}

ClickScores scores_on(ClickModelImpl& model, const ClickLog& log) {
  ClickScores scores;
  for_each_odds(
      model,
      log,
      [&](const formats::ClickBatch& /*batch*/, const ClickInputs& inputs, const at::Tensor& odds) {
        scores.add(odds, inputs.clicked);
      });
  return scores;
}

}  // namespace argosy::recommend
