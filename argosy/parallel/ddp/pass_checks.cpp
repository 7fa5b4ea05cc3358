#include "argosy/parallel/ddp/pass_checks.h"

#include <utility>

#include "argosy/base/log.h"

namespace argosy::parallel::ddp {

PassChecks::PassChecks(const ParameterTable& table,
                       const comm::Group& group,
                       const DdpOptions& options)
    : table_(table),
      group_(group),
      timeout_(options.timeout),
      finite_(options.on_nonfinite),
      samples_(SameSamples()) {
  if (options.check_drift && group.size() > 1) {
    drift_.emplace(table, group, options.timeout);
  }
}

void PassChecks::watch(const std::shared_ptr<optim::OptimizerImpl>& optimizer) {
  if (drift_.has_value()) {
    drift_->watch(optimizer);
  }
}

void PassChecks::restart() {
  counter_.restart();
  samples_.reset();  // ranks may have seen different numbers of passes
}

void PassChecks::begin(BucketReduction& reduction, const MicroBatch& micro_batch) {
  reduction.restart(counter_.next(table_));
  due_ = drift_.has_value();
  micro_batch_ = micro_batch;
}

void PassChecks::start(BucketReduction& reduction) {
  if (std::exchange(due_, false)) {
    compares_ = true;
    reduction.add(drift_->start(counter_.place(), micro_batch_, finite_.told()));
  }
}

void PassChecks::look(size_t parameter, const at::Tensor& gradient, const Whose& whose) {
  if (finite_.looks()) {
    finite_.look(table_.name(parameter), gradient, whose);
  }
}

void PassChecks::look(const at::Tensor& flat) {
  if (samples_.has_value()) {
    samples_->add(flat);
  }
}

void PassChecks::end_leaf() {
  if (samples_.has_value()) {
    samples_->end_leaf();
  }
}

void PassChecks::compare_samples(BucketReduction& reduction) {
  if (samples_.has_value()) {
    reduction.add(samples_->compare(group_, timeout_));
  }
}

void PassChecks::finish() {
  const bool compared = std::exchange(compares_, false);
  finite_.tell(compared && drift_->any());
  if (compared) {
    drift_->finish();
  }
  if (samples_.has_value() && samples_->all_same() && group_.rank() == 0) {
    log::warn(
        "[parallel.ddp] all ranks trained on the same samples: their gradients are the same before "
        "averaging. Is distributed_batch_sampler() missing?");
  }
  samples_.reset();
}

}  // namespace argosy::parallel::ddp
