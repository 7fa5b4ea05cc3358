#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <type_traits>
#include <utility>

#include "argosy/data/batch_sampler.h"
#include "argosy/data/collate.h"
#include "argosy/data/dataset.h"
#include "argosy/data/indexed_source.h"
#include "argosy/data/iterable_dataset.h"
#include "argosy/data/loader_core.h"
#include "argosy/data/loader_options.h"
#include "argosy/data/loader_stats.h"
#include "argosy/data/stream_source.h"
#include "argosy/data/tensor_pool.h"

namespace argosy::data {

namespace detail {

template <typename D, typename Collate>
struct SourceOf {
  using Type = IndexedSource<D, Collate>;
};
template <typename D, typename Collate>
requires IterableDataset<D>
struct SourceOf<D, Collate> {
  using Type = StreamSource<D, Collate>;
};

}  // namespace detail

/// Walks along a data set in batches, made ahead of time by worker threads.
///
///     data::DataLoader loader(train, {.batch_size = 64, .shuffle = true, .num_workers = 2});
///     for (int epoch = 0; epoch < 5; ++epoch)
///       for (auto& [images, labels] : loader) ...
///
/// The data set: any type with size() and get(index), get(index, Random&) or get_batch(), see
/// dataset.h, or a stream, see iterable_dataset.h. A named one is referred to and must outlive the
/// loader; a temporary is moved in. Workers are threads and call it at once, through const.
/// Order and content do not depend on the number of workers: results come in the sampler's order,
/// and random streams are keyed by (seed, epoch, index). Each loop is the next epoch by itself,
/// after a break too; set_epoch() chooses one. A batch's memory is used again only when no tensor
/// refers to it any more, so batches may be kept.
/// Errors: what get() throws comes out of the loop as a DataError with the sample's index, in the
/// place of its batch, and ends the loop; the position still points at that batch. DataErrors of
/// samples can be passed over: DataLoaderOptions::on_error. UsageError for a second loop while one
/// is running, and for a sampler that was made for another data set.
/// Threads: the workers start with the first loop and are joined by the destructor; breaking out of
/// a loop waits for the samples in the making, no longer. The loader belongs to one thread.
template <typename D, typename Collate = DefaultCollate>
requires(Dataset<D> || IterableDataset<D>) class DataLoader final {
  using Source = typename detail::SourceOf<D, Collate>::Type;
  using Core = detail::LoaderCore<Source>;
  using Session = detail::LoaderSession<Source>;

 public:
  /// What the loop yields: what get_batch() returns, or what the collate function makes of samples.
  using Batch = typename Source::Batch;
  class Iterator;

  /// Batches as the options say; a stream is read whole. `collate`: f(samples) or f(samples,
  /// context); see DefaultCollate.
  explicit DataLoader(DatasetRef<D> dataset,
                      const DataLoaderOptions& options = {},
                      Collate collate = {}) {
    if constexpr (IterableDataset<D>) {
      make_core(std::move(dataset), StreamShards(), options, std::move(collate));
    } else {
      const int64_t samples = dataset->size();
      make_core(std::move(dataset),
                detail::make_batch_sampler(samples, options),
                options,
                std::move(collate));
    }
  }

  /// Batches of batch_size in the order of `sampler`. Errors: UsageError for a stream.
  DataLoader(DatasetRef<D> dataset,
             Sampler sampler,
             const DataLoaderOptions& options = {},
             Collate collate = {}) {
    make_core(std::move(dataset),
              detail::make_batch_sampler(std::move(sampler), options),
              options,
              std::move(collate));
  }

  /// The batches of `sampler`, which also decides batch_size, shuffle and drop_last. Errors:
  /// UsageError for a stream.
  DataLoader(DatasetRef<D> dataset,
             BatchSampler sampler,
             const DataLoaderOptions& options = {},
             Collate collate = {}) {
    make_core(std::move(dataset),
              detail::check_batch_sampler(std::move(sampler), options),
              options,
              std::move(collate));
  }

  /// This rank's part of a stream. (A template, so that {} means options.)
  template <std::same_as<StreamShards> Shards>
  requires IterableDataset<D> DataLoader(DatasetRef<D> dataset,
                                         const Shards& shards,
                                         const DataLoaderOptions& options = {},
                                         Collate collate = {}) {
    make_core(std::move(dataset), shards, options, std::move(collate));
  }

  ~DataLoader() = default;
  DataLoader(DataLoader&&) noexcept = default;
  DataLoader& operator=(DataLoader&&) noexcept = default;
  DataLoader(const DataLoader&) = delete;
  DataLoader& operator=(const DataLoader&) = delete;

  /// Batches per epoch. Errors: UsageError for a stream without StreamShards::batches.
  [[nodiscard]] int64_t size() const { return core_->source.size(); }
  [[nodiscard]] const D& dataset() const { return core_->source.dataset(); }
  [[nodiscard]] const DataLoaderOptions& options() const { return core_->options; }
  [[nodiscard]] TensorPool::Stats memory() const { return core_->pool.stats(); }

  /// Of the loop that runs, or else of the one that ran last: what it received and how long it
  /// waited. Cost: two readings of the clock a batch.
  [[nodiscard]] LoaderStats stats() const {
    LoaderStats stats = core_->stats;
    stats.pool_bytes = core_->pool.stats().bytes;
    return stats;
  }

  /// The epoch that the next loop takes.
  [[nodiscard]] int64_t epoch() const { return core_->source.cursor().epoch(); }
  void set_epoch(int64_t epoch) { core_->source.cursor().set_epoch(epoch); }

  /// Where a resumed run goes on. Counts what the loop has received (the batch in hand included),
  /// not what was made ahead of time; after a break it is the place of the break.
  /// Cost: the first call in an epoch makes the epoch's order once more.
  [[nodiscard]] LoaderState state() const {
    return core_->state_of(core_->source.cursor().state());
  }

  /// The next loop yields the rest of the saved epoch, with the same bits.
  /// Errors: UsageError when the state is of a data set of another size, or of other batches:
  /// another seed, shuffle, batch size, rank or number of ranks.
  void load_state(const LoaderState& state) {
    detail::check_state(state, core_->state_of({state.epoch, state.position}));
    core_->source.load({state.epoch, state.position});
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
  template <typename Order>
  void make_core(DatasetRef<D> dataset,
                 Order&& order,
                 const DataLoaderOptions& options,
                 Collate collate) {
    if constexpr (IterableDataset<D> && !std::is_same_v<std::remove_cvref_t<Order>, StreamShards>) {
      detail::throw_no_sampler_for_streams();
    } else {
      core_ = std::make_shared<Core>(
          options, std::move(dataset), std::forward<Order>(order), options, std::move(collate));
    }
  }

  std::shared_ptr<Core> core_;
};

/// Moves along one epoch; `*it` is the batch at hand, valid until ++. Copies share the place.
template <typename D, typename Collate>
requires(Dataset<D> || IterableDataset<D>) class DataLoader<D, Collate>::Iterator final {
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

template <typename D>
explicit DataLoader(D&&, const DataLoaderOptions& = {}) -> DataLoader<DatasetOf<D>>;
template <typename D, typename Collate>
DataLoader(D&&, const DataLoaderOptions&, Collate) -> DataLoader<DatasetOf<D>, Collate>;
template <typename D>
DataLoader(D&&, Sampler, const DataLoaderOptions& = {}) -> DataLoader<DatasetOf<D>>;
template <typename D, typename Collate>
DataLoader(D&&, Sampler, const DataLoaderOptions&, Collate) -> DataLoader<DatasetOf<D>, Collate>;
template <typename D>
DataLoader(D&&, BatchSampler, const DataLoaderOptions& = {}) -> DataLoader<DatasetOf<D>>;
template <typename D, typename Collate>
DataLoader(D&&, BatchSampler, const DataLoaderOptions&, Collate)
    -> DataLoader<DatasetOf<D>, Collate>;
template <typename D, std::same_as<StreamShards> Shards>
DataLoader(D&&, Shards, const DataLoaderOptions& = {}) -> DataLoader<DatasetOf<D>>;
template <typename D, std::same_as<StreamShards> Shards, typename Collate>
DataLoader(D&&, Shards, const DataLoaderOptions&, Collate) -> DataLoader<DatasetOf<D>, Collate>;

}  // namespace argosy::data
