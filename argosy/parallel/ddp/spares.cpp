#include "argosy/parallel/ddp/spares.h"

#include <utility>

#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include "argosy/base/even_part.h"
#include "argosy/optim/grad_scaler.h"

namespace argosy::parallel::ddp {
namespace {

constexpr double kUnscaled = 0;

int64_t leaves_of(const comm::LeafDeal& deal, int rank) {
  return even_part(deal.leaves(), deal.ranks(), rank).size();
}

}  // namespace

Spares::Spares(const comm::LeafDeal& deal, comm::Group group, std::chrono::milliseconds timeout)
    : group_(std::move(group)),
      timeout_(timeout),
      any_(deal.ranks() > deal.leaves()),
      is_one_(deal.nodes(group_.rank()).empty()),
      more_(leaves_of(deal, group_.rank()) > leaves_of(deal, group_.size() - 1)),
      fewer_(leaves_of(deal, group_.rank()) < leaves_of(deal, 0)) {}

/// Rank 0 has virtual rank 0, and no other more of them.
void Spares::tell(const PassNews& news) {
  const at::Tensor wire = at::tensor({static_cast<double>(news.what),
                                      static_cast<double>(news.model),
                                      static_cast<double>(news.epoch),
                                      static_cast<double>(news.update),
                                      static_cast<double>(news.unit),
                                      optim::loss_scale_of_thread().value_or(kUnscaled)},
                                     at::kDouble);
  told_.push_back(comm::broadcast_async(wire, group_, {.timeout = timeout_}));
  if (news.what == PassNews::What::kZeroed || news.what == PassNews::What::kKept) {
    const at::Tensor zero = at::full({1}, news.what == PassNews::What::kZeroed ? 1 : 0, at::kLong);
    told_.push_back(
        comm::all_reduce_async(zero, group_, {.op = comm::ReduceOp::kMin, .timeout = timeout_}));
  }
  if (news.what == PassNews::What::kEnd || news.what == PassNews::What::kEndOfExtra) {
    for (const comm::Work& each : std::exchange(told_, {})) {
      each.wait();
    }
  }
}

PassNews Spares::next() {
  const at::Tensor wire = at::zeros({6}, at::kDouble);
  comm::broadcast(wire, group_, {.timeout = comm::kWhileOthersCompute});
  const auto* const values = wire.data_ptr<double>();
  if (is_one_) {
    scale_ = optim::follow_loss_scale(values[5]);
  }
  if (values[5] == kUnscaled) {
    scale_.reset();  // and no other wrapper's is left
  }
  auto what = static_cast<PassNews::What>(values[0]);
  if (what == PassNews::What::kZeroed || what == PassNews::What::kKept) {  // what rank 0 found
    const at::Tensor zero = at::ones({1}, at::kLong);
    comm::all_reduce(zero, group_, {.op = comm::ReduceOp::kMin, .timeout = timeout_});
    what = zero.item<int64_t>() == 1 ? PassNews::What::kZeroed : PassNews::What::kKept;
  }
  return {.what = what,
          .model = static_cast<int64_t>(values[1]),
          .epoch = static_cast<int64_t>(values[2]),
          .update = static_cast<int64_t>(values[3]),
          .unit = static_cast<int64_t>(values[4])};
}

}  // namespace argosy::parallel::ddp
