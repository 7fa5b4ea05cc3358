#include "argosy/parallel/traffic/train_apart.h"

namespace argosy::parallel {
namespace {

template <typename Options>
optim::Optimizer local_sgd(const std::shared_ptr<ddp::Core>& model,
                           const optim::Optimizer& optimizer,
                           const Options& options) {
  return optim::Optimizer(std::make_shared<LocalSgd>(model, optimizer.impl(), options));
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
