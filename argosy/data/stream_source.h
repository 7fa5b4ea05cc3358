#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "argosy/data/bad_samples.h"
#include "argosy/data/collate.h"
#include "argosy/data/dataset.h"
#include "argosy/data/iterable_dataset.h"
#include "argosy/data/loader_options.h"
#include "argosy/data/made.h"
#include "argosy/data/stream_reader.h"

namespace argosy::data::detail {

/// Makes a loader's batches from a stream. Batch b of this rank is a portion of its share b mod
/// per_rank. A share that has ended gives empty portions, and the epoch ends when all have.
template <typename D, typename Collate>
class StreamSource final {
  using Sample = std::remove_cvref_t<decltype(get_sample(
      std::declval<const D&>(), std::declval<ItemOf<D>&>(), std::declval<Random&>()))>;

  struct Share {
    const D* dataset;
    data::Pass pass;
    auto open() { return dataset->stream(pass); }
    [[nodiscard]] int64_t key(int64_t k) const { return pass.key(k); }
  };
  using Reader = StreamReader<Share>;

 public:
  using Batch = decltype(collate_samples(std::declval<const D&>(),
                                         std::declval<const Collate&>(),
                                         std::declval<const std::vector<Sample>&>(),
                                         std::declval<const BatchContext&>()));

  StreamSource(DatasetRef<D> dataset,
               const StreamShards& shards,
               const DataLoaderOptions& options,
               Collate collate)
      : dataset_(std::move(dataset)),
        shards_(shards),
        options_(options),
        collate_(std::move(collate)) {
    check_stream_options(options, shards);
    turns_ = turns_of(shards);
  }

  [[nodiscard]] const D& dataset() const { return *dataset_; }
  [[nodiscard]] EpochCursor& cursor() { return cursor_; }
  [[nodiscard]] int64_t size() const {
    if (!shards_.batches.has_value()) {
      throw_length_unknown();
    }
    return *shards_.batches * turns_.leaves;
  }
  [[nodiscard]] int64_t batches() const { return shards_.batches.value_or(-1); }
  [[nodiscard]] const BatchTurns& turns() const { return turns_; }
  [[nodiscard]] SamplerState state() const {
    const SamplerState state = cursor_.state();
    return {state.epoch, turns_.complete(state.position, each())};
  }
  [[nodiscard]] int64_t samples() const { return -1; }
  [[nodiscard]] uint64_t order_digest(int64_t /*epoch*/) const { return digest(options_, shards_); }
  [[nodiscard]] uint64_t digest_of_own(int64_t epoch) const { return order_digest(epoch); }
  void load(const SamplerState& state) {
    check_stream_position(state, shards_);
    turns_.check_complete(state.position, each());
    cursor_.load({state.epoch, state.position * turns_.leaves});
  }

  /// One epoch.
  class Pass final {
   public:
    Pass(const StreamSource& source, int64_t epoch) : source_(source), epoch_(epoch) {}

    void begin_at(int64_t batch) {
      const int64_t per_rank = source_.shards_.per_rank;
      for (int64_t leaf = 0; leaf < source_.turns_.leaves; ++leaf) {
        const int64_t begun = source_.begun(leaf, batch);
        for (int64_t i = 0; i < per_rank; ++i) {
          readers_.push_back(std::make_unique<Reader>(source_.share(leaf * per_rank + i, epoch_),
                                                      (begun - i + per_rank - 1) / per_rank,
                                                      source_.reader_options()));
        }
      }
    }
    [[nodiscard]] int64_t end() const {
      return source_.shards_.batches.has_value() ? source_.size()
                                                 : std::numeric_limits<int64_t>::max();
    }
    [[nodiscard]] Made<Batch> make(int64_t number, const BatchContext& context) const {
      const int64_t per_rank = source_.shards_.per_rank;
      const auto [leaf, batch] = source_.turns_.turn_of(number, source_.each());
      Reader& reader = *readers_[leaf * per_rank + batch % per_rank];
      return source_.make(reader, batch / per_rank, number, context);
    }
    [[nodiscard]] bool is_last(const Made<Batch>& made) {
      ended_in_a_row_ = made.ended ? ended_in_a_row_ + 1 : 0;
      return ended_in_a_row_ == static_cast<int64_t>(readers_.size());
    }

