#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <c10/core/MemoryFormat.h>

#include "argosy/data/bad_samples.h"
#include "argosy/data/batch_sampler.h"
#include "argosy/data/iterable_dataset.h"
#include "argosy/data/loader_stats.h"
#include "argosy/data/ordered_prefetch.h"

namespace argosy::data {

struct DataLoaderOptions {
  /// Samples per batch; unset: 1. Belongs to the loader or to the batch sampler, never to both.
  std::optional<int64_t> batch_size{};
  bool shuffle = false;    ///< a new order in each epoch; not with a sampler
  bool drop_last = false;  ///< leave out a short last batch; not with a batch sampler
  /// Threads that make batches ahead of time. 0: the loop makes each one itself.
  int num_workers = 0;
  /// Batches in the making or waiting: prefetch_factor × num_workers.
  int prefetch_factor = 2;
  /// Of the order (shuffle) and of the samples' random streams.
  uint64_t seed = 0;
  /// What becomes of samples that throw a DataError; counted in stats() and in the log.
  OnError on_error = OnError::kRaise;
  /// A batch that the loop waits for longer ends it with a DataError that names worker and sample.
  /// 0: no limit; every 30 s the log names them. Not with 0 workers: the loop does the work itself.
  std::chrono::milliseconds timeout{0};
  /// Called once on each worker, with its number, before its first batch; never with 0 workers.
  std::function<void(int worker)> worker_init{};
  /// In which order images lie in memory: batches of four dimensions and a floating type,
  /// Contiguous or ChannelsLast. Take the model's, so that nobody has to convert them later.
  at::MemoryFormat memory_format = at::MemoryFormat::Contiguous;
};

/// What a checkpoint keeps of a loader: where it stood, and enough to notice that it does not fit.
struct LoaderState {
  int64_t epoch = 0;
  int64_t position = 0;  ///< batches of the epoch that are done with, those left out included
  uint64_t seed = 0;
  int64_t batches = 0;  ///< per epoch; -1: a stream's, which nobody knows
  int64_t samples = 0;  ///< of the data set; -1 likewise
  /// Digest of the epoch's batches, sample by sample (of how they are cut, for a stream): tells
  /// another seed, shuffle, batch size, rank or number of ranks of the sampler.
  uint64_t order = 0;

  /// {"epoch":3,"position":120,…}; from_json: UsageError when a field is missing or no number.
  [[nodiscard]] std::string to_json() const;
  [[nodiscard]] static LoaderState from_json(std::string_view text);
  friend bool operator==(const LoaderState&, const LoaderState&) = default;
};

namespace detail {

/// The sampler that the options alone describe.
BatchSampler make_batch_sampler(int64_t samples, const DataLoaderOptions& options);
BatchSampler make_batch_sampler(Sampler sampler, const DataLoaderOptions& options);
/// UsageError when the options repeat what the batch sampler decides.
BatchSampler check_batch_sampler(BatchSampler sampler, const DataLoaderOptions& options);

/// UsageError for options that need indices, or a next sample to replace a bad one.
void check_stream_options(const DataLoaderOptions& options, const StreamShards& shards);
void check_stream_position(const SamplerState& state, const StreamShards& shards);
[[noreturn]] void throw_no_sampler_for_streams();
[[noreturn]] void throw_length_unknown();

/// What LoaderState::order holds; below 2^53, so that every JSON reader keeps it exactly.
uint64_t digest(const BatchPlan& plan);
uint64_t digest(const DataLoaderOptions& options, const StreamShards& shards);

PrefetchOptions prefetch_options(const DataLoaderOptions& options);
/// UsageError naming the field in which a saved state does not fit this loader.
void check_state(const LoaderState& saved, const LoaderState& own);
[[noreturn]] void throw_already_iterating();

/// Where an exception came from, for its message.
struct MakingBatch {
  const char* doing = "";              ///< "get()", "collate", …
  std::span<const int64_t> samples{};  ///< those that may be the cause, by key_of()
  int64_t epoch = 0;
  int64_t batch = 0;
};

/// Rethrows the current exception as a DataError that names the sample, or those of the batch. A
/// DataError that knows its sample stays as it is.
[[noreturn]] void rethrow_as_data_error(const MakingBatch& making);

/// Says in the log what on_error did: the first time, and after each epoch in which it did more.
void report_first_bad(const BadSamples& bad);
void report_bad(const LoaderStats& stats);
/// DataError when an epoch had samples, and all were skipped.
void check_some_good(const LoaderStats& stats);

}  // namespace detail

}  // namespace argosy::data
