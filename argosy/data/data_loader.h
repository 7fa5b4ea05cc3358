#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "argosy/data/batch_sampler.h"
#include "argosy/data/collate.h"
#include "argosy/data/dataset.h"
#include "argosy/data/loader_options.h"
#include "argosy/data/ordered_prefetch.h"
#include "argosy/data/subset.h"
#include "argosy/data/tensor_pool.h"
#include "argosy/data/worker_scope.h"

namespace argosy::data {

namespace detail {

/// Never called: its type is the loader's batch.
template <typename D, typename Collate>
auto batch_of(const D& dataset, const Collate& collate, const BatchContext& context) {
  if constexpr (GetsBatch<D> && std::is_same_v<Collate, DefaultCollate>) {
    return dataset.get_batch(context.indices, context);
  } else {
    static_assert(GetsSample<D> || GetsRandomSample<D>,
                  "a collate function needs get(); this data set has only get_batch()");
    using Sample = std::remove_cvref_t<decltype(get_sample(dataset, 0, context))>;
    return call_collate(collate, std::vector<Sample>(), context);
  }
}

}  // namespace detail

/// Walks along a data set in batches, made ahead of time by worker threads.
///
///     data::DataLoader loader(train, {.batch_size = 64, .shuffle = true, .num_workers = 2});
///     for (int epoch = 0; epoch < 5; ++epoch)
///       for (auto& [images, labels] : loader) ...
///
/// The data set: any type with size() and get(index), get(index, Random&) or get_batch(); see
/// dataset.h. A named one is referred to and must outlive the loader; a temporary is moved in.
/// Workers are threads and call it at once, through const.
/// Order and content do not depend on the number of workers: results come in the sampler's order,
/// and random streams are keyed by (seed, epoch, index). Each loop is the next epoch by itself,
/// after a break too; set_epoch() chooses one. A batch's memory is used again only when no tensor
/// refers to it any more, so batches may be kept.
/// Errors: what get() throws comes out of the loop as a DataError with the sample's index, in the
/// place of its batch, and ends the loop; the position still points at that batch. UsageError for a
/// second loop while one is running, and for a sampler that was made for another data set.
/// Threads: the workers start with the first loop and are joined by the destructor; breaking out of
/// a loop waits for the samples in the making, no longer. The loader belongs to one thread.
template <Dataset D, typename Collate = DefaultCollate>
class DataLoader final {
  struct Core;
  class Session;

 public:
  /// What the loop yields: what get_batch() returns, or what the collate function makes of samples.
  using Batch = decltype(detail::batch_of(std::declval<const D&>(),
                                          std::declval<const Collate&>(),
                                          std::declval<const BatchContext&>()));
  class Iterator;

  /// Batches as the options say. `collate`: f(samples) or f(samples, context); see DefaultCollate.
  explicit DataLoader(DatasetRef<D> dataset,
                      const DataLoaderOptions& options = {},
                      Collate collate = {})
      : DataLoader(Tag(),
                   dataset,
                   detail::make_batch_sampler(dataset->size(), options),
                   options,
                   std::move(collate)) {}

  /// Batches of batch_size in the order of `sampler`.
  DataLoader(DatasetRef<D> dataset,
             Sampler sampler,
             const DataLoaderOptions& options = {},
             Collate collate = {})
      : DataLoader(Tag(),
                   std::move(dataset),
                   detail::make_batch_sampler(std::move(sampler), options),
                   options,
                   std::move(collate)) {}

  /// The batches of `sampler`, which also decides batch_size, shuffle and drop_last.
  DataLoader(DatasetRef<D> dataset,
             BatchSampler sampler,
             const DataLoaderOptions& options = {},
             Collate collate = {})
      : DataLoader(Tag(),
                   std::move(dataset),
                   detail::check_batch_sampler(std::move(sampler), options),
                   options,
                   std::move(collate)) {}

  ~DataLoader() = default;
  DataLoader(DataLoader&&) noexcept = default;
  DataLoader& operator=(DataLoader&&) noexcept = default;
  DataLoader(const DataLoader&) = delete;
  DataLoader& operator=(const DataLoader&) = delete;

  /// Batches per epoch.
  [[nodiscard]] int64_t size() const { return core_->sampler.size(); }
  [[nodiscard]] const D& dataset() const { return *core_->dataset; }
  [[nodiscard]] const DataLoaderOptions& options() const { return core_->options; }
  [[nodiscard]] TensorPool::Stats memory() const { return core_->pool.stats(); }

