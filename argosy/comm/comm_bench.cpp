/// What a group adds to its transport: queue, Work, hooks, flight record. The transport here does
/// nothing, so all time is ours.
#include <memory>
#include <utility>

#include <benchmark/benchmark.h>
#include <torch/torch.h>

#include "argosy/comm/comm.h"
#include "argosy/comm/flight_recorder.h"
#include "argosy/comm/group_state.h"
#include "argosy/comm/solo_transport.h"

namespace argosy::comm {
namespace {

using namespace std::chrono_literals;

class PretendTransport final : public SoloTransport {
 public:
  [[nodiscard]] int size() const override { return 2; }
};

Group pair() {
  return make_group(
      std::make_unique<PretendTransport>(), nullptr, {.name = "pair", .timeout = 30s});
}

void blocking(benchmark::State& state) {
  const Group group = pair();
  const at::Tensor tensor = at::ones({4});
  for (auto _ : state) {
    all_reduce(tensor, group);
  }
}
BENCHMARK(blocking);

/// Hand-off to the queue's thread and back.
void async_and_wait(benchmark::State& state) {
  const Group group = pair();
  const at::Tensor tensor = at::ones({4});
  for (auto _ : state) {
    all_reduce_async(tensor, group).wait();
  }
}
BENCHMARK(async_and_wait)->UseRealTime();

/// Eight in a row, as a reducer does with its buckets: time per operation.
void async_eight(benchmark::State& state) {
  const Group group = pair();
  const at::Tensor tensor = at::ones({4});
  for (auto _ : state) {
    Work last;
    for (int i = 0; i < 8; ++i) {
      last = all_reduce_async(tensor, group);
    }
    last.wait();
  }
  state.SetItemsProcessed(8 * state.iterations());
}
BENCHMARK(async_eight)->UseRealTime();

void flight_recorder(benchmark::State& state) {
  FlightRecorder recorder(0, "");
  const auto now = std::chrono::steady_clock::now();
  OperationEvent event{.group = "world",
                       .seq = 1,
                       .op = "all_reduce",
                       .dtype = "f32",
                       .elements = 4,
                       .bytes = 16,
                       .peer = -1,
                       .enqueued = now,
                       .started = now,
                       .ended = now,
                       .error = {}};
  for (auto _ : state) {
    recorder.on_enqueued(event);
    recorder.on_started(event);
    recorder.on_ended(event);
    ++event.id;
  }
}
BENCHMARK(flight_recorder);

}  // namespace
}  // namespace argosy::comm
