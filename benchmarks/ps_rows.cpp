// Time of pulls and pushes of sparse rows. Links no libtorch.
//
//     bench_ps_rows [--rows 4000000] [--ids 100000] [--dim 16] [--samples 20] [--threads 1]
//                   [--memory_limit BYTES] [--spill_directory FOLDER]
//     argosy launch --run_mode rpc -n 2 bench_ps_rows --served
//
// A table of `rows` rows; batches of `ids` ids drawn by Zipf's law (exponent 1), so that most are
// of a few rows. "pull" reads the rows of a batch into its places, "push" adds its gradients up by
// id and applies them with the rule adagrad; "copy" is memcpy of as many bytes as the batch's rows
// have, and "gather" one of as many different rows from random places of a memory of that size, the
// places known: what reading them takes at least. With --memory_limit rows beyond it lie on disk;
// "in_memory" is the share of a batch's rows that a pull finds in memory, and "…_cpu_us" is
// processor time of the calling thread. With
// --served the table lies in a server's process, which is worker 0 of the job, else in this one.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstring>
#include <ctime>
#include <fstream>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "argosy/program/command_line.h"
#include "argosy/ps/copy_row.h"
#include "argosy/ps/id_deal.h"
#include "argosy/ps/row_memory.h"
#include "argosy/ps/row_spill.h"
#include "argosy/ps/row_table.h"
#include "argosy/ps/table_client.h"
#include "argosy/ps/table_server.h"
#include "argosy/rpc/agent.h"

#include <nlohmann/json.hpp>

namespace {

using namespace argosy;
using Samples = std::vector<double>;

struct Settings {
  int64_t rows = 4'000'000;
  int64_t ids = 100'000;
  int64_t dim = 16;
  int samples = 20;
  int threads = 1;
  int64_t memory_limit = 0;
  std::string spill_directory{};
  bool served = false;
};

/// Returns the microseconds of processor time of this thread so far.
double cpu_us() {
  timespec now{};
  (void)::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) / 1e3;
}

/// Returns its microseconds.
double time_of(const std::function<void()>& timed) {
  const auto start = std::chrono::steady_clock::now();
  timed();
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start)
      .count();
}

/// Ids from 0 to rows − 1, the n-th as often as 1 / n, scattered over all numbers.
class Zipf {
 public:
  explicit Zipf(int64_t rows) : rows_(static_cast<double>(rows)) {}
  uint64_t operator()() {
    // The inverse of the integral of 1 / x.
    const double u = std::uniform_real_distribution<double>(0, 1)(random_);
    return mixed(static_cast<uint64_t>(std::pow(rows_ + 1, u)) - 1);
  }

 private:
  double rows_;
  std::mt19937_64 random_{7};
};

ps::TableSet tables_of(const Settings& settings) {
  ps::TableSet tables;
  tables.sparse.push_back({.name = "rows", .dim = static_cast<size_t>(settings.dim)});
  return tables;
}

/// What the time of a batch is measured of.
struct Table {
  std::function<ps::IdDeal(std::span<const uint64_t> ids)> deal;
  std::function<void(const ps::IdDeal& ids, std::span<float> out)> pull;
  std::function<void(const ps::IdDeal& ids, std::span<const float> gradients)> push;
  std::function<double(const ps::IdDeal& ids)> in_memory{};
};

/// Rows at places that are known, in a memory of the table's size with adagrad's number in each
/// row.
class Gather {
 public:
  explicit Gather(const Settings& settings)
      : rows_(static_cast<size_t>(settings.rows)),
        dim_(static_cast<size_t>(settings.dim)),
        memory_(dim_ + 1) {
    for (size_t i = 0; i < rows_; ++i) {
      if (const Result<uint32_t> row = memory_.take(); !row.ok()) {
        throw Error("bench.memory", row.failure().what);
      }
      std::fill_n(memory_.at(static_cast<uint32_t>(i)), dim_ + 1, 1.0F);
    }
  }
  void prepare(size_t count) {
    places_.resize(count);
    std::ranges::generate(places_, [&] { return static_cast<uint32_t>(random_() % rows_); });
  }
  void read(std::span<float> out) const {
    constexpr size_t kAhead = 32;
    for (size_t i = 0; i < places_.size(); ++i) {
      if (i + kAhead < places_.size()) {
        memory_.prefetch(places_[i + kAhead]);
      }
      ps::copy_row(&out[i * dim_], memory_.at(places_[i]), dim_);
    }
  }

