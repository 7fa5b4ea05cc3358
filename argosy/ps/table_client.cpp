#include "argosy/ps/table_client.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <iterator>
#include <numeric>
#include <optional>
#include <thread>
#include <tuple>
#include <utility>

#include "argosy/base/check.h"
#include "argosy/base/error.h"
#include "argosy/base/log.h"
#include "argosy/ps/copy_row.h"
#include "argosy/ps/replica.h"
#include "argosy/ps/spill_folder.h"

namespace argosy::ps {
namespace {

using std::chrono::milliseconds;

/// How often a worker that waits looks whether the server has been replaced.
constexpr milliseconds kLookPeriod{100};
/// How long it looks for what became of a server whose connection broke.
constexpr milliseconds kInquiryOfPrimary{1000};
/// For what a server reads from disk or writes to it: a table may be large.
constexpr std::chrono::hours kDiskPatience{1};
/// Between two looks for a new primary.
constexpr milliseconds kPause{10};
/// Until the primary has seen that its backup is gone.
constexpr milliseconds kNewView{5000};

/// Adds numbers of a batch that are of one id.
std::vector<float> by_id(const IdDeal& ids, std::span<const float> of_batch) {
  ARGOSY_CHECK(of_batch.empty() || of_batch.size() == ids.size(),
               "ps.client",
               "expected shows and clicks of {} ids, got {}",
               ids.size(),
               of_batch.size());
  std::vector<float> sums(of_batch.empty() ? 0 : ids.ids().size());
  for (size_t shard = 0; shard < kShards && !of_batch.empty(); ++shard) {
    ids.for_each_place(shard, [&](size_t i, size_t u) { sums[u] += of_batch[i]; });
  }
  return sums;
}

/// Returns what was read of each id, in the order of `ids`.
std::vector<float> read_by_id(const IdDeal& ids, std::span<const float> of_batch, size_t dim) {
  std::vector<float> rows(of_batch.empty() ? 0 : ids.ids().size() * dim);
  size_t next = 0;
  for (size_t shard = 0; shard < kShards && !of_batch.empty(); ++shard) {
    ids.for_each_place(shard, [&](size_t i, size_t u) {
      if (u == next) {  // the first place of the id
        copy_row(&rows[u * dim], &of_batch[i * dim], dim);
        ++next;
      }
    });
  }
  return rows;
}

}  // namespace

TableClient::TableClient(rpc::Agent& agent, TableSet tables, ClientOptions options)
    : agent_(agent),
      tables_(std::move(tables)),
      options_(std::move(options)),
      threads_(options_.threads),
      views_(agent.store()) {
  ARGOSY_CHECK(!options_.servers.empty() && options_.servers.size() <= kShards,
               "ps.client",
               "expected 1 to {} servers, got {}",
               kShards,
               options_.servers.size());
  const std::vector<int> dense = dense_shards(tables_.dense);
  for (int partition = 0; partition < servers(); ++partition) {
    std::vector<size_t>& here = dense_of_.emplace_back();
    for (size_t i = 0; i < dense.size(); ++i) {
      if (dense[i] >= shards(partition).first && dense[i] < shards(partition).last) {
        here.push_back(i);
      }
    }
    known_.push_back(views_.get(partition));
  }
  begin_where_it_is();
}

/// Of a process that died, some servers may have one push more than others. They take the new one
/// as the same.
void TableClient::begin_where_it_is() {
  std::vector<ProgressRequest> requests;
  for (int partition = 0; partition < servers(); ++partition) {
    requests.push_back({.partition = static_cast<uint32_t>(partition), .worker = options_.worker});
  }
  const auto answers = ask_all<WorkerProgress>("ps/progress", requests);
  std::optional<WorkerProgress> least;
  for (int partition = 0; partition < servers(); ++partition) {
    const WorkerProgress theirs = answers[static_cast<size_t>(partition)].wait();
    if (theirs.tables != tables_.fingerprint()) {
      refuse_tables_of(primary_of(partition));
    }
    ARGOSY_CHECK(options_.terms.empty() || theirs.terms == options_.terms,
                 "ps.client",
                 "server \"{}\" updates by \"{}\", and this worker expects \"{}\": start both "
                 "with the same options",
                 primary_of(partition).name,
                 theirs.terms,
                 options_.terms);
    ARGOSY_CHECK(theirs.pushes == 0 || options_.goes_on,
                 "ps.client",
                 "worker {} has pushed {} times in this job already: a worker has one client",
                 options_.worker,
                 theirs.pushes);
    if (!least ||
        std::tie(theirs.pushes, theirs.upkeeps) < std::tie(least->pushes, least->upkeeps)) {
      least = theirs;
    }
  }
  pushes_ = least->pushes;
  upkeeps_ = least->upkeeps;
  steps_before_ = least->steps;
}

void TableClient::refuse_tables_of(const rpc::Target& server) {
  const LinesApart apart =
      first_apart(agent_.call<std::vector<std::string>>(server, "ps/tables"), tables_.lines())
          .value_or(LinesApart{"other ShrinkOptions", "its own"});
  throw UsageError("ps.client",
                   fmt::format("server \"{}\" has other tables than this worker: it has {}; this "
                               "worker has {}. Start both from one program with the same options",
                               server.name,
                               apart.theirs,
                               apart.mine));
}

uint64_t TableClient::pushes_of(uint32_t worker) {
  const std::vector<ProgressRequest> request{{.partition = 0, .worker = worker}};
  return ask_all<WorkerProgress>("ps/progress", request).front().wait().pushes;
}

rpc::Target TableClient::primary_of(int partition) const {
  const View& view = known_[static_cast<size_t>(partition)];
  return {options_.servers[static_cast<size_t>(view.primary)], options_.timeout};
}

rpc::Memory TableClient::ids_for(int partition, const IdDeal& ids) {
  const std::span<const uint64_t> here = ids.ids(shards(partition));
  rpc::Draft draft = agent_.allocate(primary_of(partition), here.size_bytes());
  std::ranges::copy(here, draft.as<uint64_t>().begin());
  return std::move(draft).finish();
}

template <typename Result, typename Request>
std::vector<rpc::Future<Result>> TableClient::ask_all(const std::string& function,
                                                      const std::vector<Request>& requests) {
  return settle_all<Result>(start_all<Result>(function, requests), function, requests);
}

template <typename Result, typename Request>
std::vector<std::optional<rpc::Future<Result>>> TableClient::start_all(
    const std::string& function, const std::vector<Request>& requests) {
  std::vector<std::optional<rpc::Future<Result>>> calls;
  for (const Request& request : requests) {
    try {
      calls.emplace_back(agent_.call_async<Result>(
          primary_of(static_cast<int>(request.partition)), function, request));
    } catch (const rpc::CallError&) {
      calls.emplace_back();  // gone before it was asked
    }
  }
  return calls;
}

template <typename Result, typename Request>
std::vector<rpc::Future<Result>> TableClient::settle_all(
    std::vector<std::optional<rpc::Future<Result>>> calls,
    const std::string& function,
    const std::vector<Request>& requests) {
  std::vector<rpc::Future<Result>> all;
  for (size_t i = 0; i < requests.size(); ++i) {
    all.push_back(settled<Result>(std::move(calls[i]), function, requests[i]));
  }
  return all;
}

template <typename Result, typename Request>
rpc::Future<Result> TableClient::settled(std::optional<rpc::Future<Result>> call,
                                         const std::string& function,
                                         const Request& request) {
  const auto partition = static_cast<int>(request.partition);
  const Deadline deadline = Deadline::after(options_.timeout);
  for (;;) {
    std::string why;
    try {
      if (!call) {
        call = agent_.call_async<Result>(primary_of(partition), function, request);
      }
      while (!call->wait_for(kLookPeriod)) {
        if (views_.get(partition).epoch > known_[request.partition].epoch) {
          call->cancel();
          throw NotPrimaryError("it has been replaced");
        }
      }
      (void)call->wait();
      return *call;
    } catch (const rpc::RemoteError& error) {
      if (error.thrown().type == DiskError::kType && !deadline.expired()) {
        wait_for_disk(error);
        call.reset();
        continue;
      }
      if (error.thrown().type != NotPrimaryError::kType) {
        throw;
      }
      why = error.what();
    } catch (const NotPrimaryError& error) {
      why = error.what();
    } catch (const rpc::CallError& error) {
      if (deadline.expired() || !is_of_a_death(error)) {
        throw;  // it lives: a request that is wrong, or a deadline
      }
      why = error.what();
    }
    call.reset();
    find_primary(partition, why, deadline);  // throws after the deadline
  }
}

/// Nothing has changed where it failed, and somebody may make room.
void TableClient::wait_for_disk(const rpc::RemoteError& error) {
  constexpr milliseconds kPauseOfDisk{1000};
  if (!said_disk_) {
    log::warn("[ps.client] a server's disk fails, and it is asked again for up to {} s: {}",
              options_.timeout.count() / 1000,
              error.what());
    said_disk_ = true;
  }
  std::this_thread::sleep_for(kPauseOfDisk);
}

void TableClient::find_primary(int partition, const std::string& why, const Deadline& deadline) {
  View& known = known_[static_cast<size_t>(partition)];
  for (;;) {
    const View now = views_.get(partition);
    if (now.epoch > known.epoch) {
      known = now;
      return;
    }
    const std::string& primary = options_.servers[static_cast<size_t>(now.primary)];
    const std::string fate = agent_.fate_of(primary);
    if (deadline.expired() || (!fate.empty() && now.backup < 0)) {
      throw rpc::CallError(
          "ps.lost",
          fmt::format("partition {} is lost: server \"{}\" {}, and no other server has a copy. {}",
                      partition,
                      primary,
                      fate.empty() ? "does not answer" : fate,
                      why),
          {.op = "ps"},
          primary,
          rpc::CallOutcome::kUnknown);
    }
    if (!fate.empty()) {
      try {
        (void)agent_.call<uint64_t>(options_.servers[static_cast<size_t>(now.backup)],
                                    "ps/take_over",
                                    static_cast<uint32_t>(partition),
                                    now.epoch);
        continue;
      } catch (const rpc::CallError&) {
        // It has not heard of the death yet, or is gone too: the next look says.
      }
    }
    std::this_thread::sleep_for(kPause);
    if (fate.empty()) {
      return;  // it lives, and hears a moment later that it is the primary
    }
  }
}

bool TableClient::is_of_a_death(const rpc::CallError& error) {
  if (const auto* const remote = dynamic_cast<const rpc::RemoteError*>(&error)) {
    return remote->thrown().type == NotPrimaryError::kType;
  }
  return error.gone() || !agent_.fate_of(error.worker(), kInquiryOfPrimary).empty();
}

std::map<int, std::string> TableClient::fill_once(
    const std::vector<int>& partitions,
    const std::function<rpc::Future<void>(int partition, const std::string& server)>& ask) {
  std::map<int, std::string> failed;
  std::vector<std::pair<int, rpc::Future<void>>> calls;
  const auto or_failed = [&](int partition, const std::function<void()>& work) {
    try {
      work();
    } catch (const rpc::CallError& error) {
      if (!is_of_a_death(error)) {
        throw;
      }
      failed[partition] = error.what();
    }
  };
  for (const int partition : partitions) {
    const View& view = known_[static_cast<size_t>(partition)];
    for (const int server : {view.primary, view.backup}) {
      if (server >= 0) {
        or_failed(partition, [&] {
          calls.emplace_back(partition,
                             ask(partition, options_.servers[static_cast<size_t>(server)]));
        });
      }
    }
  }
  for (const auto& call : calls) {
    or_failed(call.first, [&] { call.second.wait(); });
  }
  return failed;
}

void TableClient::fill(
    const std::function<rpc::Future<void>(int partition, const std::string& server)>& ask) {
  const Deadline deadline = Deadline::after(kDiskPatience);
  std::vector<int> partitions(static_cast<size_t>(servers()));
  std::iota(partitions.begin(), partitions.end(), 0);
  while (!partitions.empty()) {
    const std::map<int, std::string> failed = fill_once(partitions, ask);
    partitions.clear();
    for (int partition = 0; partition < servers(); ++partition) {
      const auto why = failed.find(partition);
      if (why == failed.end()) {
        known_[static_cast<size_t>(partition)] =
            views_.get(partition);  // one died when it was done
        continue;
      }
      const uint64_t before = known_[static_cast<size_t>(partition)].epoch;
      const Deadline soon = Deadline::after(kNewView);
      do {
        find_primary(partition, why->second, deadline);
      } while (known_[static_cast<size_t>(partition)].epoch == before && !soon.expired());
      partitions.push_back(partition);
    }
  }
}

void TableClient::begin() {
  fill([&](int partition, const std::string& server) {
    std::vector<float> values;
    for (const size_t i : dense_of_[static_cast<size_t>(partition)]) {
      values.insert(values.end(), tables_.dense[i].initial.begin(), tables_.dense[i].initial.end());
    }
    return agent_.call_async<void>({server, options_.timeout},
                                   "ps/begin",
                                   static_cast<uint32_t>(partition),
                                   rpc::Memory::own(std::move(values)));
  });
}

TableClient::Saving TableClient::begin_save(const std::string& folder,
                                            const std::vector<SavedDense>& dense) {
  pull({});  // in kSync the last push of this worker is applied when all have pushed
  std::vector<SaveRequest> requests;
  for (int partition = 0; partition < servers(); ++partition) {
    SaveRequest& request = requests.emplace_back(
        SaveRequest{.partition = static_cast<uint32_t>(partition), .folder = folder});
    for (const SavedDense& one : dense) {
      if (std::ranges::count(dense_of_[request.partition], one.number) > 0) {
        request.dense.push_back(
            {.number = one.number,
             .weights = rpc::Memory::own(std::vector<float>(one.values.weights)),
             .state = rpc::Memory::own(std::vector<float>(one.values.state))});
      }
    }
  }
  (void)ask_all<void>("ps/save", requests);
  Saving saving;
  for (int partition = 0; partition < servers(); ++partition) {
    try {
      saving.files_.push_back(
          agent_.call_async<std::vector<ShardFile>>({primary_of(partition).name, kDiskPatience},
                                                    "ps/saved",
                                                    static_cast<uint32_t>(partition)));
    } catch (const rpc::CallError&) {
      saving.failure_ = std::current_exception();  // the others write all the same
    }
  }
  return saving;
}

std::vector<ShardFile> TableClient::Saving::wait() const {
  std::vector<ShardFile> all;
  std::exception_ptr failure = failure_;
  for (const rpc::Future<std::vector<ShardFile>>& one : files_) {
    try {
      std::ranges::copy(one.wait(), std::back_inserter(all));
    } catch (...) {
      failure = failure ? failure : std::current_exception();
    }
  }
  if (failure) {
    std::rethrow_exception(failure);
  }
  return all;
}

void TableClient::load(const std::string& checkpoint) {
  fill([&](int partition, const std::string& server) {
    return agent_.call_async<void>(
        {server, kDiskPatience},
        "ps/load",
        FolderRequest{.partition = static_cast<uint32_t>(partition), .folder = checkpoint});
  });
}

TableClient::Seen TableClient::pull(std::span<const Rows> rows, const Dense* dense) {
  if (dense != nullptr) {
    check_dense(dense->values.size(), [&](size_t i) { return dense->values[i].size(); });
  }
  Reading reading = begin_pull(rows, dense != nullptr);
  return finish(reading, rows, dense);
}

TableClient::Reading TableClient::begin_pull(std::span<const Rows> rows, bool dense) {
  Reading reading;
  std::vector<PullRequest>& requests = reading.requests_;
  for (int partition = 0; partition < servers(); ++partition) {
    PullRequest& request =
        requests.emplace_back(PullRequest{.partition = static_cast<uint32_t>(partition),
                                          .worker = options_.worker,
                                          .number = pulls_,
                                          .pushes = pushes_,
                                          .dense = dense});
    for (const Rows& one : rows) {
      request.rows.push_back({.table = one.table,
                              .counts = one.ids.counts(shards(partition)),
                              .ids = ids_for(partition, one.ids)});
    }
  }
  ++pulls_;
  reading.calls_ = start_all<PullReply>("ps/pull", requests);
  return reading;
}

TableClient::Seen TableClient::finish(Reading& reading,
                                      std::span<const Rows> rows,
                                      const Dense* dense) {
  Seen seen;
  std::vector<rpc::Memory> values;
  std::vector<const float*> next;
  for (const rpc::Future<PullReply>& reply :
       settle_all<PullReply>(std::move(reading.calls_), "ps/pull", reading.requests_)) {
    const size_t expected = size_of(reading.requests_[values.size()]);
    seen.push_back(reply.wait().seen);
    values.push_back(reply.wait().values);
    ARGOSY_CHECK(values.back().as<float>().size() == expected,
                 "ps.client",
                 "expected {} numbers from partition {}, got {}",
                 expected,
                 values.size() - 1,
                 values.back().as<float>().size());
    next.push_back(values.back().as<float>().data());
  }
  for (const Rows& one : rows) {
    const size_t dim = tables_.sparse[one.table].dim;
    std::vector<const float*> row_at;
    row_at.reserve(one.ids.ids().size());
    for (int partition = 0; partition < servers(); ++partition) {
      const float*& from = next[static_cast<size_t>(partition)];
      for (size_t i = one.ids.ids(shards(partition)).size(); i > 0; --i, from += dim) {
        row_at.push_back(from);
      }
    }
    one.ids.spread(row_at, dim, one.out);
  }
  for (size_t partition = 0; dense != nullptr && partition < dense_of_.size(); ++partition) {
    for (const size_t i : dense_of_[partition]) {
      std::memcpy(dense->values[i].data(), next[partition], dense->values[i].size_bytes());
      next[partition] += dense->values[i].size();
    }
  }
  return seen;
}

/// Returns how many numbers answer it.
size_t TableClient::size_of(const PullRequest& request) const {
  size_t size = 0;
  for (const RowsWanted& rows : request.rows) {
    size += rows.ids.size() / sizeof(uint64_t) * tables_.sparse[rows.table].dim;
  }
  for (const size_t i : dense_of_[request.partition]) {
    size += request.dense ? tables_.dense[i].initial.size() : 0;
  }
  return size;
}

void TableClient::check_dense(size_t given, const std::function<size_t(size_t)>& size) const {
  bool right = given == tables_.dense.size();
  for (size_t i = 0; right && i < given; ++i) {
    right = size(i) == tables_.dense[i].initial.size();
  }
  ARGOSY_CHECK(right,
               "ps.client",
               "expected numbers for all {} dense parameters, in their sizes, got {}",
               tables_.dense.size(),
               given);
}

/// Memory for one partition's part; what its rows add up to goes to `sums`.
RowsPushed TableClient::part_of(const Gradients& all,
                                int partition,
                                std::vector<float*>& sums,
                                std::vector<rpc::Draft>& drafts) {
  const size_t dim = tables_.sparse[all.table].dim;
  const size_t count = all.ids.ids(shards(partition)).size();
  rpc::Draft& draft =
      drafts.emplace_back(agent_.allocate(primary_of(partition), count * dim * sizeof(float)));
  float* to = draft.as<float>().data();
  for (size_t i = 0; i < count; ++i, to += dim) {
    sums.push_back(to);
  }
  return {.table = all.table,
          .lr = all.lr,
          .counts = all.ids.counts(shards(partition)),
          .ids = ids_for(partition, all.ids),
          .seen = all.seen.empty() ? kSawAll : all.seen[static_cast<size_t>(partition)]};
}

void TableClient::set_day(int32_t day) {
  ARGOSY_CHECK(day >= 0, "ps.client", "days are counted from 0, got {}", day);
  keep_up({.day = day});
}

/// In kSync it waits for all workers, so that nobody is ahead by more than a push.
void TableClient::keep_up(const Upkeep& upkeep) {
  push({}, nullptr, upkeep, 0);
  pull({});
}

void TableClient::push(std::span<const Gradients> gradients,
                       const DenseGradients* dense,
                       const Upkeep& upkeep,
                       uint64_t steps) {
  if (dense != nullptr) {
    check_dense(dense->lr.size(), [&](size_t i) {
      return i < dense->gradients.size() ? dense->gradients[i].size() : 0;
    });
    if (!dense->read.empty()) {
      check_dense(dense->read.size(), [&](size_t i) { return dense->read[i].size(); });
    }
    ARGOSY_CHECK(dense->seen.empty() || std::ssize(dense->seen) == servers(),
                 "ps.client",
                 "expected what was seen of {} partitions, got {}",
                 servers(),
                 dense->seen.size());
  }
  std::vector<PushRequest> requests;
  for (int partition = 0; partition < servers(); ++partition) {
    requests.push_back({.partition = static_cast<uint32_t>(partition),
                        .worker = options_.worker,
                        .number = pushes_,
                        .upkeeps = upkeeps_,
                        .upkeep = upkeep,
                        .steps = steps});
  }
  for (const Gradients& all : gradients) {
    add_rows(all, requests);
  }
  for (size_t partition = 0; dense != nullptr && partition < requests.size(); ++partition) {
    PushRequest& request = requests[partition];
    std::vector<float> all;
    std::vector<float> read;
    for (const size_t i : dense_of_[partition]) {
      request.dense_lr.push_back(dense->lr[i]);
      all.insert(all.end(), dense->gradients[i].begin(), dense->gradients[i].end());
      if (!dense->read.empty()) {
        read.insert(read.end(), dense->read[i].begin(), dense->read[i].end());
      }
    }
    request.dense = rpc::Memory::own(std::move(all));
    request.dense_seen = dense->seen.empty() ? kSawAll : dense->seen[partition];
    request.dense_read = rpc::Memory::own(std::move(read));
  }
  (void)ask_all<void>("ps/push", requests);
  pushes_ += upkeep.is_any() ? 0 : 1;
  upkeeps_ = upkeep.is_any() ? upkeeps_ + 1 : 0;
}

void TableClient::add_rows(const Gradients& all, std::vector<PushRequest>& requests) {
  const size_t dim = tables_.sparse[all.table].dim;
  ARGOSY_CHECK((all.read.empty() || all.read.size() == all.ids.size() * dim) &&
                   (all.seen.empty() || all.seen.size() == requests.size()),
               "ps.client",
               "expected what was read of {} ids by {} weights in {} partitions, got {} and {}",
               all.ids.size(),
               dim,
               requests.size(),
               all.read.size(),
               all.seen.size());
  std::vector<float*> sums;
  std::vector<rpc::Draft> drafts;
  for (int partition = 0; partition < servers(); ++partition) {
    requests[static_cast<size_t>(partition)].rows.push_back(part_of(all, partition, sums, drafts));
  }
  all.ids.gather(all.gradients, dim, sums);
  const std::vector<float> shows = by_id(all.ids, all.shows);
  const std::vector<float> clicks = by_id(all.ids, all.clicks);
  const std::vector<float> read = read_by_id(all.ids, all.read, dim);
  for (int partition = 0; partition < servers(); ++partition) {
    const auto begin = static_cast<ptrdiff_t>(all.ids.begin(shards(partition).first));
    const auto end = static_cast<ptrdiff_t>(all.ids.begin(shards(partition).last));
    const auto here = [&](const std::vector<float>& numbers, size_t width) {
      const auto floats = static_cast<ptrdiff_t>(width);
      return numbers.empty() ? rpc::Memory()
                             : rpc::Memory::own(std::vector<float>(numbers.begin() + begin * floats,
                                                                   numbers.begin() + end * floats));
    };
    RowsPushed& part = requests[static_cast<size_t>(partition)].rows.back();
    part.gradients = std::move(drafts[static_cast<size_t>(partition)]).finish();
    part.shows = here(shows, 1);
    part.clicks = here(clicks, 1);
    part.read = here(read, dim);
  }
}

std::vector<TableStat> TableClient::stats() {
  std::vector<TableStat> all(tables_.sparse.size());
  for (size_t i = 0; i < all.size(); ++i) {
    all[i].name = tables_.sparse[i].name;
  }
  for (const std::string& server : living_servers()) {
    const auto theirs = agent_.call<std::vector<TableStat>>({server, options_.timeout}, "ps/stats");
    for (size_t i = 0; i < std::min(all.size(), theirs.size()); ++i) {
      all[i].add(theirs[i]);
    }
  }
  return all;
}

std::vector<ServerStat> TableClient::server_stats() {
  constexpr std::chrono::seconds kPatience{5};
  std::vector<std::optional<rpc::Future<ServerStat>>> calls(options_.servers.size());
  std::vector<ServerStat> all;
  for (size_t i = 0; i < calls.size(); ++i) {
    const std::string& server = options_.servers[i];
    all.push_back({.name = server});
    try {
      if (agent_.fate_of(server).empty()) {
        calls[i] = agent_.call_async<ServerStat>({server, kPatience}, "ps/stat_of_all");
      }
    } catch (const rpc::CallError&) {  // it is not there at this moment
    }
  }
  for (size_t i = 0; i < calls.size(); ++i) {
    try {
      if (calls[i].has_value()) {
        all[i] = calls[i]->wait();
      }
    } catch (const rpc::CallError&) {  // it ended meanwhile
    }
  }
  return all;
}

std::vector<std::string> TableClient::living_servers() {
  std::vector<std::string> living;
  std::ranges::copy_if(options_.servers, std::back_inserter(living), [&](const auto& server) {
    return agent_.fate_of(server).empty();
  });
  return living;
}

/// The store has it for a server that does not hear it.
void TableClient::stop() {
  views_.end();
  for (const std::string& server : living_servers()) {
    try {
      agent_.call({server, options_.timeout}, "ps/stop");
    } catch (const rpc::CallError& error) {
      log::warn("[ps.client] {}", error.what());
    }
  }
}

}  // namespace argosy::ps
