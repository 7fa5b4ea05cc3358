#include "argosy/data/loader_options.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include <c10/util/Exception.h>

#include "argosy/base/check.h"
#include "argosy/data/checks.h"

#include <nlohmann/json.hpp>

namespace argosy::data {

constexpr const char* kWhere = "data.DataLoader";

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
      kWhere,
      "shuffle together with a sampler: the sampler decides the order. Remove .shuffle, or "
      "the sampler");
  const int64_t batch_size = options.batch_size.value_or(1);
  check_batch_size(kWhere, batch_size);
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
        kWhere,
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
               kWhere,
               "num_workers must not be negative, got {}",
               options.num_workers);
  ARGOSY_CHECK(options.prefetch_factor > 0,
               kWhere,
               "prefetch_factor must be positive, got {}",
               options.prefetch_factor);
  return {.workers = options.num_workers,
          .depth = options.prefetch_factor * std::max(1, options.num_workers),
          .name = "DataLoader"};
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

uint64_t digest(const BatchPlan& plan) {
  uint64_t hash = 14695981039346656037U;  // FNV-1a, of whole numbers
  const auto add = [&hash](int64_t number) {
    hash = (hash ^ static_cast<uint64_t>(number)) * 1099511628211U;
    hash ^= hash >> 32;  // the high bits reach the low ones
  };
  for (int64_t batch = 0; batch < plan.size(); ++batch) {
    add(static_cast<int64_t>(plan[batch].size()));
    for (const int64_t index : plan[batch]) {
      add(index);
    }
  }
  return hash & ((uint64_t{1} << 53) - 1);
}

void throw_already_iterating() {
  throw UsageError(
      kWhere,
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
  const std::string of_batch = fmt::format("batch {} of epoch {}{}",
                                           making.batch,
                                           making.epoch,
                                           one ? "" : ", " + samples_text(making.samples));
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
  throw DataError(kWhere,
                  fmt::format("{} threw: {} ({})", making.doing, what, of_batch),
                  {.path = "", .index = one ? making.samples.front() : -1});
}

}  // namespace detail
}  // namespace argosy::data
