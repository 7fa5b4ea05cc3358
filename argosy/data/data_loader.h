#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <type_traits>
#include <utility>

#include <c10/core/Device.h>

#include "argosy/data/batch_sampler.h"
#include "argosy/data/batch_tensors.h"
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

/// Fails to compile with a sentence that says what was given instead of a data set.
template <typename D>
constexpr bool check_dataset() {
  constexpr bool kSampler =
      std::is_convertible_v<D, Sampler> || std::is_convertible_v<D, BatchSampler>;
  static_assert(!kSampler,
                "this is a sampler: the data set comes first, DataLoader(train, sampler, options), "
                "and fit(…) takes that loader");
  static_assert(kSampler || Dataset<D> || IterableDataset<D>,
                "this is no data set, which has size() and get(index), or stream(pass): see "
                "docs/guides/data.md; libtorch's own belong to a loop of your own: see "
                "docs/reference/libtorch.md");
  return true;
}

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

/// Iterates over a data set in batches, which loader threads make ahead of time.
///
///     data::DataLoader loader(train, {.batch_size = 64, .shuffle = true, .num_workers = 2});
///     for (int epoch = 0; epoch < 5; ++epoch)
///       for (auto& [images, labels] : loader) ...
///
/// - The data set is any type with size() and get(index), get(index, Random&) or get_batch() (see
///   dataset.h), or a stream (see iterable_dataset.h). The loader refers to a named data set, which
///   must outlive it, and takes ownership of a temporary. Loader threads call the data set
///   concurrently, through const.
/// - Order and content do not depend on num_workers: batches come in the sampler's order, and each
///   sample's random stream is keyed by (seed, epoch, index).
/// - Each loop is the next epoch, also after a `break`; set_epoch() chooses another.
/// - With DataLoaderOptions::device batches come on that device, one of them copied ahead.
/// - Batches may be kept: their memory is reused only when no tensor refers to it any more.
/// - Threads start with the first loop and end with the loader. A `break` waits only for samples
///   that are being made. The loader itself belongs to one thread.
///
/// Errors: an exception from get() leaves the loop as a DataError that names the sample's index. It
/// takes the place of its batch and ends the loop; the loader's position still points at that
/// batch. DataLoaderOptions::on_error can skip or replace such samples. UsageError: a second loop
/// while one is running, or a sampler that was made for another data set.
template <typename D, typename Collate = DefaultCollate>
class DataLoader final {
  static_assert(detail::check_dataset<D>());
  using Source = typename detail::SourceOf<D, Collate>::Type;
  using Core = detail::LoaderCore<Source>;
  using Session = detail::LoaderSession<Source>;

 public:
  /// What the loop yields: the result of get_batch(), or of the collate function.
  using Batch = typename Source::Batch;
  class Iterator;

  /// Makes batches as `options` say; reads a stream to its end. `collate` is called as f(samples)
  /// or f(samples, context); see DefaultCollate.
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

  /// Makes batches of batch_size in the order of `sampler`. UsageError for a stream.
  DataLoader(DatasetRef<D> dataset,
             Sampler sampler,
             const DataLoaderOptions& options = {},
             Collate collate = {}) {
    make_core(std::move(dataset),
              detail::make_batch_sampler(std::move(sampler), options),
              options,
              std::move(collate));
  }

  /// Makes the batches of `sampler`, which also decides batch_size, shuffle and drop_last.
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

  /// Reads this rank's part of a stream. (A template, so that {} means options.)
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

  /// Returns the number of this process's batches per epoch, those of all its virtual ranks
  /// together; for a schedule take fleet::updates(loader).size(). UsageError for a stream without
  /// StreamShards::batches.
  [[nodiscard]] int64_t size() const { return core_->source.size(); }
  [[nodiscard]] const D& dataset() const { return core_->source.dataset(); }
  [[nodiscard]] const DataLoaderOptions& options() const { return core_->options; }
  [[nodiscard]] TensorPool::Stats memory() const { return core_->memory(); }

  /// Returns what the current loop, or else the last one, has received and how long it waited.
  [[nodiscard]] LoaderStats stats() const {
    LoaderStats stats = core_->stats;
    stats.pool_bytes = core_->memory().bytes;
    return stats;
  }

  /// Returns whose turn the batches are.
  [[nodiscard]] BatchTurns turns() const {
    core_->knows_turns = true;
    return core_->source.turns();
  }
  /// Returns the number of the loop's current batch in its epoch, from 0, and that epoch; -1
  /// without a loop.
  [[nodiscard]] int64_t current() const {
    const auto running = core_->running.lock();
    return running != nullptr ? running->number_of_batch() : -1;
  }
  [[nodiscard]] int64_t epoch_of_loop() const {
    const auto running = core_->running.lock();
    return running != nullptr ? running->epoch() : -1;
  }

  /// Returns the epoch of the next loop.
  [[nodiscard]] int64_t epoch() const { return core_->source.cursor().epoch(); }
  void set_epoch(int64_t epoch) { core_->source.cursor().set_epoch(epoch); }

  /// Returns the place from which load_state() resumes. It counts the batches that the loop has
  /// received, the current one included, and none that threads have made ahead of time.
  /// Cost: the first call in an epoch computes the epoch's order once more.
  /// Errors: UsageError inside of the passes of fleet::updates(): the update is not done yet.
  [[nodiscard]] LoaderState state() const {
    detail::check_between_updates(core_->in_passes);
    return core_->state_of(core_->source.state());
  }
  /// Says whether the loop is inside of the passes of an update. fleet::updates() calls it.
  void set_in_passes(bool in_passes) { core_->in_passes = in_passes; }

  /// Lets the next loop yield the rest of the saved epoch, with the same bits.
  /// UsageError if the state belongs to a data set of another size or to other batches: another
  /// seed, shuffle, batch size, rank or number of ranks.
  void load_state(const LoaderState& state) {
    LoaderState own = core_->state_of({state.epoch, state.position});
    if (state.order != own.order && state.order == core_->source.digest_of_own(state.epoch)) {
      own.order = state.order;  // a checkpoint of before there were virtual ranks
    }
    detail::check_state(state, own);
    core_->source.load({state.epoch, state.position});
  }

  /// Starts the next epoch. Blocks until the first batch is ready. A spare, whose batches are
  /// another rank's (BatchTurns), warns a program that has not asked for turns().
  [[nodiscard]] Iterator begin() { return begin(core_->options.device); }
  /// The same, with the batches of this loop on `device`, whatever the options say. The trainer
  /// asks so for the network's. Batches whose tensors cannot be found stay on the CPU.
  [[nodiscard]] Iterator begin(at::Device device) {
    if (!std::exchange(core_->knows_turns, true)) {
      detail::warn_a_spare(core_->source.turns());
    }
    if (const auto running = core_->running.lock(); running != nullptr && running->has_batch()) {
      detail::throw_already_iterating();
    }
    auto session = std::make_shared<Session>(core_, device);
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
    if constexpr (!detail::holds_tensors<Batch>()) {
      detail::check_on_host(options);
    }
    if constexpr (IterableDataset<D> && !std::is_same_v<std::remove_cvref_t<Order>, StreamShards>) {
      detail::throw_no_sampler_for_streams();
    } else {
      core_ = std::make_shared<Core>(
          options, std::move(dataset), std::forward<Order>(order), options, std::move(collate));
    }
  }

  std::shared_ptr<Core> core_;
};

/// Iterates over one epoch. `*it` is the current batch, valid until ++. Copies share their
/// position.
template <typename D, typename Collate>
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
