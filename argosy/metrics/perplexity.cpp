// R rows, one for each token; V classes.
#include "argosy/metrics/perplexity.h"

#include <algorithm>
#include <cmath>

#include <ATen/Functions.h>
#include <c10/core/GradMode.h>

#include "argosy/base/check.h"
#include "argosy/base/text.h"

namespace argosy::metrics {
namespace {

constexpr const char* kPerplexity = "metrics.Perplexity";

/// Logits that are in memory in f64 at a time.
constexpr int64_t kLogitsAtOnce = int64_t{1} << 20;

/// Adds the loss of each row whose target counts.
void add_rows(const at::Tensor& logits_rv,
              const at::Tensor& targets_r,
              int64_t ignore_index,
              MeanLoss& loss) {
  const int64_t classes = logits_rv.size(1);
  const at::Tensor log_probabilities_rv = at::log_softmax(logits_rv.to(at::kDouble), 1);
  const auto* values = log_probabilities_rv.data_ptr<double>();
  const auto* targets = targets_r.data_ptr<int64_t>();
  for (int64_t row = 0; row < targets_r.numel(); ++row) {
    if (targets[row] == ignore_index) {
      continue;
    }
    ARGOSY_CHECK(targets[row] >= 0 && targets[row] < classes,
                 kPerplexity,
                 "target {} of row {} is outside the vocabulary of {} tokens (0 to {}). To leave "
                 "tokens out: {}",
                 targets[row],
                 row,
                 classes,
                 classes - 1,
                 ignore_index);
    loss.update(-values[row * classes + targets[row]]);
  }
}

}  // namespace

void Perplexity::update(const at::Tensor& output, const at::Tensor& targets) {
  const c10::NoGradGuard no_grad;
  const bool floating = output.defined() && at::isFloatingType(output.scalar_type());
  const bool is_loss = floating && output.dim() == 0;
  ARGOSY_CHECK(
      targets.defined() && targets.scalar_type() == at::kLong &&
          (is_loss || (floating && output.dim() == targets.dim() + 1 &&
                       output.sizes().slice(0, output.dim() - 1) == targets.sizes())),
      kPerplexity,
      "expected logits [..., V] for targets [...] of Long, or their mean loss as one number, got "
      "{} and {}",
      text::shape_and_type(output),
      text::shape_and_type(targets));
  const at::Tensor list = targets.cpu().flatten().contiguous();
  if (is_loss) {
    loss_.update(output, list.ne(options_.ignore_index).sum().item<int64_t>());
    return;
  }
  const int64_t classes = output.size(-1);
  const at::Tensor logits_rv = output.detach().reshape({-1, classes});
  const int64_t most = std::max<int64_t>(kLogitsAtOnce / std::max<int64_t>(classes, 1), 1);
  MeanLoss more = loss_;  // all of the batch or nothing
  for (int64_t begin = 0; begin < list.numel(); begin += most) {
    const int64_t rows = std::min(most, list.numel() - begin);
    add_rows(logits_rv.narrow(0, begin, rows).cpu(),
             list.narrow(0, begin, rows),
             options_.ignore_index,
             more);
  }
  loss_ = more;
}

double Perplexity::compute(const comm::Group& group) const {
  return std::exp(loss_.compute(group));
}

State Perplexity::state() const {
  State state = loss_.state();
  state.insert(state.begin(), options_.ignore_index);
  return state;
}

MeanLoss Perplexity::loss_of(const State& state) const {
  StateReader reader(kPerplexity, state);
  reader.expect(options_.ignore_index, "ignore_index");
  MeanLoss loss;
  loss.load_state({state.begin() + 1, state.end()});
  return loss;
}

void Perplexity::load_state(const State& state) {
  loss_ = loss_of(state);
}

void Perplexity::merge_state(const State& other) {
  loss_.merge_state(loss_of(other).state());
}

}  // namespace argosy::metrics
