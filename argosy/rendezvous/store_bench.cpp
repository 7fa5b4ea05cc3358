// What the store costs: start-up with the first call, and one call of each kind.
#include <filesystem>
#include <memory>
#include <string>

#include <benchmark/benchmark.h>

#include "argosy/rendezvous/file_store.h"
#include "argosy/rendezvous/store_client.h"
#include "argosy/rendezvous/store_server.h"

namespace argosy::rendezvous {
namespace {

Deadline soon() {
  return Deadline::after(std::chrono::seconds(20));
}

void start_and_first_call(benchmark::State& state) {
  for (auto _ : state) {
    auto server = StoreServer::start({});
    auto store = connect_store("127.0.0.1", server->port(), "", soon());
    store->set("k", "v", soon());
    state.PauseTiming();
    store.reset();
    server.reset();
    state.ResumeTiming();
  }
}
BENCHMARK(start_and_first_call)->Unit(benchmark::kMillisecond)->UseRealTime()->Iterations(20);

struct Stores {
  std::unique_ptr<StoreServer> server = StoreServer::start({.token = "token"});
  std::shared_ptr<Store> grpc = connect_store("127.0.0.1", server->port(), "token", soon());
  std::string folder = (std::filesystem::temp_directory_path() / "argosy-store-bench").string();
  std::shared_ptr<Store> file = file_store(folder);
  std::shared_ptr<Store> in_process = in_process_store();
  Stores() = default;
  ~Stores() { std::filesystem::remove_all(folder); }
  Stores(const Stores&) = delete;
  Stores& operator=(const Stores&) = delete;

  [[nodiscard]] Store& get(int64_t kind) const {
    return kind == 0 ? *in_process : kind == 1 ? *file : *grpc;
  }
};

Store& store_of(const benchmark::State& state) {
  static const Stores stores;
  return stores.get(state.range(0));
}

void set(benchmark::State& state) {
  Store& store = store_of(state);
  for (auto _ : state) {
    store.set("key", "value", soon());
  }
}

void get(benchmark::State& state) {
  Store& store = store_of(state);
  store.set("key", "value", soon());
  for (auto _ : state) {
    benchmark::DoNotOptimize(store.get("key", soon()));
  }
}

void add(benchmark::State& state) {
  Store& store = store_of(state);
  for (auto _ : state) {
    store.add("counter", 1, soon());
  }
}

void note(benchmark::State& state) {
  const auto presence = store_of(state).announce("rank/0", soon());
  for (auto _ : state) {
    presence->note("all_reduce, seq 1041");
  }
}

void every_store(benchmark::internal::Benchmark* one) {
  one->ArgName("in_process0_file1_grpc2")->DenseRange(0, 2)->UseRealTime();
}
BENCHMARK(set)->Apply(every_store);
BENCHMARK(get)->Apply(every_store);
BENCHMARK(add)->Apply(every_store);
BENCHMARK(note)->Apply(every_store);

}  // namespace
}  // namespace argosy::rendezvous
