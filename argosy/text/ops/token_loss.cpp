// R rows, one for each token; C values of a row; V classes.
#include "argosy/text/ops/token_loss.h"

#include <ATen/Functions.h>

#include "argosy/base/check.h"

namespace argosy::text::ops {
namespace {

void check_targets(const at::Tensor& targets, int64_t classes, int64_t ignore_index) {
  if (!targets.is_cpu()) {
    return;
  }
  const at::Tensor list = targets.contiguous();
  const auto* target = list.data_ptr<int64_t>();
  for (int64_t i = 0; i < list.numel(); ++i) {
    ARGOSY_CHECK(target[i] == ignore_index || (target[i] >= 0 && target[i] < classes),
                 "text.Gpt",
                 "target {} of row {} is outside the vocabulary of {} tokens (0 to {}). To leave "
                 "tokens out: {}",
                 target[i],
                 i,
                 classes,
                 classes - 1,
                 ignore_index);
  }
}

}  // namespace

at::Tensor token_loss(const at::Tensor& hidden,
                      const at::Tensor& weight,
                      const at::Tensor& targets,
                      int64_t ignore_index) {
  check_targets(targets, weight.size(0), ignore_index);
  const at::Tensor logits = at::linear(hidden, weight);
  return at::cross_entropy_loss(logits.to(at::promoteTypes(logits.scalar_type(), at::kFloat)),
                                targets,
                                {},
                                /*mean*/ 1,
                                ignore_index);
}

}  // namespace argosy::text::ops
