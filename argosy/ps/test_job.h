#pragma once

#include <fmt/format.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/ps/table_client.h"
#include "argosy/ps/table_server.h"
#include "argosy/rendezvous/store.h"
#include "argosy/rpc/agent.h"

namespace argosy::ps {

struct JobOptions {
  int servers = 1;
  int workers = 1;
  UpdateMode mode = UpdateMode::kSync;
  uint64_t staleness = 0;
  bool backup = true;
  const TableSet* refused = nullptr;  ///< with which a worker must not come
  int threads = 16;                   ///< of each process, for functions
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
                              .backup = options.backup});
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
        const ClientOptions client{.servers = names, .worker = static_cast<uint32_t>(worker)};
        {
          if (options.refused != nullptr) {
            EXPECT_THROW(TableClient(agent, *options.refused, client), UsageError);
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
