#include "argosy/parallel/ddp/divisions.h"

#include <fmt/format.h>

#include <cstddef>
#include <optional>
#include <utility>

#include "argosy/base/log.h"
#include "argosy/comm/collectives.h"
#include "argosy/parallel/ddp/verify.h"

namespace argosy::parallel::ddp {

Divisions::Divisions(std::shared_ptr<SharedPart> values,
                     const comm::Group& group,
                     std::chrono::milliseconds timeout)
    : values_(std::move(values)), group_(group), timeout_(timeout) {}

Divisions::~Divisions() {
  for (const Divided& each : divided_) {
    if (const std::shared_ptr<DividedStep> step = each.step.lock(); step && each.share_parameters) {
      step->leave();
    }
    if (const std::shared_ptr<ShardedBuckets> sharded = each.sharded.lock()) {
      sharded->leave();
    }
  }
}

void Divisions::end(const optim::OptimizerImpl& optimizer) {
  const auto ends = [&](const Divided& each) {
    const std::shared_ptr<optim::OptimizerImpl> known = each.optimizer.lock();
    return known == nullptr || optim::have_parameters_in_common(*known, optimizer);
  };
  for (const Divided& each : divided_) {
    const std::shared_ptr<optim::OptimizerImpl> known = each.optimizer.lock();
    if (known == nullptr || !ends(each)) {
      continue;
    }
    known->divide(nullptr);
    if (const std::shared_ptr<ShardedBuckets> sharded = each.sharded.lock()) {
      sharded->leave();
    }
    if (known.get() != &optimizer) {
      log::info(
          "[parallel.ddp] a parameter's update is divided by one optimizer at a time: the steps "
          "of the one before are divided no longer");
    }
  }
  std::erase_if(divided_, ends);
}

void Divisions::end_all() {
  for (const Divided& each : divided_) {
    if (const std::shared_ptr<optim::OptimizerImpl> optimizer = each.optimizer.lock()) {
      optimizer->divide(nullptr);
    }
  }
  divided_.clear();
}

void Divisions::agree(const optim::OptimizerImpl& optimizer, const DivideOptions& options) const {
  Signature mine;
  mine.lines.push_back({"share_parameters", options.share_parameters ? "true" : "false"});
  mine.lines.push_back({"overlap_update", options.overlap_update ? "true" : "false"});
  mine.lines.push_back({"scatter_gradients", options.scatter_gradients ? "true" : "false"});
  mine.lines.push_back({"divide_state", options.divide_state ? "true" : "false"});
  for (const auto& [name, parameter] : optimizer.parameters()) {
    const bool in_place = values_ != nullptr && values_->keeps(parameter);
    mine.lines.push_back({name,
                          fmt::format("of {} bytes {}",
                                      parameter.nbytes(),
                                      in_place ? "in shared memory" : "in other memory")});
  }
  verify_equal(mine,
               group_,
               timeout_,
               {.what = "what divide_step() is to divide differs",
                .advice = "Give all ranks the same optimizer and the same options, and parameters "
                          "the memory that they had when the model was wrapped."});
}

bool Divisions::add(const std::shared_ptr<optim::OptimizerImpl>& optimizer,
                    const DivideOptions& options) {
  const std::optional<std::size_t> states = optimizer->states_per_parameter();
  if (values_ == nullptr || !states.has_value()) {
    return false;
  }
  values_->bring_back();
  const std::shared_ptr<DividedStep> division =
      DividedStep::create(optimizer->parameters(), *states, values_, group_, timeout_);
  if (division == nullptr) {
    return false;
  }
  optimizer->divide(division);
  divided_.push_back({optimizer, division, options.share_parameters});
  if (options.share_parameters) {
    sharing_ = true;
    share_parameters();
  }
  log::info("[parallel.ddp] {} ranks divide the optimizer's steps{}{}",
            group_.size(),
            options.share_parameters ? ", share its parameters" : "",
            options.overlap_update ? ", update during backward" : "");
  return true;
}

void Divisions::add_sharded(const std::shared_ptr<optim::OptimizerImpl>& optimizer,
                            engine::NamedTensors parameters,
                            const BucketPlan& plan,
                            bool whole_gradients) {
  const auto sharded =
      std::make_shared<ShardedBuckets>(std::move(parameters),
                                       plan,
                                       group_,
                                       timeout_,
                                       ShardedBuckets::Homes{.whole_gradients = whole_gradients});
  optimizer->shard(sharded);
  divided_.push_back({.optimizer = optimizer, .sharded = sharded});
  log::info("[parallel.ddp] {} ranks divide the optimizer's steps and state{}",
            group_.size(),
            whole_gradients ? "" : ", and gradients");
}

bool Divisions::shards() const {
  return !sharded_optimizers().empty();
}

std::vector<std::shared_ptr<optim::OptimizerImpl>> Divisions::sharded_optimizers() const {
  std::vector<std::shared_ptr<optim::OptimizerImpl>> living;
  for (const Divided& each : divided_) {
    auto optimizer = each.optimizer.lock();
    if (optimizer != nullptr && !each.sharded.expired()) {
      living.push_back(std::move(optimizer));
    }
  }
  return living;
}

void Divisions::tell_steps_by(const std::function<void()>& tell) {
  for (const Divided& each : divided_) {
    if (const auto sharded = each.sharded.lock()) {
      sharded->tell_by(tell);
    }
  }
}

void Divisions::follow_buckets(const BucketPlan& plan) {
  change_sharded([&](ShardedBuckets& sharded) { sharded.follow(plan); });
}

void Divisions::change_sharded(const Change& change) {
  for (const Divided& each : divided_) {
    const std::shared_ptr<optim::OptimizerImpl> optimizer = each.optimizer.lock();
    const std::shared_ptr<ShardedBuckets> sharded = each.sharded.lock();
    if (optimizer != nullptr && sharded != nullptr) {
      optimizer->shard(nullptr);  // the state becomes whole
      change(*sharded);
      optimizer->shard(sharded);
    }
  }
}

void Divisions::follow_layout() {
  change_sharded([](ShardedBuckets& sharded) { sharded.follow_layout(); });
  for (const Divided& each : divided_) {
    const std::shared_ptr<optim::OptimizerImpl> optimizer = each.optimizer.lock();
    const std::shared_ptr<DividedStep> step = each.step.lock();
    if (optimizer != nullptr && step != nullptr) {
      optimizer->divide(nullptr);  // state in the old order becomes its own again
      optimizer->divide(step);
    }
  }
}

void Divisions::share(void (DividedStep::*change)()) {
  if (!sharing_) {
    return;
  }
  const auto for_each_sharing = [&](auto&& body) {
    for (const Divided& each : divided_) {
      const std::shared_ptr<DividedStep> step = each.step.lock();
      if (step != nullptr && each.share_parameters) {
        body(*step);
      }
    }
  };
  for_each_sharing([&](DividedStep& step) { (step.*change)(); });
  try {
    comm::barrier(group_, {.timeout = timeout_});
  } catch (...) {
    for_each_sharing([](DividedStep& step) { step.leave(); });
    throw;
  }
}

}  // namespace argosy::parallel::ddp
