#include "argosy/ps/replica.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <thread>
#include <utility>

#include "argosy/base/check.h"
#include "argosy/base/log.h"
#include "argosy/ps/spill_folder.h"

namespace argosy::ps {
namespace {

using std::chrono::milliseconds;

/// How long it looks for what became of a server that does not answer.
constexpr milliseconds kInquiryOfServer{1000};
/// Until it asks for a backup again, when that has failed.
constexpr milliseconds kJoinPause{1000};
/// After one that failed: a whole partition has travelled for nothing.
constexpr milliseconds kPauseAfterFailure{5000};
constexpr milliseconds kUsual{0};
/// For a part of a shard on its way to a new backup, and how large it is.
constexpr std::chrono::minutes kPartPatience{2};
constexpr size_t kPartBytes = size_t{16} << 20;  // a message between hosts has 32 MiB at most
/// Of pushes that wait until a new backup has what precedes them.
constexpr size_t kMostKeptBytes = size_t{1} << 30;
/// The stream between the first primary of a partition and the first backup.
constexpr uint64_t kFirstStream = 1;

OrderEntry entry_of(const PullRequest& pull) {
  return {.kind = OrderEntry::Kind::kPull, .worker = pull.worker, .number = pull.number};
}
OrderEntry entry_of(const PushRequest& push) {
  return {.kind = push.is_upkeep() ? OrderEntry::Kind::kUpkeep : OrderEntry::Kind::kPush,
          .worker = push.worker,
          .number = push.number};
}

std::vector<SavedDense> saved_of(const std::vector<DenseGiven>& given) {
  std::vector<SavedDense> dense;
  for (const DenseGiven& one : given) {
    const std::span<const float> weights = one.weights.as<float>();
    const std::span<const float> state = one.state.as<float>();
    dense.push_back({.number = one.number,
                     .values = {.weights = {weights.begin(), weights.end()},
                                .state = {state.begin(), state.end()}}});
  }
  return dense;
}

}  // namespace

std::string ServerLinks::fate_of(int server, milliseconds patience) const {
  return agent->fate_of(name_of(server), patience);
}

int ServerLinks::next_living(int last) const {
  const auto count = static_cast<int>(servers.size());
  int found = -1;
  for (int distance = 1; distance < count; ++distance) {
    const int server = (self + distance) % count;
    if (fate_of(server, milliseconds(0)).empty()) {
      found = server;
      if (server != last) {
        break;
      }
    }
  }
  return found;
}

Replica::Replica(const TableSet& tables,
                 const PartitionOptions& options,
                 int self,
                 const View& view)
    : tables_(tables), options_(options), self_(self), view_(view) {
  if (view.primary == self) {
    out_ = {.to = view.backup, .stream = kFirstStream};
  } else if (view.backup == self) {
    in_ = {.stream = kFirstStream, .whole = true};
  }
  if (view.primary == self || view.backup == self) {
    partition_ = std::make_unique<Partition>(tables_, options_);
  }
}

void Replica::open_orders() {
  const OrderOf of{.partition = options_.number,
                   .partitions = options_.count,
                   .workers = options_.workers,
                   .tables = tables_.fingerprint()};
  if (view_.primary == self_ && !options_.record.empty()) {
    record_ = std::make_unique<OrderRecord>(options_.record, of);
  }
  if (view_.primary == self_ && !options_.replay.empty()) {
    replay_ = std::make_unique<OrderReplay>(options_.replay, of);
  }
}

Replica::~Replica() = default;

View Replica::view() const {
  const std::shared_lock lock(mutex_);
  return view_;
}

/// With the mutex.
bool Replica::is_copying() const {
  const auto is_busy = [](const auto& copy) { return copy != nullptr && !copy->is_done(); };
  return is_busy(saving_) || is_busy(joining_);
}

bool Replica::has_a_part() const {
  const std::shared_lock lock(mutex_);
  return partition_ != nullptr;
}

Partition& Replica::partition() const {
  if (partition_ == nullptr) {
    throw NotPrimaryError(
        fmt::format("server {} has nothing of partition {}", self_, options_.number));
  }
  return *partition_;
}

void Replica::check_primary() const {
  if (view_.primary != self_) {
    throw NotPrimaryError(fmt::format("server {} is not the primary of partition {} (epoch {}): {}",
                                      self_,
                                      options_.number,
                                      view_.epoch,
                                      view_.primary));
  }
}

void Replica::begin(std::span<const float> dense) {
  const std::unique_lock lock(mutex_);
  partition().set_dense(dense);
}

void Replica::load(const TableFiles& saved) {
  const std::unique_lock lock(mutex_);
  partition().restore(saved);
}

rpc::Later<PullReply> Replica::pull(rpc::CallContext& call, PullRequest request) {
  rpc::Later<PullReply> reply;
  rpc::Draft values;
  {
    const std::shared_lock lock(mutex_);
    check_primary();
    values = call.allocate(partition_->size_of(request) * sizeof(float));
    if (replay_ == nullptr && may_answer(request)) {
      partition_->pull(request, values.as<float>());
      if (record_ != nullptr) {
        record_->note(entry_of(request));
      }
      reply.set({.values = std::move(values).finish(),
                 .seen = partition_->steps_of_others(request.worker)});
      return reply;
    }
  }
  std::vector<Answer> answers;
  {
    const std::unique_lock lock(mutex_);
    check_primary();
    if (replay_ != nullptr) {
      replay_->check(entry_of(request));
    }
    waiting_.push_back({std::move(request), std::move(values), reply});
    answers = take_those_that_may();  // the push that it waits for may have come between
  }
  send(std::move(answers));
  return reply;
}

std::vector<Replica::Answer> Replica::take_those_that_may() {
  std::vector<Answer> answers;
  for (bool goes_on = true; goes_on;) {
    goes_on = take_an_early_one();
    for (auto one = waiting_.begin(); one != waiting_.end();) {
      if (!may_answer(one->request)) {
        ++one;
        continue;
      }
      note(entry_of(one->request));
      try {
        partition_->pull(one->request, one->values.as<float>());
        answers.push_back({std::move(one->reply),
                           std::move(one->values),
                           partition_->steps_of_others(one->request.worker)});
      } catch (const DiskError&) {  // it is no matter of whoever pushed
        one->reply.fail(std::current_exception());
      }
      one = waiting_.erase(one);
      goes_on = replay_ != nullptr;  // another one's turn may have come
    }
  }
  return answers;
}

bool Replica::may_answer(const PullRequest& request) const {
  return replay_ != nullptr ? replay_->is_next(entry_of(request)) : !partition_->must_wait(request);
}

/// With the mutex, alone.
void Replica::note(const OrderEntry& entry) {
  if (replay_ != nullptr) {
    replay_->take(entry);
  }
  if (record_ != nullptr) {
    record_->note(entry);
  }
}

void Replica::take(const PushRequest& request) {
  if (partition_->has(request)) {
    return;
  }
  if (replay_ == nullptr) {
    change(request);
    note(entry_of(request));
  } else if (const auto place = std::pair(request.worker, request.number);
             !early_.contains(place)) {
    replay_->check(entry_of(request));
    early_.emplace(place, request);
  }
}

/// Returns false when it is nobody's turn.
bool Replica::take_an_early_one() {
  for (auto one = early_.begin(); one != early_.end(); ++one) {
    if (replay_->is_next(entry_of(one->second))) {
      change(one->second);
      note(entry_of(one->second));
      early_.erase(one);
      return true;
    }
  }
  return false;
}

void Replica::send(std::vector<Answer> answers) {
  for (Answer& answer : answers) {
    answer.reply.set({.values = std::move(answer.values).finish(), .seen = answer.seen});
  }
}

/// A push that came before is sent again too: its first answer may have been lost because the
/// backup did not have it.
void Replica::push(const PushRequest& request, const ServerLinks& links) {
  ReplicaPush copy;
  int to = -1;
  std::vector<Answer> answers;
  {
    const std::unique_lock lock(mutex_);
    check_primary();
    take(request);
    answers = take_those_that_may();
    to = out_.to;
    copy = {.stream = out_.stream, .number = out_.sent, .push = request};
    copy.push.head_start = partition_->pace().head_start_of(request.worker);
    out_.sent += to >= 0 ? 1 : 0;
  }
  send(std::move(answers));
  if (to >= 0) {
    keep_safe(copy, to, links);
  }
}

/// Half a change would be worse than a server that is gone, whose backup has all of it.
void Replica::change(const PushRequest& request) {
  partition_->prepare(request);  // before any change
  try {
    partition_->push(request);
  } catch (const UsageError&) {
    throw;  // before any change
  } catch (const std::exception& error) {
    log::error("[ps.server] a push could not be applied, so this server ends: {}", error.what());
    std::abort();
  }
}

void Replica::keep_safe(const ReplicaPush& push, int to, const ServerLinks& links) {
  for (;;) {
    try {
      links.call(to, kUsual, "ps/replicate", push);
      return;
    } catch (const rpc::RemoteError& error) {
      if (error.thrown().type == DiskError::kType) {
        log::warn("[ps.view] server {} has no room for the copy of partition {}: {}",
                  to,
                  options_.number,
                  error.what());
        next_join_ = std::chrono::steady_clock::now() + kPauseAfterFailure;
        break;
      }
      if (error.thrown().type != NotPrimaryError::kType) {
        throw;
      }
      look(links);  // it may have taken over
      break;
    } catch (const rpc::CallError& error) {
      if (error.gone() || !links.fate_of(to, kInquiryOfServer).empty()) {
        break;
      }
      log::warn("[ps.server] the backup does not take a push, which is sent again: {}",
                error.what());
    }
    // The same push: without it the backup could apply none that follows.
    const std::shared_lock lock(mutex_);
    check_primary();
    if (out_.stream != push.stream) {
      return;
    }
  }
  lose(to, push.stream, links);
  const std::shared_lock lock(mutex_);
  check_primary();
}

void Replica::lose(int server, uint64_t stream, const ServerLinks& links) {
  View alone;
  while (naming_) {  // what it becomes is about to be known
    std::this_thread::sleep_for(milliseconds(1));
  }
  {
    const std::unique_lock lock(mutex_);
    if (view_.primary != self_ || (out_.to == server && out_.stream != stream)) {
      return;  // another stream to it has begun since
    }
    if (view_.backup != server) {  // it has not become the backup
      out_ = out_.to == server ? Outgoing() : out_;
      return;
    }
    alone = view_;
  }
  const View seen = alone;
  ++alone.epoch;
  alone.backup = -1;
  const bool changed = links.views->change(options_.number, seen, alone);
  const View now = changed ? alone : links.views->get(options_.number);
  if (changed) {
    log::warn("[ps.view] server {} is gone: partition {} has no backup now",
              seen.backup,
              options_.number);
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
    // Some may be missing between those that came: their workers have not been told that they are
    // safe, and send them again.
    for (const auto& [number, push] : in_.kept) {
      change(push);
    }
  }
  view_ = view;
  if (view_.backup != self_) {
    in_ = {};
  }
  if (view_.primary == self_ && view_.backup == out_.to) {
    return;
  }
  out_ = {};
  if (view_.primary != self_) {
    for (WaitingPull& one : waiting_) {
      one.reply.fail(std::make_exception_ptr(NotPrimaryError(fmt::format(
          "server {} is no longer the primary of partition {}", self_, options_.number))));
    }
    waiting_.clear();
  }
}

View Replica::take_over(uint64_t epoch, const ServerLinks& links) {
  View seen = view();
  if (seen.epoch < epoch) {  // it has become the backup a moment ago
    look(links);
    seen = view();
  }
  if (seen.epoch > epoch) {
    return seen;
  }
  if (seen.backup != self_ || links.fate_of(seen.primary, milliseconds(0)).empty()) {
    throw NotPrimaryError(fmt::format("server {} lives, or {} is not its backup of partition {}",
                                      seen.primary,
                                      self_,
                                      options_.number));
  }
  const View mine{.epoch = seen.epoch + 1, .primary = self_, .backup = -1};
  if (!links.views->change(options_.number, seen, mine)) {
    look(links);
    return view();
  }
  log::warn("[ps.view] server {} is gone: server {} has partition {} now",
            seen.primary,
            self_,
            options_.number);
  const std::unique_lock lock(mutex_);
  adopt(mine);
  return mine;
}

void Replica::look(const ServerLinks& links) {
  const View now = links.views->get(options_.number);
  uint64_t stream = 0;
  bool follows = true;  // the backup gets every push
  {
    const std::unique_lock lock(mutex_);
    adopt(now);
    stream = out_.stream;
    follows = view_.backup == out_.to || naming_;
    const bool has_no_role = view_.primary != self_ && view_.backup != self_ && in_.stream == 0;
    if (has_no_role && !is_copying()) {
      partition_.reset();  // its memory is for others
    }
  }
  if (now.backup == self_ && !links.fate_of(now.primary, milliseconds(0)).empty()) {
    (void)take_over(now.epoch, links);
  } else if (now.primary == self_ && now.backup >= 0 &&
             (!follows || !links.fate_of(now.backup, milliseconds(0)).empty())) {
    lose(now.backup, stream, links);
  }
}

/// Asks for nobody's fate while nobody waits.
void Replica::excuse_the_dead(const ServerLinks& links) {
  std::vector<uint32_t> slow;
  {
    const std::shared_lock lock(mutex_);
    if (options_.mode != UpdateMode::kHalfAsync || waiting_.empty() || replay_ != nullptr) {
      return;
    }
    const WorkerPace& pace = partition_->pace();
    for (uint32_t worker = 0; worker < links.workers.size(); ++worker) {
      if (!pace.is_excused(worker) && pace.is_slowest(worker)) {
        slow.push_back(worker);
      }
    }
  }
  std::erase_if(slow, [&](uint32_t worker) {
    return links.agent->fate_of(links.workers[worker]).empty() &&
           !links.views->is_done(static_cast<int>(worker));
  });
  std::vector<Answer> answers;
  if (!slow.empty()) {
    const std::unique_lock lock(mutex_);
    for (const uint32_t worker : slow) {
      log::info("[ps.server] partition {}: nobody waits for \"{}\", which is gone or done",
                options_.number,
                links.workers[worker]);
      partition().pace().excuse(worker);
    }
    answers = take_those_that_may();
  }
  send(std::move(answers));
}

// -- The backup.

void Replica::check_stream(uint64_t stream) const {
  if (stream == 0 || stream != in_.stream) {
    throw NotPrimaryError(fmt::format(
        "partition {} has changed its servers: stream {} is over", options_.number, stream));
  }
}

void Replica::replicate(const ReplicaPush& push) {
  const std::unique_lock lock(mutex_);
  check_stream(push.stream);
  if (push.number >= in_.applied) {  // else it came already
    const bool is_new = in_.kept.emplace(push.number, push.push).second;
    in_.kept_bytes += is_new ? push.push.bytes() : 0;
    apply_in_order();
    check_kept();
  }
}

/// Pushes come through several threads. With the mutex.
void Replica::apply_in_order() {
  if (!in_.whole) {
    return;
  }
  for (auto next = in_.kept.find(in_.applied); next != in_.kept.end();
       next = in_.kept.find(in_.applied)) {
    change(next->second);
    in_.kept_bytes -= next->second.bytes();
    in_.kept.erase(next);
    ++in_.applied;
  }
}

/// A worker is told that its push is not safe there, and the primary begins anew.
void Replica::check_kept() {
  if (!in_.whole && in_.kept_bytes > kMostKeptBytes) {
    const size_t pushes = in_.kept.size();
    in_ = {};
    throw NotPrimaryError(fmt::format(
        "partition {}: workers push faster than a copy comes: {} pushes wait, of more than {} MB",
        options_.number,
        pushes,
        kMostKeptBytes >> 20U));
  }
}

void Replica::join(const JoinRequest& request) {
  const std::unique_lock lock(mutex_);
  adopt(request.view);
  ARGOSY_CHECK(request.view.backup < 0 && request.view.primary != self_ && view_.primary != self_ &&
                   view_.backup != self_ && request.stream > last_joined_,
               "ps.request",
               "partition {} is not to be joined by server {} in epoch {}",
               options_.number,
               self_,
               request.view.epoch);
  if (view_ != request.view || is_copying()) {
    throw NotPrimaryError(fmt::format("partition {} has changed its servers: epoch {} is over",
                                      options_.number,
                                      request.view.epoch));
  }
  partition_ = std::make_unique<Partition>(tables_, options_);
  in_ = {.stream = request.stream};
  last_joined_ = request.stream;
}

void Replica::install(const ReplicaShard& shard) {
  const std::unique_lock lock(mutex_);
  check_stream(shard.stream);
  partition_->restore(shard.shard, shard.table, shard.rows);
  partition_->restore(saved_of(shard.dense));
}

void Replica::complete(const ReplicaState& state) {
  const std::unique_lock lock(mutex_);
  check_stream(state.stream);
  partition_->restore(state.state);
  in_.whole = true;
  apply_in_order();
}

void Replica::seek_backup(const ServerLinks& links) {
  const View before = view();
  if (before.primary != self_ || before.backup >= 0 ||
      (joining_ != nullptr && !joining_->is_done()) ||
      std::chrono::steady_clock::now() < next_join_.load()) {
    return;
  }
  const int server = links.next_living(refused_);
  if (server < 0 || is_fresh()) {  // what is set before the first push goes to those in the view
    return;
  }
  next_join_ = std::chrono::steady_clock::now() + kJoinPause;
  const auto number = static_cast<uint32_t>(options_.number);
  const Outgoing to{.to = server, .stream = (before.epoch << 16U) + ++joins_};
  links.call(server,
             kUsual,
             "ps/join",
             JoinRequest{.partition = number, .stream = to.stream, .view = before});
  const std::unique_lock lock(mutex_);
  if (view_ != before) {
    return;
  }
  out_ = to;
  joining_ = std::make_unique<PartitionCopy>(
      *partition_,
      mutex_,
      PartitionCopy::Receiver{
          .take =
              [=, this, &links](int shard,
                                const std::vector<SavedRows>& rows,
                                const std::vector<SavedDense>& dense) {
                send_shard(links, to, shard, rows, dense);
              },
          .end =
              [=, this, &links, state = partition_->state()](const std::exception_ptr& failure) {
                end_joining(links, before, to, state, failure);
              }});
}

/// In messages of a size that the other host takes, and dense parameters beside them.
void Replica::send_shard(const ServerLinks& links,
                         const Outgoing& to,
                         int shard,
                         const std::vector<SavedRows>& rows,
                         const std::vector<SavedDense>& dense) const {
  ReplicaShard part{
      .partition = static_cast<uint32_t>(options_.number), .stream = to.stream, .shard = shard};
  const auto send = [&] { links.call(to.to, kPartPatience, "ps/install", part); };
  for (const SavedDense& one : dense) {
    part.dense = {{.number = one.number,
                   .weights = rpc::Memory::own(std::vector<float>(one.values.weights)),
                   .state = rpc::Memory::own(std::vector<float>(one.values.state))}};
    send();
  }
  part.dense.clear();
  for (; part.table < rows.size(); ++part.table) {
    for_each_part(rows[part.table], kPartBytes, [&](const SavedRows& some) {
      part.rows = some;
      send();
    });
  }
}

void Replica::end_joining(const ServerLinks& links,
                          const View& before,
                          const Outgoing& to,
                          const PartitionState& state,
                          const std::exception_ptr& failure) {
  try {
    if (failure) {
      std::rethrow_exception(failure);
    }
    links.call(to.to,
               kUsual,
               "ps/complete",
               ReplicaState{.partition = static_cast<uint32_t>(options_.number),
                            .stream = to.stream,
                            .state = state});
    name_backup(links, before, to);
  } catch (const std::exception& error) {
    log::warn("[ps.view] server {} did not become the backup of partition {}: {}",
              to.to,
              options_.number,
              error.what());
    refused_ = to.to;
    next_join_ = std::chrono::steady_clock::now() + kPauseAfterFailure;
    lose(to.to, to.stream, links);
  }
}

void Replica::forget() {
  const std::unique_lock lock(mutex_);
  partition_.reset();
  view_ = {};
  out_ = {};
  in_ = {};
}

bool Replica::is_fresh() const {
  const std::shared_lock lock(mutex_);
  return partition().is_fresh();
}

void Replica::stop_copying() {
  std::unique_ptr<PartitionCopy> ended;
  {
    const std::unique_lock lock(mutex_);
    ended = std::move(joining_);
  }
}

/// Not before all is there: every push that this server has acknowledged is there too, unless one
/// could not be sent since.
void Replica::name_backup(const ServerLinks& links, const View& before, const Outgoing& to) {
  {
    const std::unique_lock lock(mutex_);
    if (out_.to != to.to || out_.stream != to.stream) {
      throw Error("ps.view", "a push did not reach it");
    }
    naming_ = true;
  }
  View with = before;
  ++with.epoch;
  with.backup = to.to;
  try {
    const bool changed = links.views->change(options_.number, before, with);
    const View now = changed ? with : links.views->get(options_.number);
    const std::unique_lock lock(mutex_);
    adopt(now);
    if (changed) {
      log::warn("[ps.view] server {} has a copy of partition {} now", to.to, options_.number);
    }
  } catch (const std::exception& error) {
    // It is whole, and still gets every push: whichever view stands in the store is true. The next
    // look() finds out.
    log::warn(
        "[ps.view] the store does not say whether server {} is the backup of partition {}: {}",
        to.to,
        options_.number,
        error.what());
  }
  naming_ = false;
}

// -- Saves.

void Replica::begin_save(const SaveRequest& request) {
  const std::lock_guard one_at_a_time(save_mutex_);
  std::unique_ptr<PartitionCopy> former;
  {
    const std::unique_lock lock(mutex_);
    check_primary();
    former = std::move(saving_);
  }
  former.reset();  // without the lock, which its thread may wait for
  const std::unique_lock lock(mutex_);
  check_primary();
  partition_->restore(saved_of(request.dense));
  saved_ = {};
  auto files = std::make_shared<std::vector<ShardFile>>();
  saving_ = std::make_unique<PartitionCopy>(
      *partition_,
      mutex_,
      PartitionCopy::Receiver{
          .take =
              [this, folder = request.folder, files](int shard,
                                                     const std::vector<SavedRows>& rows,
                                                     const std::vector<SavedDense>& dense) {
                files->push_back(write_shard(folder, shard, tables_, rows, dense));
              },
          .end =
              [saved = saved_, files](const std::exception_ptr& failure) mutable {
                failure ? saved.fail(failure) : saved.set(*files);
              }});
}

rpc::Later<std::vector<ShardFile>> Replica::end_save() {
  const std::shared_lock lock(mutex_);
  if (saving_ == nullptr) {  // it was started again meanwhile
    throw NotPrimaryError(
        fmt::format("server {} saves nothing of partition {}", self_, options_.number));
  }
  return saved_;
}

WorkerProgress Replica::progress_of(uint32_t worker) const {
  const std::shared_lock lock(mutex_);
  check_primary();
  return {.tables = tables_.fingerprint(),
          .pushes = partition().pushes_of(worker),
          .upkeeps = partition().upkeeps_of(worker),
          .steps = partition().steps_of(worker)};
}

std::vector<TableStat> Replica::stats() const {
  const std::shared_lock lock(mutex_);
  std::vector<TableStat> all(tables_.sparse.size());
  for (uint32_t table = 0; partition_ != nullptr && table < all.size(); ++table) {
    all[table] = partition_->stat(table);
  }
  return all;
}

uint64_t Replica::workers_apart() const {
  const std::shared_lock lock(mutex_);
  return partition().workers_apart();
}

}  // namespace argosy::ps
