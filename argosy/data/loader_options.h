#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <c10/core/Device.h>
#include <c10/core/MemoryFormat.h>

#include "argosy/data/bad_samples.h"
#include "argosy/data/batch_sampler.h"
#include "argosy/data/iterable_dataset.h"
#include "argosy/data/loader_stats.h"
#include "argosy/data/ordered_prefetch.h"

namespace argosy::data {

struct DataLoaderOptions {
  /// Samples per batch; unset: 1. Set it here or in a batch sampler, never in both.
  std::optional<int64_t> batch_size{};
  bool shuffle = false;    ///< a new order in each epoch; not allowed with a sampler
  bool drop_last = false;  ///< leave out a short last batch; not allowed with a batch sampler
  /// Number of threads that make batches ahead of time. 0: the loop makes each batch itself.
  int num_workers = 0;
  /// At most prefetch_factor × num_workers batches are being made or waiting. Needs num_workers >
  /// 0, as do the options of threads below.
  int prefetch_factor = 2;
  /// Seed of the order (shuffle) and of the samples' random streams.
  uint64_t seed = 0;
  /// What to do with samples that throw a DataError. stats() and the log count them.
  OnError on_error = OnError::kRaise;
  /// The longest wait for a batch. When it is over, the loop ends with a DataError that names
  /// thread and sample. 0: no limit, and the log names them every 30 s. Another value needs
  /// num_workers > 0.
  std::chrono::milliseconds timeout{0};
  /// Called once on each loader thread, with its number, before its first batch.
  std::function<void(int thread)> thread_init{};
  /// Memory format of batches with four dimensions and a floating type: Contiguous or ChannelsLast.
  /// Choose the model's format, so that nobody has to convert the batches later.
  at::MemoryFormat memory_format = at::MemoryFormat::Contiguous;
  /// Where batches are when the loop gets them; without an index: the current device of that kind.
  /// On a GPU each is made in pinned memory and copied on a stream of its own, one batch ahead of
  /// the loop where num_workers > 0; the loop's current stream waits for it, the loop does not.
  /// UsageError where batches are of a type whose tensors cannot be found; see docs/guides/data.md.
  at::Device device = at::kCPU;
};

/// What a checkpoint saves of a loader: its position, and enough to recognise another loader.
struct LoaderState {
  int64_t epoch = 0;
  int64_t position = 0;  ///< batches of the epoch that were received or skipped
  uint64_t seed = 0;
  int64_t batches = 0;  ///< number of batches per epoch; -1: unknown, as of a stream
  int64_t samples = 0;  ///< size of the data set; -1: unknown
  /// Digest of the epoch's batches, sample by sample; for a stream, of the way it is cut. It
  /// differs for another seed, shuffle, batch size, rank or number of ranks.
  uint64_t order = 0;

  /// Writes {"epoch":3,"position":120,…}. from_json throws a UsageError if a field is missing or is
  /// not a number.
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
/// Whose turn the batches of a stream are.
[[nodiscard]] BatchTurns turns_of(const StreamShards& shards);
void check_stream_position(const SamplerState& state, const StreamShards& shards);
[[noreturn]] void throw_no_sampler_for_streams();
[[noreturn]] void throw_length_unknown();

/// UsageError unless batches stay on the CPU.
void check_on_host(const DataLoaderOptions& options);

/// What LoaderState::order holds; below 2^53, so that every JSON reader keeps it exactly.
uint64_t digest(const DataLoaderOptions& options, const StreamShards& shards);

PrefetchOptions prefetch_options(const DataLoaderOptions& options);
/// UsageError naming the field in which a saved state does not fit this loader.
void check_state(const LoaderState& saved, const LoaderState& own);
[[noreturn]] void throw_already_iterating();
void warn_a_spare(const BatchTurns& turns);
/// UsageError in the middle of an update, which has no place to resume from.
void check_between_updates(bool in_passes);

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
