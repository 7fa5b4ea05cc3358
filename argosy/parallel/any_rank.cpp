#include "argosy/parallel/any_rank.h"

#include <utility>

#include <ATen/Functions.h>

#include "argosy/comm/collectives.h"

namespace argosy::parallel {

optim::GradScaler::Agreement any_rank(comm::Group group) {
  using Seen = optim::GradScaler::Seen;
  return [group = std::move(group)](const Seen& own) {
    const at::Tensor any = at::tensor({own.gradients ? 1 : 0, own.inf ? 1 : 0}, at::kInt);
    comm::all_reduce(any, group, {.op = comm::ReduceOp::kMax});
    return Seen{.gradients = any[0].item<int>() != 0, .inf = any[1].item<int>() != 0};
  };
}

}  // namespace argosy::parallel