  /// The epoch that the next loop takes.
  [[nodiscard]] int64_t epoch() const { return core_->sampler.epoch(); }
  void set_epoch(int64_t epoch) { core_->sampler.set_epoch(epoch); }

  /// Where a resumed run goes on. Counts what the loop has received (the batch in hand included),
  /// not what was made ahead of time; after a break it is the place of the break.
  /// Cost: the first call in an epoch makes the epoch's order once more.
  [[nodiscard]] LoaderState state() const { return core_->state(); }

  /// The next loop yields the rest of the saved epoch, with the same bits.
  /// Errors: UsageError when the state is of a data set of another size, or of other batches:
  /// another seed, shuffle, batch size, rank or number of ranks.
  void load_state(const LoaderState& state) {
    detail::check_state(state, core_->state_of({state.epoch, state.position}));
    core_->sampler.load_state({state.epoch, state.position});
  }

  /// Starts the next epoch. Blocks until the first batch is there.
  [[nodiscard]] Iterator begin() {
    if (const auto running = core_->running.lock(); running != nullptr && running->has_batch()) {
      detail::throw_already_iterating();
    }
    auto session = std::make_shared<Session>(core_);
    core_->running = session;
    session->advance();
    return Iterator(std::move(session));
  }
  [[nodiscard]] static std::default_sentinel_t end() { return {}; }

 private:
  struct Tag {};
  DataLoader(Tag,
             DatasetRef<D> dataset,
             BatchSampler sampler,
             const DataLoaderOptions& options,
             Collate collate)
      : core_(std::make_shared<Core>(
            std::move(dataset), std::move(sampler), options, std::move(collate))) {}

  std::shared_ptr<Core> core_;
};

/// Moves along one epoch; `*it` is the batch at hand, valid until ++. Copies share the place.
template <Dataset D, typename Collate>
class DataLoader<D, Collate>::Iterator final {
 public:
  using value_type = Batch;
  using difference_type = std::ptrdiff_t;
  using iterator_category = std::input_iterator_tag;

  Batch& operator*() const { return session_->batch(); }
  Batch* operator->() const { return &session_->batch(); }
  Iterator& operator++() {
    session_->advance();
    return *this;
  }
  void operator++(int) { session_->advance(); }
  friend bool operator==(const Iterator& it, std::default_sentinel_t) {
    return !it.session_->has_batch();
  }

 private:
  friend class DataLoader;
  explicit Iterator(std::shared_ptr<Session> session) : session_(std::move(session)) {}
  std::shared_ptr<Session> session_;
};

/// What the loader and a running loop share. The workers live in it.
template <Dataset D, typename Collate>
struct DataLoader<D, Collate>::Core {
  Core(DatasetRef<D> set, BatchSampler batches, const DataLoaderOptions& opts, Collate function)
      : dataset(std::move(set)),
        sampler(std::move(batches)),
        options(opts),
        collate(std::move(function)),
        // Four tensors to a batch for all that can be in flight, in the loop's hand and just freed.
        pool({.keep = 4 * (2 + static_cast<size_t>(detail::prefetch_options(opts).depth))}),
        prefetch(detail::prefetch_options(opts)) {}

  [[nodiscard]] LoaderState state() { return state_of(sampler.state()); }

  LoaderState state_of(const SamplerState& at) {
    if (order.epoch != at.epoch && at.epoch >= 0) {
      order = {at.epoch, detail::digest(sampler.plan(at.epoch))};
    }
    return {.epoch = at.epoch,
            .position = at.position,
            .seed = options.seed,
            .batches = sampler.size(),
            .samples = dataset->size(),
            .order = order.digest};
  }

  /// On a worker, or on the loop's thread when there is none.
  Batch make(const BatchPlan& plan, int64_t epoch, int64_t number, const std::atomic<bool>& stop) {
    const WorkerScope scope;
    const BatchContext context{plan[number], options.seed, epoch, &pool, &stop};
    if constexpr (GetsBatch<D> && std::is_same_v<Collate, DefaultCollate>) {
      try {
        return dataset->get_batch(context.indices, context);
      } catch (...) {
        const auto keys = keys_of(context.indices);
        detail::rethrow_as_data_error({"get_batch()", keys, epoch, number});
      }
    } else {
      auto samples = get_samples(context, epoch, number);
      const auto keys = keys_of(context.indices);
      BatchContext named = context;  // what collate says about a sample, it says by its key
      named.indices = keys;
      try {
        return call_collate(collate, samples, named);
      } catch (...) {
        detail::rethrow_as_data_error({"collate", keys, epoch, number});
      }
    }
  }

