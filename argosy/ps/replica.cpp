#include "argosy/ps/replica.h"

#include <fmt/format.h>

#include <cstdlib>
#include <exception>
#include <utility>

#include "argosy/base/check.h"
#include "argosy/base/log.h"

namespace argosy::ps {
namespace {

using std::chrono::milliseconds;

/// How long it looks for what became of a server that does not answer.
constexpr milliseconds kInquiryOfServer{1000};

}  // namespace

std::string ServerLinks::fate_of(int server, milliseconds patience) const {
  return agent->fate_of(servers[static_cast<size_t>(server)], patience);
}

Replica::Replica(const TableSet& tables,
                 const PartitionOptions& options,
                 int self,
                 const View& view)
    : self_(self), partition_(tables, options), view_(view) {}

Replica::~Replica() = default;

View Replica::view() const {
  const std::shared_lock lock(mutex_);
  return view_;
}

bool Replica::is_primary() const {
  return view().primary == self_;
}

void Replica::check_primary() const {
  if (view_.primary != self_) {
    throw NotPrimaryError(fmt::format("server {} is not the primary of partition {} (epoch {}): {}",
                                      self_,
                                      partition_.options().number,
                                      view_.epoch,
                                      view_.primary));
  }
}

void Replica::begin(std::span<const float> dense) {
  const std::unique_lock lock(mutex_);
  partition_.set_dense(dense);
}

rpc::Later<PullReply> Replica::pull(rpc::CallContext& call, PullRequest request) {
  rpc::Later<PullReply> reply;
  rpc::Draft values = call.allocate(partition_.size_of(request) * sizeof(float));
  {
    const std::shared_lock lock(mutex_);
    check_primary();
    if (!partition_.must_wait(request)) {
      partition_.pull(request, values.as<float>());
      reply.set({.values = std::move(values).finish()});
      return reply;
    }
  }
  std::vector<Answer> answers;
  {
    const std::unique_lock lock(mutex_);
    check_primary();
    waiting_.push_back({std::move(request), std::move(values), reply});
    answers = take_those_that_may();  // the push that it waits for may have come between
  }
  send(std::move(answers));
  return reply;
}

void Replica::push(const PushRequest& request, const ServerLinks& links) {
  ReplicaPush copy;
  int backup = -1;
  std::vector<Answer> answers;
  {
    const std::unique_lock lock(mutex_);
    check_primary();
    change(request);
    answers = take_those_that_may();
    backup = view_.backup;
    copy = {.epoch = view_.epoch, .number = sent_, .push = request};
    sent_ += backup >= 0 ? 1 : 0;
  }
  send(std::move(answers));
  if (backup >= 0) {
    keep_safe(copy, backup, links);
  }
}

/// Half a change would be worse than a server that is gone, whose backup has all of it.
void Replica::change(const PushRequest& request) {
  try {
    partition_.push(request);
  } catch (const UsageError&) {
    throw;  // before any change
  } catch (const std::exception& error) {
    log::error("[ps.server] a push could not be applied, so this server ends: {}", error.what());
    std::abort();
  }
}

/// A push that came before is sent again too: its first answer may have been lost because the
/// backup did not have it.
void Replica::keep_safe(const ReplicaPush& push, int backup, const ServerLinks& links) {
  const std::string& name = links.servers[static_cast<size_t>(backup)];
  for (;;) {
    try {
      links.agent->call(name, "ps/replicate", push);
      return;
    } catch (const rpc::RemoteError& error) {
      if (error.thrown().type == NotPrimaryError::kType) {
        look(links);
        throw NotPrimaryError(error.thrown().text);
      }
      throw;
    } catch (const rpc::CallError& error) {
      if (!links.fate_of(backup, kInquiryOfServer).empty()) {
        break;
      }
      log::warn("[ps.server] the backup does not take a push, which is sent again: {}",
                error.what());
    }
    // The same push: without it the backup could apply none that follows.
    const std::shared_lock lock(mutex_);
    check_primary();
    if (view_.epoch != push.epoch) {
      return;
    }
  }
  const View seen = view();
  if (seen.epoch == push.epoch) {
    lose_backup(seen, links);
  }
  const std::shared_lock lock(mutex_);
  check_primary();
}

void Replica::lose_backup(const View& seen, const ServerLinks& links) {
  View alone = seen;
  ++alone.epoch;
  alone.backup = -1;
  const bool changed = links.views->change(partition_.options().number, seen, alone);
  const View now = changed ? alone : links.views->get(partition_.options().number);
  if (changed) {
    log::warn("[ps.view] server {} is gone: partition {} has no backup now",
              seen.backup,
              partition_.options().number);
  }
  const std::unique_lock lock(mutex_);
  adopt(now);
}

/// With the mutex.
void Replica::adopt(const View& view) {
  if (view.epoch <= view_.epoch) {
    return;
  }
  if (view.primary == self_ && view_.primary != self_) {
    // Some may be missing between those that came: nobody has been told that they are safe.
    for (const auto& [number, push] : out_of_turn_) {
      change(push);
    }
  }
  view_ = view;
  sent_ = 0;
  applied_ = 0;
  out_of_turn_.clear();
  if (view_.primary != self_) {
    for (WaitingPull& one : waiting_) {
      one.reply.fail(std::make_exception_ptr(
          NotPrimaryError(fmt::format("server {} is no longer the primary of partition {}",
                                      self_,
                                      partition_.options().number))));
    }
    waiting_.clear();
  }
}

void Replica::replicate(const ReplicaPush& push) {
  const std::unique_lock lock(mutex_);
  if (push.epoch < view_.epoch || view_.backup != self_) {
    throw NotPrimaryError(fmt::format("partition {} has changed its servers: epoch {} is over",
                                      partition_.options().number,
                                      push.epoch));
  }
  if (push.number >= applied_) {  // else it came already
    out_of_turn_.emplace(push.number, push.push);
    apply_in_order();
  }
}

/// Pushes come through several threads. With the mutex.
void Replica::apply_in_order() {
  for (auto next = out_of_turn_.find(applied_); next != out_of_turn_.end();
       next = out_of_turn_.find(applied_)) {
    change(next->second);
    out_of_turn_.erase(next);
    ++applied_;
  }
}

View Replica::take_over(uint64_t epoch, const ServerLinks& links) {
  const View seen = view();
  if (seen.epoch > epoch) {
    return seen;
  }
  if (seen.backup != self_ || links.fate_of(seen.primary, milliseconds(0)).empty()) {
    throw NotPrimaryError(fmt::format("server {} lives, or {} is not its backup of partition {}",
                                      seen.primary,
                                      self_,
                                      partition_.options().number));
  }
  const View mine{.epoch = seen.epoch + 1, .primary = self_, .backup = -1};
  if (!links.views->change(partition_.options().number, seen, mine)) {
    look(links);
    return view();
  }
  log::warn("[ps.view] server {} is gone: server {} has partition {} now",
            seen.primary,
            self_,
            partition_.options().number);
  const std::unique_lock lock(mutex_);
  adopt(mine);
  return mine;
}

void Replica::look(const ServerLinks& links) {
  const View now = links.views->get(partition_.options().number);
  {
    const std::unique_lock lock(mutex_);
    adopt(now);
  }
  if (now.backup == self_ && !links.fate_of(now.primary, milliseconds(0)).empty()) {
    (void)take_over(now.epoch, links);
  } else if (now.primary == self_ && now.backup >= 0 &&
             !links.fate_of(now.backup, milliseconds(0)).empty()) {
    lose_backup(now, links);
  }
}

std::vector<Replica::Answer> Replica::take_those_that_may() {
  std::vector<Answer> answers;
  for (auto one = waiting_.begin(); one != waiting_.end();) {
    if (partition_.must_wait(one->request)) {
      ++one;
      continue;
    }
    partition_.pull(one->request, one->values.as<float>());
    answers.push_back({std::move(one->reply), std::move(one->values)});
    one = waiting_.erase(one);
  }
  return answers;
}

void Replica::send(std::vector<Answer> answers) {
  for (Answer& answer : answers) {
    answer.reply.set({.values = std::move(answer.values).finish()});
  }
}

void Replica::begin_save(const std::string& folder) {
  const std::unique_lock lock(mutex_);
  check_primary();
  ARGOSY_CHECK(save_ == nullptr || save_->is_done(),
               "ps.save",
               "partition {} is still being saved: wait for that save first",
               partition_.options().number);
  save_ = std::make_unique<PartitionSave>(partition_, mutex_, folder);
}

rpc::Later<std::vector<ShardFile>> Replica::end_save() {
  const std::shared_lock lock(mutex_);
  ARGOSY_CHECK(save_ != nullptr,
               "ps.save",
               "server {} saves nothing of partition {}",
               self_,
               partition_.options().number);
  return save_->result();
}

void Replica::load(const TableFiles& saved) {
  const std::unique_lock lock(mutex_);
  partition_.restore(saved);
}

uint64_t Replica::pushes_of(uint32_t worker) const {
  const std::shared_lock lock(mutex_);
  return partition_.pushes_of(worker);
}

std::vector<std::pair<size_t, size_t>> Replica::rows_and_bytes() const {
  const std::shared_lock lock(mutex_);
  std::vector<std::pair<size_t, size_t>> all;
  for (uint32_t table = 0; table < partition_.tables().sparse.size(); ++table) {
    all.emplace_back(partition_.rows(table), partition_.bytes(table));
  }
  return all;
}

}  // namespace argosy::ps
