#include "argosy/fleet/save_traffic.h"

#include "argosy/base/check.h"
#include "argosy/parallel/traffic/compress.h"
#include "argosy/parallel/traffic/train_apart.h"

namespace argosy::fleet::detail {

optim::Optimizer save_traffic(const optim::Optimizer& optimizer,
                              const DistributedStrategy& strategy,
                              const std::vector<std::shared_ptr<parallel::ddp::Core>>& models) {
  ARGOSY_CHECK(
      models.size() == 1,
      "fleet.distributed_optimizer",
      "{}: the optimizer's parameters belong to {} distributed models. Give each model one "
      "of its own.",
      strategy.saves_traffic_by(),
      models.size());
  const std::shared_ptr<parallel::ddp::Core>& model = models.front();
  return strategy.localsgd ? parallel::train_apart(model, optimizer, strategy.localsgd_configs)
         : strategy.adaptive_localsgd
             ? parallel::train_apart(model, optimizer, strategy.adaptive_localsgd_configs)
         : strategy.diloco ? parallel::train_apart(model, optimizer, strategy.diloco_configs)
         : strategy.dgc    ? parallel::compress(model, optimizer, strategy.dgc_configs)
                           : parallel::compress(model, optimizer, strategy.power_sgd_configs);
}

}  // namespace argosy::fleet::detail
