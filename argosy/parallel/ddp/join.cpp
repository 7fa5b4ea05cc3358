#include "argosy/parallel/ddp/join.h"

#include <exception>
#include <utility>

#include <ATen/ops/zeros.h>

#include "argosy/base/check.h"
#include "argosy/base/log.h"
#include "argosy/comm/collectives.h"
#include "argosy/parallel/ddp/core.h"

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

std::string in_words(uint8_t flags) {
  return (flags & kForward) != 0 ? "in forward" : "in backward";
}

}  // namespace

JoinSession::JoinSession(const comm::Group& group,
                         const JoinOptions& options,
                         std::chrono::milliseconds timeout)
    : group_(group),
      options_(options),
      timeout_(timeout),
      flags_(at::zeros({group.size()}, at::kByte)) {}

void JoinSession::start(uint8_t flags) {
  flags_.zero_();
  flags_.data_ptr<uint8_t>()[group_.rank()] = flags;
  work_ = comm::all_reduce_async(flags_, group_, {.op = comm::ReduceOp::kMax, .timeout = timeout_});
}

uint8_t JoinSession::read() {
  work_.wait();
  const uint8_t* flags = flags_.data_ptr<uint8_t>();
  std::vector<int> active;
  for (int rank = 0; rank < group_.size(); ++rank) {
    if (flags[rank] != 0) {
      active.push_back(rank);
    }
  }
  if (active.empty()) {
    return 0;
  }
  for (int rank : active) {
    ARGOSY_CHECK(flags[rank] == flags[active.front()],
                 "parallel.join",
                 "ranks are out of step: rank {} is {}, rank {} is {}. All ranks with input must "
                 "run the same forward and backward passes.",
                 active.front(),
                 in_words(flags[active.front()]),
                 rank,
                 in_words(flags[rank]));
  }
  active_ = std::move(active);
  return flags[active_.front()];
}

int JoinSession::announce_forward(const ForwardWork& work) {
  start(static_cast<uint8_t>(kForward | (work.rebuild ? kRebuild : 0) |
                             (work.buffers ? kBuffers : 0)));
  read();
  return lowest_active();
}

void JoinSession::announce_backward() {
  start(kBackward);
}

int JoinSession::divisor() {
  read();
  return options_.divide_by_initial_world_size ? group_.size() : static_cast<int>(active_.size());
}

uint8_t JoinSession::next() {
  start(0);
  return read();
}

}  // namespace ddp
}  // namespace argosy::parallel
