#include "argosy/parallel/ddp/spares.h"

#include <utility>

#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include "argosy/optim/grad_scaler.h"

namespace argosy::parallel::ddp {
namespace {

constexpr double kUnscaled = 0;

}  // namespace

Spares::Spares(const comm::LeafDeal& deal, comm::Group group, std::chrono::milliseconds timeout)
    : group_(std::move(group)),
      timeout_(timeout),
      any_(deal.ranks() > deal.leaves()),
      is_one_(deal.nodes(group_.rank()).empty()) {}

/// Rank 0 has virtual rank 0.
void Spares::tell(const PassNews& news) const {
  const at::Tensor wire = at::tensor({static_cast<double>(news.what),
                                      static_cast<double>(news.model),
                                      optim::loss_scale_of_thread().value_or(kUnscaled)},
                                     at::kDouble);
  comm::broadcast(wire, group_, {.timeout = timeout_});
}

PassNews Spares::next() {
  const at::Tensor wire = at::zeros({3}, at::kDouble);
  comm::broadcast(wire, group_, {.timeout = timeout_});
  const auto* const values = wire.data_ptr<double>();
  scale_ = values[2] == kUnscaled ? nullptr : optim::scale_of_thread_is(values[2]);
  return {.what = static_cast<PassNews::What>(values[0]), .model = static_cast<int64_t>(values[1])};
}

}  // namespace argosy::parallel::ddp
