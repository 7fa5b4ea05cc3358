#include "argosy/parallel/traffic/train_apart.h"

#include "argosy/base/check.h"

namespace argosy::parallel {
namespace {

template <typename Options>
optim::Optimizer local_sgd(const std::shared_ptr<ddp::Core>& model,
                           const optim::Optimizer& optimizer,
                           const Options& options) {
  auto made = std::make_shared<LocalSgd>(model, optimizer.impl(), options);
  model->check_can_be_apart();
  return model->group().size() == 1 ? optimizer : optim::Optimizer(std::move(made));
}

}  // namespace

optim::Optimizer train_apart(const std::shared_ptr<ddp::Core>& model,
                             const optim::Optimizer& optimizer,
                             const LocalSgdOptions& options) {
  return local_sgd(model, optimizer, options);
}

optim::Optimizer train_apart(const std::shared_ptr<ddp::Core>& model,
                             const optim::Optimizer& optimizer,
                             const AdaptiveLocalSgdOptions& options) {
  return local_sgd(model, optimizer, options);
}

optim::Optimizer train_apart(const std::shared_ptr<ddp::Core>& model,
                             const optim::Optimizer& optimizer,
                             const DilocoOptions& options) {
  return optim::Optimizer(std::make_shared<Diloco>(model, optimizer.impl(), options));
}

}  // namespace argosy::parallel
