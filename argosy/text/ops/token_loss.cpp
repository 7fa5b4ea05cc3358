// R rows, one for each token; C values of a row; V classes.
#include "argosy/text/ops/token_loss.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <torch/csrc/autograd/custom_function.h>

#include "argosy/base/check.h"
#include "argosy/engine/autocast.h"
#include "argosy/engine/coming_memory.h"
#include "argosy/text/ops/activation_kernels.h"
#include "argosy/text/ops/fused.h"
#include "argosy/text/ops/token_loss_kernels.h"

namespace argosy::text::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Logits that are in memory at a time; a block of them has no fewer rows than kLeastRows, so that
/// the products are worth their calls.
constexpr int64_t kLogits = int64_t{1} << 20;
constexpr int64_t kLeastRows = 512;

/// Returns the number of targets that count.
int64_t checked_count(const at::Tensor& targets, int64_t classes, int64_t ignore_index) {
  const auto* target = targets.data_ptr<int64_t>();
  int64_t count = 0;
  for (int64_t i = 0; i < targets.numel(); ++i) {
    ARGOSY_CHECK(target[i] == ignore_index || (target[i] >= 0 && target[i] < classes),
                 "text.Gpt",
                 "target {} of row {} is outside the vocabulary of {} tokens (0 to {}). To leave "
                 "tokens out: {}",
                 target[i],
                 i,
                 classes,
                 classes - 1,
                 ignore_index);
    count += target[i] == ignore_index ? 0 : 1;
  }
  return count;
}

struct LossOptions {
  at::ScalarType type = at::kFloat;  ///< of the products
  int64_t ignore_index = -100;
  int64_t count = 0;
  bool of_hidden = true;  ///< gradients that are wanted
  bool of_weight = true;
};

/// The product of a head and the loss of its logits, block by block. The gradients are computed
/// along with it, so that no logits are kept; backward only multiplies them.
struct TokenLoss : torch::autograd::Function<TokenLoss> {
  static at::Tensor forward(AutogradContext* context,
                            const at::Tensor& hidden,
                            const at::Tensor& weight,
                            const at::Tensor& targets,
                            const LossOptions& options) {
    const engine::Autocast off({.enabled = false});
    const engine::DirectUse use({weight});
    const int64_t rows = hidden.size(0), classes = weight.size(0);
    const at::Tensor factors = converted(weight, options.type);
    const at::Tensor of_hidden = options.of_hidden ? at::empty_like(hidden) : at::Tensor();
    at::Tensor of_weight =  // blocks are added in f32
        options.of_weight ? at::empty_like(weight, at::kFloat) : at::Tensor();
    std::vector<double> losses(static_cast<std::size_t>(rows));
    const int64_t most = rows_of_logits(rows, classes);
    const at::Tensor all = at::empty({most, classes}, factors.options());
    for (int64_t begin = 0; begin < rows; begin += most) {
      const int64_t count = std::min(most, rows - begin);
      const at::Tensor x = converted(hidden.narrow(0, begin, count), options.type);
      at::Tensor logits = all.narrow(0, 0, count);
      at::mm_out(logits, x, factors.t());
      take_losses(logits, targets.data_ptr<int64_t>() + begin, options, losses.data() + begin);
      if (options.of_hidden) {
        of_hidden.narrow(0, begin, count).copy_(at::mm(logits, factors));
      }
      if (options.of_weight) {
        add_product(of_weight, logits, x, begin == 0);
      }
    }
    if (of_weight.defined()) {
      of_weight = converted(of_weight, weight.scalar_type());
    }
    context->save_for_backward({of_hidden, of_weight});
    const double sum = std::accumulate(losses.begin(), losses.end(), 0.0);
    return at::scalar_tensor(sum / static_cast<double>(options.count), at::kFloat);
  }

  static void take_losses(const at::Tensor& logits,
                          const int64_t* targets,
                          const LossOptions& options,
                          double* losses) {
    const int64_t classes = logits.size(1);
    for_rows(logits.size(0), classes, [&](int64_t begin, int64_t end) {
      kernels::token_losses(target_of(logits, begin * classes),
                            targets + begin,
                            {.rows = end - begin,
                             .classes = classes,
                             .ignore_index = options.ignore_index,
                             .share = 1 / static_cast<float>(options.count),
                             .gradient = options.of_hidden || options.of_weight},
                            losses + begin);
    });
  }

  /// Adds logitsᵀ x to the weight's gradient, which is f32; the first block overwrites it.
  static void add_product(at::Tensor of_weight,
                          const at::Tensor& logits,
                          const at::Tensor& x,
                          bool first) {
    if (logits.scalar_type() == at::kFloat) {
      if (first) {
        at::mm_out(of_weight, logits.t(), x);
      } else {
        of_weight.addmm_(logits.t(), x);
      }
      return;
    }
    const at::Tensor product = at::mm(logits.t(), x);
    for_rows(of_weight.numel(), 1, [&](int64_t begin, int64_t end) {
      if (first) {
        kernels::convert(source_of(product, begin), end - begin, target_of(of_weight, begin));
      } else {
        kernels::add(source_of(of_weight, begin),
                     source_of(product, begin),
                     end - begin,
                     target_of(of_weight, begin).data);
      }
    });
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    refuse_second_derivative("token_loss");
    const variable_list saved = context->get_saved_variables();
    const at::Tensor& factor = gradients[0];
    const bool is_one = factor.item<float>() == 1;  // almost always
    const auto times = [&](const at::Tensor& x) {
      return !x.defined() || is_one ? x : (x.to(at::kFloat) * factor).to(x.scalar_type());
    };
    return {times(saved[0]), times(saved[1]), {}, {}};
  }
};

}  // namespace

at::Tensor token_loss(const at::Tensor& hidden,
                      const at::Tensor& weight,
                      const at::Tensor& targets,
                      int64_t ignore_index) {
  LossOptions options{.ignore_index = ignore_index};
  const at::Tensor list = targets.contiguous();
  if (list.is_cpu()) {
    options.count = checked_count(list, weight.size(0), ignore_index);
  }
  const bool mixed = engine::is_autocast_enabled() && engine::autocast_dtype() == at::kBFloat16;
  options.type = mixed ? at::kBFloat16 : weight.scalar_type();
  const bool known =
      hidden.scalar_type() == weight.scalar_type() || (mixed && weight.scalar_type() == at::kFloat);
  if (list.is_cpu() && can_fuse(hidden) && can_fuse(weight) && known) {
    options.of_hidden = at::GradMode::is_enabled() && hidden.requires_grad();
    options.of_weight = at::GradMode::is_enabled() && weight.requires_grad();
    return TokenLoss::apply(hidden, weight, list, options);
  }
  const at::Tensor logits = at::linear(hidden, weight);
  return at::cross_entropy_loss(logits.to(at::promoteTypes(logits.scalar_type(), at::kFloat)),
                                list,
                                {},
                                at::Reduction::Mean,
                                ignore_index);
}

int64_t rows_of_logits(int64_t rows, int64_t classes) {
  return std::min(rows, std::max(kLeastRows, kLogits / classes));
}

}  // namespace argosy::text::ops
