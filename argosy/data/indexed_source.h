#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "argosy/data/bad_samples.h"
#include "argosy/data/batch_sampler.h"
#include "argosy/data/collate.h"
#include "argosy/data/dataset.h"
#include "argosy/data/loader_options.h"
#include "argosy/data/made.h"
#include "argosy/data/subset.h"

namespace argosy::data::detail {

/// Never called. Its type is the loader's batch.
template <typename D, typename Collate>
auto batch_of(const D& dataset, const Collate& collate, const BatchContext& context) {
  if constexpr (GetsBatch<D> && std::is_same_v<Collate, DefaultCollate>) {
    return dataset.get_batch(context.indices, context);
  } else {
    static_assert(GetsSample<D> || GetsRandomSample<D>,
                  "a collate function needs get(); this data set has only get_batch()");
    using Sample = std::remove_cvref_t<decltype(get_sample(dataset, 0, context))>;
    return collate_samples(dataset, collate, std::vector<Sample>(), context);
  }
}

/// Makes a loader's batches by a sampler's plan, from a data set with indices.
template <typename D, typename Collate>
class IndexedSource final {
  /// True if the data set makes whole batches.
  static constexpr bool kWhole = GetsBatch<D> && std::is_same_v<Collate, DefaultCollate>;

 public:
  using Batch = decltype(batch_of(std::declval<const D&>(),
                                  std::declval<const Collate&>(),
                                  std::declval<const BatchContext&>()));

  IndexedSource(DatasetRef<D> dataset,
                BatchSampler sampler,
                const DataLoaderOptions& options,
                Collate collate)
      : dataset_(std::move(dataset)),
        sampler_(std::move(sampler)),
        on_error_(options.on_error),
        collate_(std::move(collate)) {}

  [[nodiscard]] const D& dataset() const { return *dataset_; }
  [[nodiscard]] EpochCursor& cursor() { return sampler_.cursor(); }
  [[nodiscard]] int64_t size() const { return sampler_.size(); }
  [[nodiscard]] int64_t batches() const { return sampler_.batches_each(); }
  [[nodiscard]] const BatchTurns& turns() const { return sampler_.turns(); }
  [[nodiscard]] SamplerState state() const { return sampler_.state(); }
  [[nodiscard]] int64_t samples() const { return dataset_->size(); }
  [[nodiscard]] uint64_t order_digest(int64_t epoch) const { return sampler_.order_digest(epoch); }
  [[nodiscard]] uint64_t digest_of_own(int64_t epoch) const {
    return sampler_.plan(epoch).digest();
  }
  void load(const SamplerState& state) { sampler_.load_state(state); }

  /// One epoch.
  class Pass final {
   public:
    Pass(const IndexedSource& source, int64_t epoch)
        : source_(source), plan_(source.sampler_.plan(epoch)) {
      check_indices("data.DataLoader", plan_.indices(), source.dataset_->size());
    }
    void begin_at(int64_t /*batch*/) {}
    [[nodiscard]] int64_t end() const { return plan_.size(); }
    /// Runs on a loader thread.
    [[nodiscard]] Made<Batch> make(int64_t number, BatchContext context) const {
      context.indices = plan_[number];
      return source_.make(number, context);
    }
    /// Runs on the loop's thread. True if nothing follows.
    [[nodiscard]] bool is_last(const Made<Batch>& /*made*/) const { return false; }

   private:
    const IndexedSource& source_;
    const BatchPlan plan_;
  };

 private:
  Made<Batch> make(int64_t number, const BatchContext& context) const {
    if constexpr (kWhole) {
      return make_whole(number, context);
    } else {
      return make_from_samples(number, context);
    }
  }

  /// Returns samples as messages name them: those of a Subset by their place in the whole set.
  [[nodiscard]] std::vector<int64_t> keys_of(std::span<const int64_t> indices) const {
    std::vector<int64_t> keys;
    keys.reserve(indices.size());
    for (const int64_t index : indices) {
      keys.push_back(key_of(*dataset_, index));
    }
    return keys;
  }

  /// Handles bad sample `index` as on_error says. try_other(i) puts sample i in its place, or
  /// returns false.
  template <typename TryOther>
  void mend(const DataError& error, int64_t index, BadSamples& bad, TryOther try_other) const {
    if (on_error_ == OnError::kSkip) {
      bad.skip(error);
      return;
    }
    const int64_t n = dataset_->size();
    const int64_t tries =
        on_error_ == OnError::kReplace ? std::min(n - 1, BadSamples::kMostInARow) : 0;
    for (int64_t i = 1; i <= tries; ++i) {
      const int64_t other = (index + i) % n;
      if (try_other(other)) {
        bad.replace(error, key_of(*dataset_, other));
        return;
      }
    }
    throw error;
  }

  template <typename Sample>
  struct Samples {
    std::vector<Sample> values;
    std::vector<int64_t> keys;
  };

