#include "argosy/ps/partition.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <numeric>
#include <utility>

#include "argosy/base/check.h"
#include "argosy/ps/row_sum.h"
#include "argosy/ps/table_files.h"

namespace argosy::ps {
namespace {

/// Appends the ids of the table in that shard.
void append_ids(std::span<const RowsPushed> rows,
                uint32_t table,
                size_t shard,
                std::vector<uint64_t>& to) {
  for (const RowsPushed& one : rows) {
    if (one.table == table) {
      const auto begin = std::accumulate(
          one.counts.begin(), one.counts.begin() + static_cast<ptrdiff_t>(shard), size_t{0});
      std::ranges::copy(one.ids.as<uint64_t>().subspan(begin, one.counts[shard]),
                        std::back_inserter(to));
    }
  }
}

}  // namespace

Partition::Partition(TableSet tables, const PartitionOptions& options)
    : tables_(std::move(tables)),
      options_(options),
      threads_(options.threads != nullptr ? options.threads
                                          : std::make_shared<const ShardThreads>(1)),
      range_(shards_of(options.number, options.count)),
      spill_(options.spill == nullptr ? nullptr : std::make_shared<SpillPart>(options.spill)),
      pace_(static_cast<size_t>(options.workers)),
      steps_(static_cast<size_t>(options.workers)),
      upkeeps_(static_cast<size_t>(options.workers)),
      collected_(static_cast<size_t>(options.workers)) {
  options_.late.validate(options_.mode);
  for (const SparseOptions& table : tables_.sparse) {
    std::vector<RowTable>& shards = sparse_.emplace_back();
    for (int s = 0; s < range_.count(); ++s) {
      shards.emplace_back(table, spill_);
    }
  }
  const std::vector<int> shards = dense_shards(tables_.dense);
  for (size_t i = 0; i < shards.size(); ++i) {
    if (shards[i] < range_.first || shards[i] >= range_.last) {
      continue;
    }
    const DenseOptions& parameter = tables_.dense[i];
    dense_here_.push_back(i);
    DenseNumbers& here = dense_.emplace_back();
    here.weights = parameter.initial;
    here.state.resize(parameter.rule->state_size(parameter.initial.size()));
    parameter.rule->begin(here.state);
    dense_size_ += here.weights.size();
  }
}

bool Partition::is_fresh() const {
  return pace_.none_has_pushed();
}

void Partition::check_fresh() const {
  ARGOSY_CHECK(is_fresh(),
               "ps.request",
               "partition {} has pushes already: its values are set before the first one",
               options_.number);
}

void Partition::restore(int shard, uint32_t table, const SavedRows& rows) {
  ARGOSY_CHECK(shard >= range_.first && shard < range_.last && table < sparse_.size(),
               "ps.request",
               "partition {} has no shard {} of table {}",
               options_.number,
               shard,
               table);
  make_room();
  this->shard(table, shard).restore(rows);
}

void Partition::restore(std::span<const SavedDense> dense) {
  for (const SavedDense& one : dense) {
    const auto here = std::ranges::find(dense_here_, one.number);
    DenseNumbers* const mine = here == dense_here_.end()
                                   ? nullptr
                                   : &dense_[static_cast<size_t>(here - dense_here_.begin())];
    ARGOSY_CHECK(mine != nullptr && mine->weights.size() == one.values.weights.size() &&
                     mine->state.size() == one.values.state.size(),
                 "ps.request",
                 "dense parameter {} does not lie in partition {}, or has another size",
                 one.number,
                 options_.number);
    *mine = one.values;
  }
}

void Partition::restore(const TableFiles& saved) {
  check_fresh();
  for (int shard = range_.first; shard < range_.last; ++shard) {
    for (uint32_t table = 0; table < sparse_.size(); ++table) {
      restore(shard, table, saved.rows(table, shard));
    }
  }
  std::vector<SavedDense> dense;
  for (const size_t number : dense_here_) {
    dense.push_back({.number = number, .values = saved.dense(number)});
  }
  restore(dense);
}

PartitionState Partition::state() const {
  PartitionState state{.upkeeps = upkeeps_, .steps = steps_, .updates = updates_};
  for (size_t worker = 0; worker < collected_.size(); ++worker) {
    state.head_starts.push_back(pace_.head_start_of(worker));
    // restore() takes those that are collected as pushes.
    state.pushes.push_back(pace_.pushes_of(worker));
    for (const PushRequest& request : collected_[worker]) {
      state.pushes.back() -= request.is_upkeep() ? 0 : 1;
      state.steps[worker] -= request.steps;
    }
    if (!collected_[worker].empty()) {
      state.upkeeps[worker] = collected_[worker].front().upkeeps;
    }
    std::ranges::copy(collected_[worker], std::back_inserter(state.collected));
  }
  return state;
}

void Partition::restore(const PartitionState& state) {
  ARGOSY_CHECK(state.pushes.size() == pace_.size() && state.upkeeps.size() == pace_.size() &&
                   state.steps.size() == pace_.size() && state.head_starts.size() == pace_.size(),
               "ps.request",
               "expected what {} workers have pushed, got {}",
               pace_.size(),
               state.pushes.size());
  for (size_t worker = 0; worker < pace_.size(); ++worker) {
    pace_.set(worker, state.pushes[worker]);
    pace_.give_head_start(worker, state.head_starts[worker]);
  }
  upkeeps_ = state.upkeeps;
  steps_ = state.steps;
  updates_ = state.updates;
  for (const PushRequest& request : state.collected) {
    push(request);
  }
}

void Partition::set_dense(std::span<const float> values) {
  check_fresh();
  ARGOSY_CHECK(values.size() == dense_size_,
               "ps.request",
               "expected {} numbers for the dense parameters, got {}",
               dense_size_,
               values.size());
  for (DenseNumbers& parameter : dense_) {
    std::ranges::copy(values.first(parameter.weights.size()), parameter.weights.begin());
    values = values.subspan(parameter.weights.size());
  }
}

RowTable& Partition::shard(uint32_t table, int shard) {
  return sparse_[table][static_cast<size_t>(shard - range_.first)];
}

TableStat Partition::stat(uint32_t table) const {
  TableStat all{.name = tables_.sparse[table].name};
  for (const RowTable& shard : sparse_[table]) {
    all.add({.rows = shard.rows(),
             .bytes = shard.bytes(),
             .disk_rows = shard.rows_on_disk(),
             .disk_bytes = shard.disk_bytes()});
  }
  return all;
}

/// Of each table, in proportion to what it has in memory.
void Partition::make_room() {
  if (spill_ == nullptr) {
    return;
  }
  const double share = spill_->excess();
  for (std::vector<RowTable>& shards : sparse_) {
    for (RowTable& shard : shards) {
      shard.make_room(share);
    }
  }
}

void Partition::prepare(const PushRequest& request) {
  if (spill_ == nullptr || request.worker >= pace_.size() || has(request) ||
      request.number != pace_.pushes_of(request.worker)) {
    return;  // push() says what is wrong
  }
  check(request);
  std::vector<const PushRequest*> applied{&request};
  for (size_t worker = 0; options_.mode == UpdateMode::kSync && worker < pace_.size(); ++worker) {
    if ((worker == request.worker) != collected_[worker].empty()) {
      return;  // the step is not whole yet
    }
    for (const PushRequest& one : collected_[worker]) {
      applied.push_back(&one);
    }
  }
  make_room();
  const bool shrinks =
      std::ranges::any_of(applied, [](const PushRequest* one) { return one->upkeep.shrink; });
  constexpr size_t kMany = 1'000'000;  // reads of a disk are worth all threads
  for (uint32_t table = 0; table < sparse_.size(); ++table) {
    threads_->for_each(sparse_[table].size(), kMany, [&](size_t s) {
      std::vector<uint64_t> ids;
      for (const PushRequest* const one : applied) {
        append_ids(one->rows, table, s, ids);
      }
      sparse_[table][s].bring_back(ids);
      if (shrinks && tables_.sparse[table].statistics) {
        sparse_[table][s].plan_shrink();
      }
    });
  }
}

template <typename Rows>
void Partition::check_ids(const Rows& rows) const {
  ARGOSY_CHECK(rows.table < tables_.sparse.size(),
               "ps.request",
               "there is no table {}: there are {}",
               rows.table,
               tables_.sparse.size());
  size_t count = 0;
  for (const uint32_t in_shard : rows.counts) {
    count += in_shard;
  }
  const std::span<const uint64_t> ids = rows.ids.template as<uint64_t>();
  ARGOSY_CHECK(rows.counts.size() == static_cast<size_t>(range_.count()) && count == ids.size(),
               "ps.request",
               "table \"{}\": {} ids in {} shards were said, and {} came for {}",
               tables_.sparse[rows.table].name,
               count,
               rows.counts.size(),
               ids.size(),
               range_.count());
  size_t at = 0;
  for (size_t s = 0; s < rows.counts.size(); ++s) {
    for (const size_t end = at + rows.counts[s]; at < end; ++at) {
      ARGOSY_CHECK(shard_of(ids[at]) == range_.first + static_cast<int>(s),
                   "ps.request",
                   "table \"{}\": id {} is not of shard {}",
                   tables_.sparse[rows.table].name,
                   ids[at],
                   range_.first + static_cast<int>(s));
    }
  }
}

void Partition::check(const PushRequest& request) const {
  for (const RowsPushed& rows : request.rows) {
    check_ids(rows);
    ARGOSY_CHECK(std::ranges::count(request.rows, rows.table, &RowsPushed::table) == 1,
                 "ps.request",
                 "table \"{}\" has two gradients in one push: make one of both",
                 tables_.sparse[rows.table].name);
    const size_t n = rows.ids.size() / sizeof(uint64_t);
    const size_t dim = tables_.sparse[rows.table].dim;
    ARGOSY_CHECK(rows.gradients.as<float>().size() == n * dim &&
                     (rows.shows.size() == 0 || rows.shows.as<float>().size() == n) &&
                     (rows.clicks.size() == 0 || rows.clicks.as<float>().size() == n),
                 "ps.request",
                 "table \"{}\": expected gradients of [{}, {}], got {} bytes, with {} of shows and "
                 "{} of clicks",
                 tables_.sparse[rows.table].name,
                 n,
                 dim,
                 rows.gradients.size(),
                 rows.shows.size(),
                 rows.clicks.size());
  }
  ARGOSY_CHECK(request.dense_lr.empty() ? request.dense.size() == 0
                                        : request.dense_lr.size() == dense_.size() &&
                                              request.dense.as<float>().size() == dense_size_,
               "ps.request",
               "expected {} dense parameters of {} numbers together, got {} and {} bytes",
               dense_.size(),
               dense_size_,
               request.dense_lr.size(),
               request.dense.size());
  check_read(request);
}

/// A worker that compensates delays says what it has read.
void Partition::check_read(const PushRequest& request) const {
  const auto check_one = [&](std::string_view name, size_t numbers, const rpc::Memory& read) {
    const size_t expected = options_.late.compensation > 0 ? numbers : 0;
    ARGOSY_CHECK(read.size() == 0 || read.size() == numbers * sizeof(float),
                 "ps.request",
                 "{}: expected {} numbers that the worker has read, got {} bytes",
                 name,
                 numbers,
                 read.size());
    ARGOSY_CHECK(read.size() >= expected * sizeof(float),
                 "ps.request",
                 "{}: the servers compensate delays, and the push does not say what its worker has "
                 "read: set TableClient::Gradients::read, or delay_compensation = 0",
                 name);
  };
  for (const RowsPushed& rows : request.rows) {
    check_one(tables_.sparse[rows.table].name, rows.gradients.as<float>().size(), rows.read);
  }
  check_one("dense parameters", request.dense.as<float>().size(), request.dense_read);
}

bool Partition::has(const PushRequest& request) const {
  const uint64_t pushes = pushes_of(request.worker);
  return request.number < pushes || (request.is_upkeep() && request.number == pushes &&
                                     request.upkeeps < upkeeps_of(request.worker));
}

void Partition::push(const PushRequest& request) {
  ARGOSY_CHECK(request.worker < pace_.size(),
               "ps.request",
               "there is no worker {}: there are {}",
               request.worker,
               pace_.size());
  if (has(request)) {
    return;
  }
  ARGOSY_CHECK(request.number == pushes_of(request.worker),
               "ps.request",
               "worker {}: push {} came before push {}",
               request.worker,
               request.number,
               pushes_of(request.worker));
  check(request);
  if (options_.mode == UpdateMode::kSync) {
    constexpr size_t kMost = 4;  // two pushes, and upkeep after each
    ARGOSY_CHECK(collected_[request.worker].size() < kMost,
                 "ps.request",
                 "worker {} does not wait for the others: {} of its pushes wait for theirs",
                 request.worker,
                 kMost);
    collected_[request.worker].push_back(request);
    count(request);
    finish_steps();
    return;
  }
  count(request);
  if (request.is_upkeep()) {
    keep_up(request.upkeep);
    return;
  }
  ++updates_;
  if (options_.mode == UpdateMode::kGeo) {
    for (const RowsPushed& rows : request.rows) {
      add_rows(rows);
    }
    add_dense(request);
  } else {
    const PushRequest timely = options_.late.any() ? made_timely(request) : request;
    const PushRequest* const one = &timely;
    apply({&one, 1});
  }
}

void Partition::count(const PushRequest& request) {
  if (request.is_upkeep()) {
    ++upkeeps_[request.worker];
    return;
  }
  upkeeps_[request.worker] = 0;
  pace_.count(request.worker);
  pace_.give_head_start(request.worker, request.head_start);
  steps_[request.worker] += request.steps;
}

uint64_t Partition::steps_of_others(uint32_t worker) const {
  return std::accumulate(steps_.begin(), steps_.end(), uint64_t{0}) - steps_of(worker);
}

/// A late push becomes one that can be applied like any other.
PushRequest Partition::made_timely(PushRequest push) const {
  const uint64_t others = steps_of_others(push.worker);
  const auto rate = [&](double lr, uint64_t seen) {
    const uint64_t staleness = others > seen ? others - seen : 0;
    return options_.late.scales_rates ? rate_of_late(lr, staleness) : lr;
  };
  const auto compensated = [&](const rpc::Memory& gradient, const WeightChange& weights) {
    const std::span<const float> given = gradient.as<float>();
    std::vector<float> numbers(given.begin(), given.end());
    compensate(numbers, weights, options_.late.compensation);
    return rpc::Memory::own(std::move(numbers));
  };
  for (RowsPushed& rows : push.rows) {
    rows.lr = rate(rows.lr, rows.seen);
    if (options_.late.compensation > 0) {
      rows.gradients =
          compensated(rows.gradients, {.read = rows.read.as<float>(), .now = weights_of(rows)});
    }
  }
  for (double& lr : push.dense_lr) {
    lr = rate(lr, push.dense_seen);
  }
  if (options_.late.compensation > 0 && push.dense.size() > 0) {
    std::vector<float> now;
    for (const DenseNumbers& parameter : dense_) {
      now.insert(now.end(), parameter.weights.begin(), parameter.weights.end());
    }
    push.dense = compensated(push.dense, {.read = push.dense_read.as<float>(), .now = now});
  }
  return push;
}

/// As a pull would read them.
std::vector<float> Partition::weights_of(const RowsPushed& rows) const {
  const RowsWanted same{.table = rows.table, .counts = rows.counts, .ids = rows.ids};
  std::vector<float> weights(rows.gradients.as<float>().size());
  pull({.rows = {same}}, weights);
  return weights;
}

/// Before the day changes, so that a shrink is the last of its day.
void Partition::keep_up(const Upkeep& upkeep) {
  for (std::vector<RowTable>& shards : sparse_) {
    for (RowTable& shard : shards) {
      if (upkeep.shrink && shard.options().statistics) {
        (void)shard.shrink();
      }
      if (upkeep.day >= 0) {
        shard.set_day(upkeep.day);
      }
    }
  }
}

void Partition::finish_steps() {
  while (std::ranges::none_of(collected_, [](const auto& pushes) { return pushes.empty(); })) {
    if (finish_upkeep()) {
      continue;
    }
    std::vector<const PushRequest*> all;
    for (const std::deque<PushRequest>& of_worker : collected_) {
      all.push_back(&of_worker.front());
    }
    apply(all);
    ++updates_;
    for (std::deque<PushRequest>& of_worker : collected_) {
      of_worker.pop_front();
    }
  }
}

/// What is next of some workers goes before the step. Of a worker that was started again and does
/// not repeat it there is none. Returns false when nobody has any.
bool Partition::finish_upkeep() {
  Upkeep of_all;
  for (std::deque<PushRequest>& of_worker : collected_) {
    if (of_worker.front().is_upkeep()) {
      const Upkeep& one = of_worker.front().upkeep;
      of_all.shrink = of_all.shrink || one.shrink;
      of_all.day = std::max(of_all.day, one.day);
      of_worker.pop_front();
    }
  }
  keep_up(of_all);
  return of_all.is_any();
}

void Partition::apply(std::span<const PushRequest* const> of_workers) {
  for (uint32_t table = 0; table < tables_.sparse.size(); ++table) {
    std::vector<const RowsPushed*> parts(of_workers.size());
    bool any = false;
    for (size_t w = 0; w < of_workers.size(); ++w) {
      for (const RowsPushed& rows : of_workers[w]->rows) {
        if (rows.table == table) {
          parts[w] = &rows;
          any = true;
        }
      }
    }
    if (any) {
      apply_rows(table, parts);
    }
  }
  apply_dense(of_workers);
}

/// The average over the workers, where those that have no gradient of a row count as zeros.
void Partition::apply_rows(uint32_t table, std::span<const RowsPushed* const> of_workers) {
  size_t ids = 0;
  for (const RowsPushed* const rows : of_workers) {
    ids += rows == nullptr ? 0 : rows->ids.size() / sizeof(uint64_t);
  }
  threads_->for_each(sparse_[table].size(), ids, [&](size_t s) {
    const RowSum sum(of_workers, s, tables_.sparse[table].dim);
    sparse_[table][s].push(sum.push());
  });
}

template <typename Rows, typename Work>
void Partition::for_each_shard(const Rows& rows, const Work& work) const {
  std::vector<size_t> begins(rows.counts.size());
  std::exclusive_scan(rows.counts.begin(), rows.counts.end(), begins.begin(), size_t{0});
  threads_->for_each(begins.size(), rows.ids.size() / sizeof(uint64_t), [&](size_t s) {
    work(s, begins[s], rows.counts[s]);
  });
}

void Partition::apply_dense(std::span<const PushRequest* const> of_workers) {
  std::vector<const float*> gradients;
  for (const PushRequest* const one : of_workers) {
    gradients.push_back(one->dense_lr.empty() ? nullptr : one->dense.as<float>().data());
  }
  const auto first =
      std::ranges::find_if(of_workers, [](const auto* one) { return !one->dense_lr.empty(); });
  if (first == of_workers.end()) {
    return;
  }
  std::vector<float> average(dense_size_);
  average_of(gradients, average);
  size_t at = 0;
  for (size_t i = 0; i < dense_.size(); ++i) {
    const RowUpdate update{.weights = dense_[i].weights.data(),
                           .state = dense_[i].state.data(),
                           .gradient = &average[at]};
    const size_t size = dense_[i].weights.size();
    tables_.dense[dense_here_[i]].rule->update({&update, 1}, size, (*first)->dense_lr[i]);
    at += size;
  }
}

void Partition::add_rows(const RowsPushed& rows) {
  const size_t dim = tables_.sparse[rows.table].dim;
  const std::span<const uint64_t> ids = rows.ids.as<uint64_t>();
  const std::span<const float> differences = rows.gradients.as<float>();
  for_each_shard(rows, [&](size_t s, size_t begin, size_t count) {
    sparse_[rows.table][s].add(ids.subspan(begin, count),
                               differences.subspan(begin * dim, count * dim));
  });
}

void Partition::add_dense(const PushRequest& request) {
  const std::span<const float> differences = request.dense.as<float>();
  size_t at = 0;
  for (DenseNumbers& parameter : dense_) {
    for (float& weight : parameter.weights) {
      weight += at < differences.size() ? differences[at++] : 0.0F;
    }
  }
}

bool Partition::must_wait(const PullRequest& request) const {
  switch (options_.mode) {
    case UpdateMode::kSync:
      return updates_ < request.pushes ||
             (request.worker < collected_.size() &&
              std::ranges::any_of(collected_[request.worker], &PushRequest::is_upkeep));
    case UpdateMode::kHalfAsync:
      return request.pushes > options_.staleness &&
             pace_.slowest() < request.pushes - options_.staleness;
    case UpdateMode::kAsync:
    case UpdateMode::kGeo:
      return false;
  }
  return false;
}

size_t Partition::size_of(const PullRequest& request) const {
  size_t size = request.dense ? dense_size_ : 0;
  for (const RowsWanted& rows : request.rows) {
    check_ids(rows);
    size += rows.ids.size() / sizeof(uint64_t) * tables_.sparse[rows.table].dim;
  }
  return size;
}

void Partition::pull(const PullRequest& request, std::span<float> out) const {
  size_t to = 0;
  for (const RowsWanted& rows : request.rows) {
    const size_t dim = tables_.sparse[rows.table].dim;
    const std::span<const uint64_t> ids = rows.ids.as<uint64_t>();
    for_each_shard(rows, [&](size_t s, size_t begin, size_t count) {
      sparse_[rows.table][s].pull(ids.subspan(begin, count),
                                  out.subspan(to + begin * dim, count * dim));
    });
    to += ids.size() * dim;
  }
  if (request.dense) {
    for (const DenseNumbers& parameter : dense_) {
      std::ranges::copy(parameter.weights, out.subspan(to).begin());
      to += parameter.weights.size();
    }
  }
}

}  // namespace argosy::ps
