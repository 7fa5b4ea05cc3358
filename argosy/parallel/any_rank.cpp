#include "argosy/parallel/any_rank.h"

#include <utility>

#include <ATen/Functions.h>

#include "argosy/comm/collectives.h"

namespace argosy::parallel {

optim::GradScaler::Agreement any_rank(comm::Group group) {
  return [group = std::move(group)](bool found) {
    const at::Tensor number = at::full({}, found ? 1 : 0, at::kInt);
    comm::all_reduce(number, group, {.op = comm::ReduceOp::kMax});
    return number.item<int>() != 0;
  };
}

}  // namespace argosy::parallel
