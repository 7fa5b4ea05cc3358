#include "argosy/ps/table_server.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "argosy/base/check.h"
#include "argosy/base/error.h"
#include "argosy/base/log.h"
#include "argosy/base/thread_pool.h"

namespace argosy::ps {
namespace {

/// How often a server looks whether another one is gone, if no worker tells it.
constexpr std::chrono::milliseconds kServerLookPeriod{100};

}  // namespace

TableServer::TableServer(const TableSet& tables, TableServerOptions options)
    : tables_(tables), options_(std::move(options)) {
  const auto servers = static_cast<int>(options_.servers.size());
  ARGOSY_CHECK(servers >= 1 && servers <= kShards && options_.server >= 0 &&
                   options_.server < servers && options_.workers >= 1,
               "ps.server",
               "expected 1 to {} servers, one of them this, and 1 worker or more, got server {} of "
               "{} with {} workers",
               kShards,
               options_.server,
               servers,
               options_.workers);
  const auto threads = std::make_shared<const ShardThreads>(options_.threads);
  const std::shared_ptr<RowSpill> spill =
      options_.memory_limit == 0
          ? nullptr
          : std::make_shared<RowSpill>(SpillOptions{.memory_limit = options_.memory_limit,
                                                    .directory = options_.spill_directory});
  for (int number = 0; number < servers; ++number) {
    replicas_.push_back(std::make_unique<Replica>(
        tables_,
        PartitionOptions{.number = number,
                         .count = servers,
                         .workers = options_.workers,
                         .mode = options_.mode,
                         .staleness = options_.staleness,
                         .late = options_.late,
                         .record = options_.record,
                         .replay = options_.replay,
                         .threads = threads,
                         .spill = spill},
        options_.server,
        View{.epoch = 1,
             .primary = number,
             .backup = keeps_backups() && servers > 1 ? (number + 1) % servers : -1}));
  }
}

TableServer::~TableServer() = default;

Replica& TableServer::replica(uint32_t partition) {
  (void)links();
  ARGOSY_CHECK(partition < replicas_.size(),
               "ps.request",
               "there is no partition {}: there are {}",
               partition,
               replicas_.size());
  return *replicas_[partition];
}

void TableServer::serve(rpc::Functions& functions) {
  functions.serve("ps/pull", [this](rpc::CallContext& call, const PullRequest& request) {
    return replica(request.partition).pull(call, request);
  });
  functions.serve("ps/push", [this](const PushRequest& request) {
    replica(request.partition).push(request, links());
    pushes_.fetch_add(1, std::memory_order_relaxed);
  });
  // In the thread that received it: the pool may be full of pushes that wait for this one, at the
  // other server.
  functions.serve("ps/replicate",
                  [this](const ReplicaPush& push) { replica(push.push.partition).replicate(push); },
                  {.quick = true});
  functions.serve("ps/join",
                  [this](const JoinRequest& request) { replica(request.partition).join(request); });
  functions.serve("ps/install",
                  [this](const ReplicaShard& shard) { replica(shard.partition).install(shard); });
  functions.serve("ps/complete",
                  [this](const ReplicaState& state) { replica(state.partition).complete(state); });
  functions.serve("ps/progress", [this](const ProgressRequest& request) {
    WorkerProgress progress = replica(request.partition).progress_of(request.worker);
    progress.terms = options_.terms;
    return progress;
  });
  functions.serve("ps/take_over", [this](uint32_t partition, uint64_t epoch) {
    return replica(partition).take_over(epoch, links()).epoch;
  });
  functions.serve("ps/begin", [this](uint32_t partition, const rpc::Memory& dense) {
    replica(partition).begin(dense.as<float>());
  });
  functions.serve("ps/save", [this](const SaveRequest& request) {
    replica(request.partition).begin_save(request);
  });
  functions.serve("ps/saved", [this](uint32_t partition) { return replica(partition).end_save(); });
  functions.serve("ps/load", [this](const FolderRequest& request) {
    replica(request.partition).load(TableFiles(request.folder, tables_));
  });
  functions.serve("ps/tables", [this] { return tables_.lines(); });
  functions.serve("ps/stats", [this] { return stats(); });
  functions.serve("ps/stat_of_all", [this] { return stat_of_all(); });
  functions.serve("ps/stop", [this] {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
  });
}

const ServerLinks& TableServer::links() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return running_ || stop_; });
  if (!running_) {
    throw NotPrimaryError(fmt::format("server {} ends before it has begun", options_.server));
  }
  return links_;
}

