#include "argosy/data/loader_options.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include <c10/util/Exception.h>

#include "argosy/base/check.h"
#include "argosy/base/log.h"
#include "argosy/data/checks.h"

#include <nlohmann/json.hpp>

namespace argosy::data {

std::string LoaderState::to_json() const {
  return nlohmann::json{{"epoch", epoch},
                        {"position", position},
                        {"seed", seed},
                        {"batches", batches},
                        {"samples", samples},
                        {"order", order}}
      .dump();
}

LoaderState LoaderState::from_json(std::string_view text) {
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  const auto number = [&](const char* name) -> const nlohmann::json& {
    ARGOSY_CHECK(json.is_object() && json.contains(name) && json[name].is_number_integer(),
                 "data.LoaderState",
                 "expected a JSON object with the whole number \"{}\", got: {:.80}",
                 name,
                 text);
    return json[name];
  };
  return {.epoch = number("epoch").get<int64_t>(),
          .position = number("position").get<int64_t>(),
          .seed = number("seed").get<uint64_t>(),
          .batches = number("batches").get<int64_t>(),
          .samples = number("samples").get<int64_t>(),
          .order = number("order").get<uint64_t>()};
}

namespace detail {

BatchSampler make_batch_sampler(Sampler sampler, const DataLoaderOptions& options) {
  ARGOSY_CHECK(
      !options.shuffle,
      "data.DataLoader",
      "shuffle together with a sampler: the sampler decides the order. Remove .shuffle, or "
      "the sampler");
  const int64_t batch_size = options.batch_size.value_or(1);
  check_batch_size("data.DataLoader", batch_size);
  return {std::move(sampler), {.batch_size = batch_size, .drop_last = options.drop_last}};
}

BatchSampler make_batch_sampler(int64_t samples, const DataLoaderOptions& options) {
  DataLoaderOptions rest = options;
  rest.shuffle = false;
  return options.shuffle ? make_batch_sampler(RandomSampler(samples, {.seed = options.seed}), rest)
                         : make_batch_sampler(SequenceSampler(samples), rest);
}

BatchSampler check_batch_sampler(BatchSampler sampler, const DataLoaderOptions& options) {
  const auto refuse = [](const std::string& field) {
    throw UsageError(
        "data.DataLoader",
        fmt::format("{0} together with a batch sampler: the batch sampler decides it. Give "
                    "{0} to the sampler and remove it from the loader's options",
                    field));
  };
  if (options.batch_size.has_value()) {
    refuse(fmt::format("batch_size = {}", *options.batch_size));
  }
  if (options.shuffle) {
    refuse("shuffle");
  }
  if (options.drop_last) {
    refuse("drop_last");
  }
  return sampler;
}

PrefetchOptions prefetch_options(const DataLoaderOptions& options) {
  ARGOSY_CHECK(options.num_workers >= 0,
               "data.DataLoader",
               "num_workers must not be negative, got {}",
               options.num_workers);
  ARGOSY_CHECK(options.prefetch_factor > 0,
               "data.DataLoader",
               "prefetch_factor must be positive, got {}",
               options.prefetch_factor);
  ARGOSY_CHECK(options.memory_format == at::MemoryFormat::Contiguous ||
                   options.memory_format == at::MemoryFormat::ChannelsLast,
               "data.DataLoader",
               "memory_format must be Contiguous or ChannelsLast");
  ARGOSY_CHECK(options.timeout.count() >= 0,
               "data.DataLoader",
               "timeout must not be negative, got {} ms",
               options.timeout.count());
  ARGOSY_CHECK(options.timeout.count() == 0 || options.num_workers > 0,
               "data.DataLoader",
               "timeout = {} ms with num_workers = 0: the loop makes its batches itself and cannot "
               "leave. Take num_workers >= 1, or no timeout",
               options.timeout.count());
  ARGOSY_CHECK(
      options.num_workers > 0 ||
          (!options.thread_init && options.prefetch_factor == DataLoaderOptions().prefetch_factor),
      "data.DataLoader",
      "{} with num_workers = 0: there are no loader threads. Take num_workers >= 1, or leave "
      "it out",
      options.thread_init ? std::string("thread_init")
                          : fmt::format("prefetch_factor = {}", options.prefetch_factor));
  return {.threads = options.num_workers,
          .depth = options.prefetch_factor * std::max(1, options.num_workers),
          .name = "DataLoader",
          .timeout = options.timeout,
          .thread_init = options.thread_init};
}

void check_stream_options(const DataLoaderOptions& options, const StreamShards& shards) {
  ARGOSY_CHECK(!options.shuffle,
               "data.DataLoader",
               "shuffle with a stream, which has no indices: shuffle in stream(pass), by files or "
               "through a buffer, with pass.common_random() or pass.random()");
  ARGOSY_CHECK(options.on_error != OnError::kReplace,
               "data.DataLoader",
               "on_error = replace with a stream, whose next sample belongs to the next batch. "
               "Take on_error = skip");
  check_batch_size("data.DataLoader", options.batch_size.value_or(1));
  check_rank("data.StreamShards", shards.rank, shards.num_replicas);
  ARGOSY_CHECK(shards.per_rank > 0,
               "data.StreamShards",
               "per_rank must be positive, got {}",
               shards.per_rank);
  ARGOSY_CHECK(shards.batches.value_or(1) > 0,
               "data.StreamShards",
               "batches must be positive, got {}",
               *shards.batches);
  check_virtual_ranks("data.StreamShards", shards.virtual_ranks);
  ARGOSY_CHECK(shards.virtual_ranks == 0 || shards.virtual_ranks == shards.num_replicas ||
                   shards.batches.has_value(),
               "data.StreamShards",
               "{} virtual ranks on {} ranks need .batches: all of them make equally many updates",
               shards.virtual_ranks,
               shards.num_replicas);
  ARGOSY_CHECK(shards.micro_batches > 0,
               "data.StreamShards",
               "micro_batches must be positive, got {}",
               shards.micro_batches);
}

BatchTurns turns_of(const StreamShards& shards) {
  return BatchTurns::of(
      shards.virtual_ranks, shards.num_replicas, shards.rank, shards.micro_batches);
}

void check_stream_position(const SamplerState& state, const StreamShards& shards) {
  ARGOSY_CHECK(!shards.batches.has_value() || state.position <= *shards.batches,
               "data.load_state",
               "position {} lies behind the {} batches of an epoch. Was the state saved with other "
               "StreamShards?",
               state.position,
               *shards.batches);
}

void check_on_host(const DataLoaderOptions& options) {
  ARGOSY_CHECK(options.device.is_cpu(),
               "data.DataLoader",
               "device = {}, and the batches are of a type whose tensors the loader cannot find. "
               "Give it auto tensors() {{ return std::tie(…); }}, which names them, or bring the "
               "batches to the device in the loop",
               options.device.str());
}

void throw_no_sampler_for_streams() {
  throw UsageError("data.DataLoader",
                   "a sampler for a stream, which has no indices. StreamShards says which part of "
                   "the stream this rank reads");
}

void throw_length_unknown() {
  throw UsageError("data.DataLoader",
                   "size() of a stream: its length is not known before its end. With "
                   "StreamShards::batches it has that many batches");
}

void check_state(const LoaderState& saved, const LoaderState& own) {
  const auto check = [](const char* field, auto expected, auto got) {
    ARGOSY_CHECK(
        expected == got,
        "data.load_state",
        "the saved state belongs to another loader: this one has {} {}, the state says {}. "
        "Resume with the same data, seed, batch size and number of ranks",
        field,
        expected,
        got);
  };
  check("samples =", own.samples, saved.samples);
  check("batches =", own.batches, saved.batches);
  check("seed =", own.seed, saved.seed);
  ARGOSY_CHECK(
      own.order == saved.order,
      "data.load_state",
      "the saved state belongs to another loader: the batches of epoch {} are not those that "
      "it counted. Resume with the sampler's seed, shuffle, batch size and number of ranks as "
      "they were",
      saved.epoch);
}

uint64_t digest(const DataLoaderOptions& options, const StreamShards& shards) {
  BatchPlan numbers;
  const bool dealt = shards.virtual_ranks > 0;  // the same on any number of processes
  const std::vector<int64_t> cut{options.batch_size.value_or(1),
                                 options.drop_last ? 1 : 0,
                                 dealt ? shards.virtual_ranks : shards.num_replicas,
                                 dealt ? 0 : shards.rank,
                                 shards.per_rank,
                                 shards.batches.value_or(-1)};
  numbers.add(cut);
  return numbers.digest();
}

void check_between_updates(bool in_passes) {
  ARGOSY_CHECK(!in_passes,
               "data.DataLoader",
               "state() inside of the passes of an update, which is not done. Save after "
               "optimizer.step(), outside of the loop over the update's batches");
}

void warn_a_spare(const BatchTurns& turns) {
  if (turns.spare) {
    log::warn(
        "[data.DataLoader] this process is a spare: its batches are those of virtual rank {}, "
        "which another process has too. Do not count them: leave them out where turns().spare is "
        "true, or evaluate with fleet::evaluation_sampler()",
        turns.first);
  }
}

void throw_already_iterating() {
  throw UsageError(
      "data.DataLoader",
      "begin() while another loop over this loader is running. End that loop first, or "
      "make a second loader for the second loop");
}

namespace {

/// "samples 4, 9", "64 samples: 17, …, 3".
std::string samples_text(std::span<const int64_t> samples) {
  constexpr size_t kAll = 8;
  if (samples.size() <= kAll) {
    return fmt::format("samples {}", fmt::join(samples, ", "));
  }
  return fmt::format("{} samples: {}, …, {}", samples.size(), samples.front(), samples.back());
}

}  // namespace

void rethrow_as_data_error(const MakingBatch& making) {
  const bool one = making.samples.size() == 1;
  const std::string of_batch =
      fmt::format("batch {} of epoch {}{}",
                  making.batch,
                  making.epoch,
                  one || making.samples.empty() ? "" : ", " + samples_text(making.samples));
  std::string what;
  try {
    throw;
  } catch (const DataError& error) {
    if (error.place().index >= 0) {
      throw;
    }
    throw one ? error.with_index(making.samples.front()) : error.with_note(of_batch);
  } catch (const c10::Error& error) {
    what = error.what_without_backtrace();
  } catch (const std::exception& error) {
    what = error.what();
  } catch (...) {
    what = "something that is no std::exception";
  }
  throw DataError("data.DataLoader",
                  fmt::format("{} threw: {} ({})", making.doing, what, of_batch),
                  {.path = "", .index = one ? making.samples.front() : -1});
}

void report_first_bad(const BadSamples& bad) {
  log::warn("[data.DataLoader] a bad sample was {}: {}. The sum follows at the end of each epoch",
            bad.skipped > 0 ? "skipped" : "replaced",
            fmt::join(bad.messages, "; "));
}

void report_bad(const LoaderStats& stats) {
  const BadSamples& bad = stats.bad;
  if (bad.count() > 0) {
    log::warn("[data.DataLoader] epoch {}: {} bad samples were {}: {}{}",
              stats.epoch,
              bad.count(),
              bad.skipped > 0 ? "skipped" : "replaced",
              fmt::join(bad.messages, "; "),
              bad.count() > static_cast<int64_t>(bad.messages.size()) ? "; …" : "");
  }
}

void check_some_good(const LoaderStats& stats) {
  if (stats.batches == 0 && stats.bad.skipped > 0) {
    throw DataError(
        "data.DataLoader",
        fmt::format("epoch {}: not one sample was good, {} were skipped (on_error = skip). "
                    "The first: {}",
                    stats.epoch,
                    stats.bad.skipped,
                    stats.bad.messages.front()));
  }
}

}  // namespace detail
}  // namespace argosy::data
