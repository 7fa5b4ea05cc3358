#include "argosy/parallel/ddp/finite_check.h"

#include <fmt/format.h>

#include <optional>

#include <ATen/Functions.h>

#include "argosy/base/error.h"
#include "argosy/base/log.h"
#include "argosy/optim/finite.h"
#include "argosy/optim/grad_scaler.h"
#include "argosy/parallel/ddp/elements.h"

namespace argosy::parallel::ddp {

void FiniteCheck::look(const std::string& name, const at::Tensor& gradient, const Whose& whose) {
  at::Tensor here = gradient;
  if (!gradient.is_cpu()) {  // nobody waits for a device only to be warned
    if (!stops() || at::isfinite(gradient).all().item<bool>()) {
      return;
    }
    here = gradient.cpu();
  }
  const std::optional<int64_t> first = optim::first_nonfinite(here);
  if (!first.has_value() || optim::loss_scale_of_thread().has_value()) {
    return;
  }
  const std::string who = whose.leaf == whose.rank
                              ? fmt::format("rank {}", whose.rank)
                              : fmt::format("virtual rank {} on rank {}", whose.leaf, whose.rank);
  const std::string what =
      fmt::format("{}the gradient of {} is {} on {}",
                  whose.update == 0 ? "" : fmt::format("update {}: ", whose.update),
                  element_name(name, here, *first),
                  element_value(here, *first),
                  who);
  if (wanted_ == NonfiniteGradient::kStop) {
    throw DataError("parallel.ddp", what + ". The weights are those before this update");
  }
  found_ = what;
}

void FiniteCheck::tell(bool told_elsewhere) {
  if (!found_.empty() && !told_elsewhere) {
    log::warn(
        "[parallel.ddp] {}. Averaging brings it into the weights of all ranks. This is said once; "
        "on_nonfinite = stop ends the job here",
        found_);
  }
  told_ = told_ || told_elsewhere || !found_.empty();
  found_.clear();
}

}  // namespace argosy::parallel::ddp