 private:
  size_t rows_;
  size_t dim_;
  ps::RowMemory memory_;
  std::vector<uint32_t> places_{};
  std::mt19937_64 random_{8};
};

constexpr int64_t kMostGathered = 10'000'000;  // a second table of those is no burden

nlohmann::json measure(const Settings& settings, const Table& table) {
  const auto dim = static_cast<size_t>(settings.dim);
  const auto n = static_cast<size_t>(settings.ids);
  const std::vector<float> zeros(n * dim);
  for (int64_t begin = 0; begin < settings.rows; begin += settings.ids) {
    std::vector<uint64_t> ids;
    for (int64_t i = begin; i < std::min(begin + settings.ids, settings.rows); ++i) {
      ids.push_back(mixed(static_cast<uint64_t>(i)));
    }
    table.push(table.deal(ids), std::span(zeros).first(ids.size() * dim));
  }
  Zipf zipf(settings.rows);
  std::optional<Gather> gather;
  if (settings.rows <= kMostGathered) {
    gather.emplace(settings);
  }
  std::vector<uint64_t> ids(n);
  std::vector<float> out(n * dim);
  std::vector<float> target(n * dim);
  const std::vector<float> gradients(n * dim, 0.01F);
  std::unique_ptr<ps::IdDeal> deal;
  nlohmann::json all{{"bench", "ps_rows"},
                     {"rows", settings.rows},
                     {"ids", settings.ids},
                     {"dim", settings.dim},
                     {"threads", settings.threads}};
  Samples deals, pulls, pushes, copies, gathers, in_memory, pull_cpus, push_cpus;
  for (int i = -2; i < settings.samples; ++i) {
    std::ranges::generate(ids, std::ref(zipf));
    const double deal_us = time_of([&] { deal = std::make_unique<ps::IdDeal>(table.deal(ids)); });
    const double found = table.in_memory ? table.in_memory(*deal) : 1;
    std::array<double, 3> cpus{cpu_us()};
    std::array<double, 3> times{};
    times[0] = time_of([&] { table.pull(*deal, out); });
    cpus[1] = cpu_us();
    times[1] = time_of([&] { table.push(*deal, gradients); });
    cpus[2] = cpu_us();
    times[2] = time_of([&] { std::memcpy(target.data(), out.data(), out.size() * sizeof(float)); });
    if (gather.has_value()) {
      gather->prepare(deal->ids().size());
      gathers.push_back(time_of([&] { gather->read(target); }));
    }
    if (i >= 0) {
      deals.push_back(deal_us);
      pulls.push_back(times[0]);
      pushes.push_back(times[1]);
      copies.push_back(times[2]);
      in_memory.push_back(found);
      pull_cpus.push_back(cpus[1] - cpus[0]);
      push_cpus.push_back(cpus[2] - cpus[1]);
    }
  }
  all["unique"] = deal->ids().size();
  all["deal_us"] = deals;
  all["pull_us"] = pulls;
  all["push_us"] = pushes;
  all["copy_us"] = copies;
  if (!gathers.empty()) {
    all["gather_us"] = Samples(gathers.begin() + 2, gathers.end());  // the first two warm up
  }
  all["in_memory"] = in_memory;
  all["pull_cpu_us"] = pull_cpus;
  all["push_cpu_us"] = push_cpus;
  return all;
}

/// Of this process, its program and buffers included.
size_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  size_t pages = 0;
  statm >> pages >> pages;  // the second number
  return pages * static_cast<size_t>(::sysconf(_SC_PAGESIZE));
}

