#include "argosy/parallel/ddp/join.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <iterator>
#include <utility>

#include <ATen/ops/zeros.h>

#include "argosy/base/check.h"
#include "argosy/base/log.h"
#include "argosy/comm/collectives.h"
#include "argosy/parallel/ddp/core.h"
#include "argosy/parallel/sharded/memory_pool.h"

namespace argosy::parallel {

Join::Join(std::shared_ptr<ddp::Core> core, const JoinOptions& options)
    : core_(std::move(core)), exceptions_(std::uncaught_exceptions()) {
  core_->begin_join(options);
}

Join::~Join() {
  if (core_ == nullptr) {
    return;
  }
  if (std::uncaught_exceptions() > exceptions_) {
    core_->abandon_join();
    return;
  }
  try {
    finish();
  } catch (const std::exception& error) {
    log::error("join: {}", error.what());
  }
}

void Join::finish() {
  if (auto core = std::exchange(core_, nullptr)) {
    core->finish_join();
  }
}

namespace ddp {
namespace {

constexpr int kBitsOfDetail = 32;

std::string in_words(int64_t code) {
  const auto flags = static_cast<uint32_t>(code >> kBitsOfDetail);
  if ((flags & kGather) != 0 && sharded::MemoryPool::is_publication(static_cast<uint32_t>(code))) {
    return "at parameters that were written outside of a step";
  }
  if ((flags & kGather) != 0) {
    return fmt::format("at the parameters of unit {}", static_cast<uint32_t>(code));
  }
  if ((flags & kGatherGradient) != 0) {
    return fmt::format("at the gradients of unit {}", static_cast<uint32_t>(code));
  }
  return (flags & kForward) != 0 ? "in forward"
         : (flags & kStep) != 0  ? "in optimizer.step()"
                                 : "in backward";
}

}  // namespace

JoinSession::JoinSession(const comm::Group& group,
                         const JoinOptions& options,
                         std::chrono::milliseconds timeout)
    : group_(group), options_(options), timeout_(timeout) {}

void JoinSession::tell(const Announcement& what) {
  Told told{.by_rank = at::zeros({group_.size()}, at::kLong)};
  told.by_rank.data_ptr<int64_t>()[group_.rank()] =
      (static_cast<int64_t>(what.flags) << kBitsOfDetail) | what.detail;
  told.work = comm::all_reduce_async(
      told.by_rank, group_, {.op = comm::ReduceOp::kMax, .timeout = timeout_});
  told_.push_back(std::move(told));
}

/// All announcements until now; returns the last one of the ranks with input.
Announcement JoinSession::read() {
  int64_t last = 0;
  for (const Told& told : std::exchange(told_, {})) {
    told.work.wait();
    const int64_t* codes = told.by_rank.data_ptr<int64_t>();
    std::vector<int> active;
    for (int rank = 0; rank < group_.size(); ++rank) {
      if (codes[rank] != 0) {
        active.push_back(rank);
      }
    }
    if (active.empty()) {
      return {};
    }
    last = codes[active.front()];
    const bool found = last >> kBitsOfDetail == kFound;
    for (int rank : active) {
      ARGOSY_CHECK(codes[rank] == last || (found && codes[rank] >> kBitsOfDetail == kFound),
                   "parallel.join",
                   "ranks are out of step: rank {} is {}, rank {} is {}. All ranks with input must "
                   "run the same forward and backward passes.",
                   active.front(),
                   in_words(last),
                   rank,
                   in_words(codes[rank]));
      last = std::min(last, codes[rank]);
    }
    active_ = std::move(active);
  }
  return {.flags = static_cast<uint32_t>(last >> kBitsOfDetail),
          .detail = static_cast<uint32_t>(last)};
}

int JoinSession::announce_forward(const ForwardWork& work) {
  uint32_t flags = kForward;
  flags |= work.rebuild ? kRebuild : 0U;
  flags |= work.buffers ? kBuffers : 0U;
  tell({.flags = flags});
  (void)read();
  return lowest_active();
}

int JoinSession::divisor() {
  (void)read();
  return options_.divide_by_initial_world_size ? group_.size() : static_cast<int>(active_.size());
}

Announcement JoinSession::next() {
  tell({});
  return read();
}

void JoinSession::announce_step(const optim::OptimizerImpl& optimizer, bool has_gradients) {
  tell({.flags = kStep, .detail = has_gradients ? 1U : 0U});
  (void)read();
  (void)exchanged_rates(optimizer);
}

void JoinSession::follow_rates(optim::OptimizerImpl& optimizer) const {
  const at::Tensor rates = exchanged_rates(optimizer);
  for (size_t group = 0; group < optimizer.groups().size(); ++group) {
    optimizer.set_group_lr(group, rates.data_ptr<double>()[group]);
  }
}

/// Those of the lowest rank with input.
at::Tensor JoinSession::exchanged_rates(const optim::OptimizerImpl& optimizer) const {
  const auto& groups = optimizer.groups();
  at::Tensor rates = at::zeros({std::ssize(groups)}, at::kDouble);
  for (size_t group = 0; group < groups.size(); ++group) {
    rates.data_ptr<double>()[group] = groups[group].lr;
  }
  comm::broadcast(rates, group_, {.root = lowest_active(), .timeout = timeout_});
  return rates;
}

}  // namespace ddp
}  // namespace argosy::parallel
