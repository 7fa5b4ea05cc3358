#pragma once

#include <fmt/format.h>

#include <array>
#include <functional>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/ps/first_row.h"
#include "argosy/ps/table_client.h"
#include "argosy/ps/table_server.h"
#include "argosy/rendezvous/store.h"
#include "argosy/rpc/agent.h"

#include "tests/support/error_text.h"

namespace argosy::ps {

constexpr size_t kDim = 5;

inline TableSet two_tables(const std::shared_ptr<const RowRule>& rule = adagrad()) {
  TableSet tables;
  tables.sparse.push_back({.name = "users", .dim = kDim, .rule = rule, .initial_range = 0.1F});
  tables.sparse.push_back(
      {.name = "items", .dim = 3, .rule = naive(), .initial_range = 0.1F, .seed = 9});
  tables.dense.push_back(
      {.name = "weight", .initial = std::vector<float>(100, 0.5F), .shape = {4, 25}, .rule = rule});
  tables.dense.push_back({.name = "bias", .initial = {1, 2, 3}, .rule = rule});
  return tables;
}

inline std::vector<float> rows_of(TableClient& client,
                                  uint32_t table,
                                  const std::vector<uint64_t>& ids) {
  std::vector<float> out(ids.size() * client.tables().sparse[table].dim);
  const IdDeal deal(ids);
  const TableClient::Rows rows{.table = table, .ids = deal, .out = out};
  client.pull({&rows, 1});
  return out;
}

/// A batch with repeats, and its gradients: a function of worker and step.
struct Batch {
  Batch(int worker, int step, size_t dim) {
    std::mt19937_64 random(static_cast<uint64_t>(1000 * worker + step));
    for (int i = 0; i < 300; ++i) {
      ids.push_back(random() % 200);
      for (size_t d = 0; d < dim; ++d) {
        gradients.push_back(static_cast<float>(random() % 2001) / 1000 - 1);
      }
    }
  }
  std::vector<uint64_t> ids{};
  std::vector<float> gradients{};
};

struct DenseValues {
  std::vector<float> weight = std::vector<float>(100);
  std::vector<float> bias = std::vector<float>(3);
  TableClient::Dense dense{.values = {weight, bias}};
};

/// One step on two_tables(). What is pushed depends on what was pulled.
inline void train_step(TableClient& client, int worker, int step) {
  DenseValues values;
  const Batch users(worker, step, kDim);
  const Batch items(worker, step + 500, 3);
  const IdDeal user_ids(users.ids);
  const IdDeal item_ids(items.ids);
  std::vector<float> user_rows(users.gradients.size());
  std::vector<float> item_rows(items.gradients.size());
  const std::array<TableClient::Rows, 2> rows{{{.table = 0, .ids = user_ids, .out = user_rows},
                                               {.table = 1, .ids = item_ids, .out = item_rows}}};
  const TableClient::Seen seen = client.pull(rows, &values.dense);
  std::vector<float> gradients = users.gradients;
  for (size_t i = 0; i < gradients.size(); ++i) {
    gradients[i] += 0.01F * user_rows[i] + values.weight[i % 100];
  }
  const std::array<TableClient::Gradients, 2> pushed{{{.table = 0,
                                                       .ids = user_ids,
                                                       .gradients = gradients,
                                                       .lr = 0.1,
                                                       .seen = seen,
                                                       .read = user_rows},
                                                      {.table = 1,
                                                       .ids = item_ids,
                                                       .gradients = items.gradients,
                                                       .lr = 0.1,
                                                       .seen = seen,
                                                       .read = item_rows}}};
  const std::vector<float> weight(100, static_cast<float>(worker + 1) * 0.3F);
  const std::vector<float> bias{0.1F, item_rows[0], item_rows[1]};
  const TableClient::DenseGradients dense{.gradients = {weight, bias},
                                          .lr = {0.1, 0.2},
                                          .seen = seen,
                                          .read = {values.weight, values.bias}};
  client.push(pushed, &dense);
}

/// What two_tables() hold.
inline std::vector<float> all_values(TableClient& client) {
  DenseValues values;
  std::vector<uint64_t> ids(200);
  std::iota(ids.begin(), ids.end(), 0);
  std::vector<float> all = rows_of(client, 0, ids);
  const std::vector<float> items = rows_of(client, 1, ids);
  client.pull({}, &values.dense);
  for (const auto& part : {items, values.weight, values.bias}) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

struct JobOptions {
  int servers = 1;
  int workers = 1;
  UpdateMode mode = UpdateMode::kSync;
  uint64_t staleness = 0;
  LateOptions late{};
  bool backup = true;
  std::string record{};
  std::string replay{};
  size_t memory_limit = 0;
  std::string spill_directory{};
  const TableSet* refused = nullptr;  ///< with which a worker must not come
  int threads = 16;                   ///< of each process, for functions
  int row_threads = 1;                ///< of each process, for rows
  std::chrono::milliseconds patience = std::chrono::minutes(5);  ///< of a worker
  int lives = 1;  ///< clients of each worker, one after the other
  std::string terms{};
  std::string refused_terms{};  ///< with which a worker must not come
};

/// Servers and workers of one job as threads of this process, with real calls between them.
class TestJob final {
 public:
  /// Runs `work` as each worker. Returns when all have, and the servers have stopped.
  static void run(const TableSet& tables,
                  const JobOptions& options,
                  const std::function<void(TableClient&, int worker)>& work) {
    const std::shared_ptr<rendezvous::Store> store = rendezvous::in_process_store();
    const int size = options.servers + options.workers;
    std::vector<std::string> names;
    for (int s = 0; s < options.servers; ++s) {
      names.push_back(fmt::format("server{}", s));
    }
    std::vector<std::thread> threads;
    for (int rank = 0; rank < size; ++rank) {
      threads.emplace_back([&, rank] {
        if (rank < options.servers) {
          TableServer server(tables,
                             {.servers = names,
                              .server = rank,
                              .workers = options.workers,
                              .mode = options.mode,
                              .staleness = options.staleness,
                              .late = options.late,
                              .terms = options.terms,
                              .backup = options.backup,
                              .record = options.record,
                              .replay = options.replay,
                              .memory_limit = options.memory_limit,
                              .spill_directory = options.spill_directory,
                              .threads = options.row_threads});
          rpc::Functions functions;
          server.serve(functions);
          rpc::AgentOptions mine = agent_options(fmt::format("server{}", rank), rank, size, store);
          mine.num_worker_threads = options.threads;
          rpc::Agent agent(mine, functions);
          EXPECT_TRUE(server.run(agent, Deadline::after(std::chrono::minutes(1))));
          agent.shutdown();
          return;
        }
        const int worker = rank - options.servers;
        rpc::Agent agent(agent_options(fmt::format("worker{}", worker), rank, size, store));
        ClientOptions client{.servers = names,
                             .worker = static_cast<uint32_t>(worker),
                             .terms = options.terms,
                             .timeout = options.patience,
                             .threads = options.row_threads};
        for (int life = 1; life < options.lives; ++life) {
          TableClient former(agent, tables, client);
          work(former, worker);
          client.goes_on = true;
        }
        {
          if (options.refused != nullptr) {
            EXPECT_THAT(
                test::error_text<UsageError>([&] { TableClient(agent, *options.refused, client); }),
                ::testing::AllOf(
                    ::testing::HasSubstr("it has rows \"users\": 5 weights"),
                    ::testing::HasSubstr("this worker has rows \"users\": 6 weights")));
          }
          if (!options.refused_terms.empty()) {
            ClientOptions other = client;
            other.terms = options.refused_terms;
            EXPECT_THROW(TableClient(agent, tables, other), UsageError);
          }
          TableClient tables_of_job(agent, tables, client);
          work(tables_of_job, worker);
          if (options.refused != nullptr) {  // and no second client of this worker after a push
            tables_of_job.push({});
            EXPECT_THROW(TableClient(agent, tables, client), UsageError);
          }
          // All have worked before the first says stop.
          store->set(
              fmt::format("worked/{}", worker), "1", Deadline::after(std::chrono::minutes(1)));
          for (int other = 0; other < options.workers; ++other) {
            (void)store->get(fmt::format("worked/{}", other),
                             Deadline::after(std::chrono::minutes(1)));
          }
          if (worker == 0) {
            tables_of_job.stop();
          }
        }
        agent.shutdown();
      });
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
  }

 private:
  static rpc::AgentOptions agent_options(const std::string& name,
                                         int rank,
                                         int size,
                                         const std::shared_ptr<rendezvous::Store>& store) {
    return {.name = name, .rank = rank, .world_size = size, .store = store, .token = "a secret"};
  }
};

}  // namespace argosy::ps
