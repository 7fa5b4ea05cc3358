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
void Spares::tell(const PassNews& news) {
  const at::Tensor wire = at::tensor({static_cast<double>(news.what),
                                      static_cast<double>(news.model),
                                      static_cast<double>(news.epoch),
                                      static_cast<double>(news.update),
                                      optim::loss_scale_of_thread().value_or(kUnscaled)},
                                     at::kDouble);
  told_.push_back(comm::broadcast_async(wire, group_, {.timeout = timeout_}));
  if (news.what == PassNews::What::kEnd) {
    for (const comm::Work& each : std::exchange(told_, {})) {
      each.wait();
    }
  }
}

PassNews Spares::next() {
  const at::Tensor wire = at::zeros({5}, at::kDouble);
  comm::broadcast(wire, group_, {.timeout = comm::kWhileOthersCompute});
  const auto* const values = wire.data_ptr<double>();
  scale_ = optim::follow_loss_scale(values[4]);
  if (values[4] == kUnscaled) {
    scale_.reset();  // and no other wrapper's is left
  }
  return {.what = static_cast<PassNews::What>(values[0]),
          .model = static_cast<int64_t>(values[1]),
          .epoch = static_cast<int64_t>(values[2]),
          .update = static_cast<int64_t>(values[3])};
}

}  // namespace argosy::parallel::ddp
