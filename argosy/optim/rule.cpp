#include "argosy/optim/rule.h"

#include <cmath>

#include "argosy/base/check.h"

namespace argosy::optim {

MemoryRange MemoryRange::sub(std::size_t begin, std::size_t length) const {
  const std::size_t bytes = begin * item_bytes(precision);
  MemoryRange part = *this;
  part.count = length;
  part.param = static_cast<char*>(param) + bytes;
  part.grad = static_cast<const char*>(grad) + bytes;
  for (void*& state : part.states) {
    state = state != nullptr ? static_cast<char*>(state) + bytes : nullptr;
  }
  return part;
}

void Rule::check_decay(const WeightDecay& decay) const {
  ARGOSY_CHECK(std::isfinite(decay.coeff) && decay.coeff >= 0,
               fmt::format("optim.{}", name()),
               "weight_decay must be a number >= 0, got {}",
               decay.coeff);
}

void check_not_negative(std::string_view rule, std::string_view name, double value) {
  ARGOSY_CHECK(std::isfinite(value) && value >= 0,
               fmt::format("optim.{}", rule),
               "{} must be a number >= 0, got {}",
               name,
               value);
}

void check_betas(std::string_view rule, const std::array<double, 2>& betas) {
  for (std::size_t i = 0; i < betas.size(); ++i) {
    ARGOSY_CHECK(betas[i] >= 0 && betas[i] < 1,
                 fmt::format("optim.{}", rule),
                 "betas[{}] must be in [0, 1), got {}",
                 i,
                 betas[i]);
  }
}

kernels::GradientTerms gradient_terms(const Update& update, BareDecay meaning) {
  kernels::GradientTerms terms;
  terms.scale = update.grad_scale;
  if (update.grad_limit > 0) {
    terms.limit = update.grad_limit;
  }
  terms.coeff = update.decay.coeff;
  if (update.decay.coeff == 0) {
    terms.penalty = kernels::Penalty::kNone;
  } else if (update.decay.kind == WeightDecay::Kind::kL1) {
    terms.penalty = kernels::Penalty::kL1;
  } else if (update.decay.kind == WeightDecay::Kind::kL2 || meaning == BareDecay::kL2) {
    terms.penalty = kernels::Penalty::kL2;
  }
  return terms;
}

}  // namespace argosy::optim