bool TableServer::run(rpc::Agent& agent,
                      const Deadline& deadline,
                      const std::function<void()>& started) {
  views_ = std::make_unique<Views>(agent.store());
  try {
    agent.rejoined() ? give_up_roles() : begin_views();
  } catch (...) {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;  // who waits for this server hears it
    }
    changed_.notify_all();
    throw;
  }
  {
    const std::lock_guard lock(mutex_);
    links_ = {.agent = &agent,
              .views = views_.get(),
              .servers = options_.servers,
              .workers = options_.worker_names,
              .self = options_.server};
    running_ = true;
  }
  changed_.notify_all();
  if (started) {
    started();
  }
  std::unique_lock lock(mutex_);
  while (!stop_ && !deadline.expired()) {
    if (!changed_.wait_for(lock, kServerLookPeriod, [&] { return stop_; })) {
      lock.unlock();
      look_around();
      lock.lock();
    }
  }
  lock.unlock();
  for (const std::unique_ptr<Replica>& replica : replicas_) {
    replica->stop_copying();
  }
  lock.lock();
  return stop_;
}

void TableServer::begin_views() {
  for (size_t number = 0; number < replicas_.size(); ++number) {
    views_->begin(static_cast<int>(number), replicas_[number]->view());
    replicas_[number]->open_orders();
  }
}

/// The others may not have noticed that this server was gone. Without its roles it may get new
/// ones.
void TableServer::give_up_roles() {
  for (size_t number = 0; number < replicas_.size(); ++number) {
    replicas_[number]->forget();
    const auto partition = static_cast<int>(number);
    for (View now = views_->get(partition);
         now.primary == options_.server || now.backup == options_.server;
         now = views_->get(partition)) {
      const int other = now.primary == options_.server ? now.backup : now.primary;
      if (other < 0) {
        throw RendezvousError(
            "ps.lost",
            fmt::format("server {} was started again, and what it had of partition {} nobody else "
                        "has. Start the job again from a checkpoint",
                        options_.server,
                        partition));
      }
      if (views_->change(partition, now, {.epoch = now.epoch + 1, .primary = other})) {
        log::warn("[ps.view] server {} was started again: server {} has partition {} now",
                  options_.server,
                  other,
                  partition);
      }
    }
  }
}

void TableServer::look_around() {
  try {
    if (views_->is_over()) {  // a worker has said so, and this server did not hear it
      const std::lock_guard lock(mutex_);
      stop_ = true;
      return;
    }
  } catch (const std::exception& error) {
    log::warn("[ps.server] {}", error.what());
  }
  for (const std::unique_ptr<Replica>& replica : replicas_) {
    try {
      if (!replica->has_a_part()) {
        continue;
      }
      replica->look(links_);
      replica->excuse_the_dead(links_);
      if (keeps_backups()) {
        replica->seek_backup(links_);
      }
    } catch (const std::exception& error) {
      log::warn("[ps.server] {}", error.what());
    }
  }
}

std::vector<TableStat> TableServer::stats() const {
  std::vector<TableStat> all(tables_.sparse.size());
  for (size_t table = 0; table < all.size(); ++table) {
    all[table].name = tables_.sparse[table].name;
  }
  for (const std::unique_ptr<Replica>& replica : replicas_) {
    if (!replica->is_primary()) {
      continue;
    }
    const std::vector<TableStat> here = replica->stats();
    for (size_t table = 0; table < all.size(); ++table) {
      all[table].add(here[table]);
    }
  }
  return all;
}

ServerStat TableServer::stat_of_all() const {
  ServerStat all{.name = options_.servers[static_cast<size_t>(options_.server)],
                 .lives = true,
                 .tables = stats(),
                 .pushes = pushes_.load(std::memory_order_relaxed)};
  for (const std::unique_ptr<Replica>& replica : replicas_) {
    if (replica->is_primary()) {
      all.apart = std::max(all.apart, replica->workers_apart());
    } else if (replica->has_a_part()) {
      const std::vector<TableStat> here = replica->stats();
      for (size_t table = 0; table < all.tables.size(); ++table) {
        all.tables[table].bytes += here[table].bytes;
      }
    }
  }
  return all;
}

}  // namespace argosy::ps