  /// Samples as messages name them: a Subset's by their place in the whole set.
  [[nodiscard]] std::vector<int64_t> keys_of(std::span<const int64_t> indices) const {
    std::vector<int64_t> keys;
    keys.reserve(indices.size());
    for (const int64_t index : indices) {
      keys.push_back(key_of(*dataset, index));
    }
    return keys;
  }

  auto get_samples(const BatchContext& context, int64_t epoch, int64_t number) {
    using Sample = std::remove_cvref_t<decltype(get_sample(*dataset, 0, context))>;
    std::vector<Sample> samples;
    samples.reserve(context.indices.size());
    for (const int64_t index : context.indices) {
      if (context.stopped()) {
        throw InternalError(kWhere, "a dropped batch was used");  // prefetch discards it
      }
      try {
        samples.push_back(get_sample(*dataset, index, context));
      } catch (...) {
        const int64_t key = key_of(*dataset, index);
        detail::rethrow_as_data_error({"get()", {&key, 1}, epoch, number});
      }
    }
    return samples;
  }

  static constexpr const char* kWhere = "data.DataLoader";
  const DatasetRef<D> dataset;
  BatchSampler sampler;
  const DataLoaderOptions options;
  const Collate collate;
  TensorPool pool;
  struct {
    int64_t epoch = -1;
    uint64_t digest = 0;
  } order;  // of the epoch that state() was last asked about
  std::weak_ptr<Session> running;
  int64_t sessions = 0;             // begun so far
  OrderedPrefetch<Batch> prefetch;  // last: its threads use what stands above
};

/// One pass over one epoch. Ends the work ahead when it dies early.
template <Dataset D, typename Collate>
class DataLoader<D, Collate>::Session final {
 public:
  explicit Session(std::shared_ptr<Core> core)
      : core_(std::move(core)),
        plan_(std::make_shared<const BatchPlan>(core_->sampler.plan(core_->sampler.epoch()))) {
    check_indices("data.DataLoader", plan_->indices(), core_->dataset->size());
    start_ = core_->sampler.cursor().begin();
    number_ = ++core_->sessions;
    core_->prefetch.start(start_.position,
                          plan_->size(),
                          [core = core_.get(), plan = plan_, epoch = start_.epoch](
                              int64_t number, const std::atomic<bool>& stop) {
                            return core->make(*plan, epoch, number, stop);
                          });
  }
  ~Session() {
    if (number_ == core_->sessions) {  // else the work in flight is a later loop's
      core_->prefetch.cancel();
    }
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  [[nodiscard]] bool has_batch() const { return batch_.has_value(); }
  Batch& batch() { return *batch_; }

  void advance() {
    batch_.reset();  // first, so that its memory can serve the next one
    if (finished_) {
      return;
    }
    finished_ = true;  // unless a batch comes
    try {
      batch_ = core_->prefetch.next();
    } catch (...) {
      core_->prefetch.cancel();
      throw;
    }
    finished_ = !batch_.has_value();
    received_ += finished_ ? 0 : 1;
    core_->sampler.cursor().consumed(start_.epoch, start_.position + received_, plan_->size());
  }

 private:
  const std::shared_ptr<Core> core_;
  const std::shared_ptr<const BatchPlan> plan_;
  SamplerState start_;
  int64_t number_ = 0;
  int64_t received_ = 0;
  bool finished_ = false;
  std::optional<Batch> batch_;
};

template <typename D>
explicit DataLoader(D&&, const DataLoaderOptions& = {}) -> DataLoader<std::remove_cvref_t<D>>;
template <typename D, typename Collate>
DataLoader(D&&, const DataLoaderOptions&, Collate) -> DataLoader<std::remove_cvref_t<D>, Collate>;
template <typename D>
DataLoader(D&&, Sampler, const DataLoaderOptions& = {}) -> DataLoader<std::remove_cvref_t<D>>;
template <typename D, typename Collate>
DataLoader(D&&, Sampler, const DataLoaderOptions&, Collate)
    -> DataLoader<std::remove_cvref_t<D>, Collate>;
template <typename D>
DataLoader(D&&, BatchSampler, const DataLoaderOptions& = {}) -> DataLoader<std::remove_cvref_t<D>>;
template <typename D, typename Collate>
DataLoader(D&&, BatchSampler, const DataLoaderOptions&, Collate)
    -> DataLoader<std::remove_cvref_t<D>, Collate>;

}  // namespace argosy::data