  Made<Batch> make_from_samples(int64_t number, const BatchContext& context) const {
    Samples<SampleOf<D>> samples;
    samples.values.reserve(context.indices.size());
    samples.keys.reserve(context.indices.size());
    Made<Batch> made;
    for (const int64_t index : context.indices) {
      if (const auto error = take(index, number, context, samples)) {
        mend(*error, index, made.bad, [&](int64_t other) {
          return !take(other, number, context, samples).has_value();
        });
      }
    }
    made.samples = static_cast<int64_t>(samples.values.size());
    if (made.samples > 0) {
      BatchContext named = context;  // what collate says about a sample, it says by its key
      named.indices = samples.keys;
      made.batch.emplace(collate_or_name(*dataset_, collate_, samples.values, named, number));
    }
    return made;
  }

  /// Appends sample `index`, or returns what is wrong with it.
  template <typename Sample>
  std::optional<DataError> take(int64_t index,
                                int64_t number,
                                const BatchContext& context,
                                Samples<Sample>& samples) const {
    check_wanted(context);
    const int64_t key = key_of(*dataset_, index);
    context.begin_sample(key);
    try {
      samples.values.push_back(get_sample(*dataset_, index, context));
    } catch (const DataError& error) {
      return error.place().index < 0 ? error.with_index(key) : error;
    } catch (...) {
      rethrow_as_data_error({"get()", {&key, 1}, context.epoch, number});
    }
    samples.keys.push_back(key);
    return std::nullopt;
  }

  Made<Batch> make_whole(int64_t number, const BatchContext& context) const {
    std::optional<DataError> error;
    Made<Batch> made;
    if (get_whole(number, context, made, error)) {
      return made;
    }
    std::vector<int64_t> indices(context.indices.begin(), context.indices.end());
    BatchContext rest = context;
    // Each round finds a bad sample or gives up.
    for (size_t round = 0; round <= context.indices.size(); ++round) {
      indices = mend_whole(indices, number, context, *error, made.bad);
      if (indices.empty()) {
        return made;
      }
      rest.indices = indices;
      if (get_whole(number, rest, made, error)) {
        return made;
      }
    }
    raise_of_batch(*error, rest, number);
  }

  /// Calls get_batch(). False: a sample is bad, and on_error allows that.
  bool get_whole(int64_t number,
                 const BatchContext& context,
                 Made<Batch>& made,
                 std::optional<DataError>& error) const {
    check_wanted(context);
    try {
      made.batch.emplace(laid_out(dataset_->get_batch(context.indices, context), context));
      made.samples = static_cast<int64_t>(context.indices.size());
      return true;
    } catch (const DataError& bad) {
      if (on_error_ == OnError::kRaise) {
        rethrow_of_batch(context, number);
      }
      error.emplace(bad);
      return false;
    } catch (...) {
      rethrow_of_batch(context, number);
    }
  }

  [[noreturn]] void rethrow_of_batch(const BatchContext& context, int64_t number) const {
    const std::vector<int64_t> keys = keys_of(context.indices);
    rethrow_as_data_error({"get_batch()", keys, context.epoch, number});
  }

  [[noreturn]] void raise_of_batch(const DataError& error,
                                   const BatchContext& context,
                                   int64_t number) const {
    try {
      throw error;
    } catch (...) {
      rethrow_of_batch(context, number);
    }
  }

  /// Returns what is wrong with sample `index` alone.
  std::optional<DataError> probe(int64_t index, int64_t number, const BatchContext& context) const {
    BatchContext one = context;
    one.indices = {&index, 1};
    std::optional<DataError> error;
    Made<Batch> made;
    if (!get_whole(number, one, made, error) && error->place().index < 0) {
      error.emplace(error->with_index(key_of(*dataset_, index)));
    }
    return error;
  }

  /// Returns `indices` without the bad ones, or with others in their places.
  std::vector<int64_t> mend_whole(std::span<const int64_t> indices,
                                  int64_t number,
                                  const BatchContext& context,
                                  const DataError& error,
                                  BadSamples& bad) const {
    const std::vector<int64_t> keys = keys_of(indices);
    const bool named = std::find(keys.begin(), keys.end(), error.place().index) != keys.end();
    std::vector<int64_t> good;
    for (size_t i = 0; i < indices.size(); ++i) {
      std::optional<DataError> wrong;
      if (!named) {
        wrong = probe(indices[i], number, context);
      } else if (keys[i] == error.place().index) {
        wrong.emplace(error);
      }
      if (!wrong.has_value()) {
        good.push_back(indices[i]);
        continue;
      }
      mend(*wrong, indices[i], bad, [&](int64_t other) {
        const bool fits = !probe(other, number, context).has_value();
        if (fits) {
          good.push_back(other);
        }
        return fits;
      });
    }
    if (std::equal(good.begin(), good.end(), indices.begin(), indices.end())) {
      BatchContext whole = context;
      whole.indices = indices;
      raise_of_batch(error, whole, number);  // not the fault of a sample
    }
    return good;
  }

  const DatasetRef<D> dataset_;
  BatchSampler sampler_;
  const OnError on_error_;
  const Collate collate_;
};

}  // namespace argosy::data::detail
