#include "argosy/loss/checks.h"

#include <ATen/core/Reduction.h>
#include <c10/util/Exception.h>

#include "argosy/base/check.h"
#include "argosy/base/text.h"

namespace argosy::loss {

int64_t torch_reduction(Reduction reduction) {
  switch (reduction) {
    case Reduction::kMean:
      return at::Reduction::Mean;
    case Reduction::kSum:
      return at::Reduction::Sum;
    case Reduction::kNone:
      break;
  }
  return at::Reduction::None;
}

void check_same_shape(const char* where, const at::Tensor& output, const at::Tensor& target) {
  ARGOSY_CHECK(output.defined() && target.defined() && output.sizes() == target.sizes(),
               where,
               "expected output and target of one shape, got {} and {}. A target [N] for an output "
               "[N, 1]: target.unsqueeze(1)",
               text::shape(output),
               text::shape(target));
  ARGOSY_CHECK(output.is_floating_point() && target.is_floating_point(),
               where,
               "expected floating-point output and target, got {} and {}. "
               "target.to(output.scalar_type())",
               c10::toString(output.scalar_type()),
               c10::toString(target.scalar_type()));
}

at::Tensor guarded(const char* where,
                   const std::function<at::Tensor()>& loss,
                   const std::function<std::optional<std::string>()>& explain) {
  try {
    return loss();
  } catch (const c10::Error& error) {
    const std::string said = error.what_without_backtrace();
    throw UsageError(where, explain().value_or(said.substr(0, said.find('\n'))));
  }
}

at::Tensor guarded(const char* where, const std::function<at::Tensor()>& loss) {
  return guarded(where, loss, [] { return std::optional<std::string>(); });
}

}  // namespace argosy::loss