nlohmann::json measure_here(const Settings& settings) {
  const auto dim = static_cast<size_t>(settings.dim);
  std::shared_ptr<ps::SpillPart> spill;
  if (settings.memory_limit > 0) {
    spill = std::make_shared<ps::SpillPart>(std::make_shared<ps::RowSpill>(
        ps::SpillOptions{.memory_limit = static_cast<size_t>(settings.memory_limit),
                         .directory = settings.spill_directory}));
  }
  std::vector<ps::RowTable> shards;
  for (int s = 0; s < ps::kShards; ++s) {
    shards.emplace_back(tables_of(settings).sparse[0], spill);
  }
  const ps::ShardThreads threads(settings.threads);
  std::vector<float> rows;
  std::vector<const float*> row_at;
  std::vector<float*> sums;
  const auto point = [&](size_t unique) {
    rows.resize(unique * dim);
    row_at.clear();
    sums.clear();
    for (size_t i = 0; i < unique; ++i) {
      row_at.push_back(&rows[i * dim]);
      sums.push_back(&rows[i * dim]);
    }
  };
  const auto part = [&](const ps::IdDeal& ids, int s) {
    return std::pair{
        ids.ids({s, s + 1}),
        std::span(rows).subspan(ids.begin(s) * dim, (ids.begin(s + 1) - ids.begin(s)) * dim)};
  };
  nlohmann::json all = measure(
      settings,
      {.deal = [&](std::span<const uint64_t> ids) { return ps::IdDeal(ids, threads); },
       .pull =
           [&](const ps::IdDeal& ids, std::span<float> out) {
             point(ids.ids().size());
             threads.for_each(ps::kShards, ids.size(), [&](size_t s) {
               const auto [here, to] = part(ids, static_cast<int>(s));
               shards[s].pull(here, to);
             });
             ids.spread(row_at, dim, out);
           },
       .push =
           [&](const ps::IdDeal& ids, std::span<const float> gradients) {
             point(ids.ids().size());
             ids.gather(gradients, dim, sums);
             const double excess = spill == nullptr ? 0 : spill->excess();
             for (ps::RowTable& shard : shards) {
               shard.make_room(excess);
             }
             threads.for_each(ps::kShards, ids.size(), [&](size_t s) {
               const auto [here, from] = part(ids, static_cast<int>(s));
               shards[s].bring_back(here);
               shards[s].push({.ids = here, .gradients = from});
             });
           },
       .in_memory =
           [&](const ps::IdDeal& ids) {
             size_t on_disk = 0;
             for (int s = 0; s < ps::kShards; ++s) {
               on_disk += shards[static_cast<size_t>(s)].count_on_disk(part(ids, s).first);
             }
             return 1 - static_cast<double>(on_disk) / static_cast<double>(ids.ids().size());
           }});
  size_t row_bytes = 0;
  for (const ps::RowTable& shard : shards) {
    row_bytes += shard.rows() * (dim + shard.state_size()) * sizeof(float);
  }
  all["row_bytes"] = row_bytes;
  all["resident_bytes"] = resident_bytes();
  return all;
}

void serve(const Settings& settings) {
  ps::TableServer server(tables_of(settings),
                         {.servers = {"worker0"},
                          .mode = ps::UpdateMode::kAsync,
                          .memory_limit = static_cast<size_t>(settings.memory_limit),
                          .spill_directory = settings.spill_directory,
                          .threads = settings.threads});
  rpc::Functions functions;
  server.serve(functions);
  rpc::Agent agent({}, functions);
  if (agent.rank() == 0) {
    (void)server.run(agent);
  } else {
    ps::TableClient client(
        agent, tables_of(settings), {.servers = {"worker0"}, .threads = settings.threads});
    const auto json =
        measure(settings,
                {.deal = [&](std::span<const uint64_t> ids) { return client.deal(ids); },
                 .pull =
                     [&](const ps::IdDeal& ids, std::span<float> out) {
                       const ps::TableClient::Rows rows{.ids = ids, .out = out};
                       client.pull({&rows, 1});
                     },
                 .push =
                     [&](const ps::IdDeal& ids, std::span<const float> gradients) {
                       const ps::TableClient::Gradients all{.ids = ids, .gradients = gradients};
                       client.push({&all, 1});
                     }});
    std::cout << json.dump() << "\n";
    client.stop();
  }
  agent.shutdown();
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  return program::run({"Measures pulls and pushes of sparse rows."},
                      {{"--rows", "N", "Of the table", &settings.rows, {.least = 1}},
                       {"--ids", "N", "Of a batch", &settings.ids, {.least = 1}},
                       {"--dim", "N", "Weights of a row", &settings.dim, {.least = 1}},
                       {"--samples", "N", "Batches", &settings.samples, {.least = 1}},
                       {"--threads", "N", "For a batch's shards", &settings.threads, {.least = 1}},
                       {"--memory_limit",
                        "BYTES",
                        "For rows and ids; others lie on disk. 0: none",
                        &settings.memory_limit,
                        {.least = 0}},
                       {"--spill_directory", "FOLDER", "For those", &settings.spill_directory},
                       {"--served", "", "The table lies in a server's process", &settings.served}},
                      argc,
                      argv,
                      [&] {
                        if (settings.served) {
                          serve(settings);
                        } else {
                          std::cout << measure_here(settings).dump() << "\n";
                        }
                      });
}