   private:
    const StreamSource& source_;
    const int64_t epoch_;
    std::vector<std::unique_ptr<Reader>> readers_;
    int64_t ended_in_a_row_ = 0;
  };

 private:
  /// Batches of each virtual rank in an epoch.
  [[nodiscard]] int64_t each() const {
    return shards_.batches.value_or(std::numeric_limits<int64_t>::max());
  }
  /// Batches of a virtual rank of this process before batch `number` of all of them.
  [[nodiscard]] int64_t begun(int64_t leaf, int64_t number) const {
    if (number == turns_.leaves * each()) {
      return each();
    }
    const BatchTurns::Turn turn = turns_.turn_of(number, each());
    const int64_t update = turn.batch / turns_.micros * turns_.micros;
    return leaf == turn.leaf  ? turn.batch
           : leaf < turn.leaf ? std::min(update + turns_.micros, each())
                              : update;
  }
  /// Share `i` of this process.
  [[nodiscard]] Share share(int64_t i, int64_t epoch) const {
    const int64_t per_rank = shards_.per_rank;
    const int64_t ranks =
        turns_.virtual_ranks > 0 ? turns_.virtual_ranks : int64_t{shards_.num_replicas};
    return {&*dataset_,
            {.seed = options_.seed,
             .epoch = epoch,
             .shard = turns_.first * per_rank + i,
             .shards = ranks * per_rank}};
  }

  [[nodiscard]] StreamReaderOptions reader_options() const {
    return {.batch_size = options_.batch_size.value_or(1),
            .drop_last = options_.drop_last,
            .repeat = shards_.batches.has_value(),
            .skip_bad = options_.on_error == OnError::kSkip};
  }

  Made<Batch> make(Reader& reader,
                   int64_t portion_number,
                   int64_t number,
                   const BatchContext& context) const {
    typename Reader::Portion portion;
    try {
      portion = reader.read(portion_number, *context.stop, *context.current);
    } catch (...) {
      const int64_t key = *context.current;  // -1: not one was read
      const std::span<const int64_t> read(&key, key < 0 ? 0 : 1);
      rethrow_as_data_error({"the stream", read, context.epoch, number});
    }
    Made<Batch> made{.bad = std::move(portion.bad), .ended = portion.ended};
    std::vector<Sample> samples;
    std::vector<int64_t> keys;
    samples.reserve(portion.items.size());
    for (size_t i = 0; i < portion.items.size(); ++i) {
      if (take(portion.items[i], portion.keys[i], number, context, samples, made.bad)) {
        keys.push_back(portion.keys[i]);
      }
    }
    made.samples = static_cast<int64_t>(samples.size());
    if (!samples.empty()) {
      BatchContext named = context;
      named.indices = keys;
      made.batch.emplace(collate_or_name(*dataset_, collate_, samples, named, number));
    }
    return made;
  }

  /// Appends the item's sample. False: the sample is bad, and on_error allows that.
  bool take(ItemOf<D>& item,
            int64_t key,
            int64_t number,
            const BatchContext& context,
            std::vector<Sample>& samples,
            BadSamples& bad) const {
    check_wanted(context);
    context.begin_sample(key);
    Random random = context.random(key);
    try {
      samples.push_back(get_sample(*dataset_, item, random));
      return true;
    } catch (const DataError& error) {
      if (options_.on_error == OnError::kRaise) {
        rethrow_as_data_error({"get()", {&key, 1}, context.epoch, number});
      }
      bad.skip(error.place().index < 0 ? error.with_index(key) : error);
      return false;
    } catch (...) {
      rethrow_as_data_error({"get()", {&key, 1}, context.epoch, number});
    }
  }

  const DatasetRef<D> dataset_;
  const StreamShards shards_;
  BatchTurns turns_{};
  const DataLoaderOptions options_;
  const Collate collate_;
  EpochCursor cursor_;
};

}  // namespace argosy::data::detail
