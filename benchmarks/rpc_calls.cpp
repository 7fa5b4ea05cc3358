// Time of calls between two workers. Links no libtorch.
//
//     argosy launch --run_mode rpc -n 2 bench_rpc_calls [--samples 2000] [--bytes 16777216]
//
// Worker 0 calls worker 1: an empty function, one call after the other ("empty") and 1,000 at once
// ("flight", per call); one that takes `bytes` of memory, the caller's own ("sent") or made for the
// call ("drafted"); and one that gives them ("given"). "copy" is memcpy of as many bytes. Whoever
// has the bytes in the end looks at one of each page, within the time, and what it finds is
// checked. The peer is peers/rpc_calls.py.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <functional>
#include <iostream>
#include <span>
#include <string>
#include <vector>

#include "argosy/program/command_line.h"
#include "argosy/rpc/rpc.h"

#include <nlohmann/json.hpp>

namespace {

using namespace argosy;
using Samples = std::vector<double>;

constexpr int kInFlight = 1000;
constexpr size_t kPage = 4096;

/// Returns the microseconds of each `timed()`, without the first tenth. `before()` is not timed.
Samples samples_of(
    int samples, const std::function<void()>& timed, const std::function<void()>& before = [] {}) {
  using Clock = std::chrono::steady_clock;
  Samples all;
  for (int i = -samples / 10; i < samples; ++i) {
    before();
    const auto start = Clock::now();
    timed();
    const std::chrono::duration<double, std::micro> took = Clock::now() - start;
    if (i >= 0) {
      all.push_back(took.count());
    }
  }
  return all;
}

void mark(std::span<std::byte> values, int round) {
  for (size_t i = 0; i < values.size(); i += kPage) {
    values[i] = static_cast<std::byte>(round);
  }
}

int64_t look(std::span<const std::byte> values) {
  int64_t sum = 0;
  for (size_t i = 0; i < values.size(); i += kPage) {
    sum += static_cast<int64_t>(values[i]);
  }
  return sum;
}

void calls_in_flight() {
  std::vector<rpc::Future<void>> calls;
  calls.reserve(kInFlight);
  for (int i = 0; i < kInFlight; ++i) {
    calls.push_back(rpc::rpc_async(1, "nothing"));
  }
  for (const rpc::Future<void>& call : calls) {
    call.wait();
  }
}

/// The bytes that travel. They differ from round to round.
class Load {
 public:
  explicit Load(size_t bytes, int samples) : values_(bytes), target_(bytes), samples_(samples) {}

  Samples sent() {
    return rounds([&] { return rpc::rpc_sync<int64_t>(1, "look", rpc::Memory::view(values_)); });
  }
  Samples drafted() {
    rpc::Draft draft;
    return rounds([&] { return rpc::rpc_sync<int64_t>(1, "look", std::move(draft).finish()); },
                  [&] {
                    draft = rpc::agent().allocate(1, values_.size());
                    mark(draft.bytes(), round_);
                  });
  }
  Samples given() {
    return rounds([&] {
      return look(rpc::rpc_sync<rpc::Memory>(1, "give", values_.size(), round_).bytes());
    });
  }
  Samples copied() {
    return rounds([&] {
      std::memcpy(target_.data(), values_.data(), values_.size());
      return look(target_);
    });
  }
  [[nodiscard]] int wrong() const { return wrong_; }

 private:
  Samples rounds(
      const std::function<int64_t()>& timed, const std::function<void()>& before = [] {}) {
    const size_t pages = (values_.size() + kPage - 1) / kPage;
    return samples_of(
        samples_,
        [&] { wrong_ += timed() == round_ * static_cast<int64_t>(pages) ? 0 : 1; },
        [&] {
          round_ = round_ % 250 + 1;
          mark(values_, round_);
          before();
        });
  }

  std::vector<std::byte> values_, target_;
  int samples_;
  int round_ = 0;
  int wrong_ = 0;
};

nlohmann::json measure(int samples, size_t bytes) {
  const int fewer = std::max(samples / 40, 10);
  Load load(bytes, fewer);
  nlohmann::json all{{"bench", "rpc_calls"}, {"ranks", 2}, {"bytes", bytes}};
  all["empty_us"] = samples_of(samples, [] { rpc::rpc_sync(1, "nothing"); });
  Samples flight = samples_of(fewer, calls_in_flight);
  std::ranges::transform(flight, flight.begin(), [](double us) { return us / kInFlight; });
  all["flight_us"] = flight;
  all["sent_us"] = load.sent();
  all["drafted_us"] = load.drafted();
  all["given_us"] = load.given();
  all["copy_us"] = load.copied();
  all["wrong"] = load.wrong();
  return all;
}

void serve_all() {
  rpc::serve("nothing", [] {});
  rpc::serve("look", [](const rpc::Memory& memory) { return look(memory.bytes()); });
  rpc::serve("give", [](rpc::CallContext& call, size_t bytes, int round) {
    rpc::Draft draft = call.allocate(bytes);
    std::memset(draft.bytes().data(), round, bytes);  // as a function would fill it
    return std::move(draft).finish();
  });
}

}  // namespace

int main(int argc, char** argv) {
  int samples = 2000;
  int64_t bytes = int64_t{16} << 20;
  return program::run({"Measures calls between two workers."},
                      {{"--samples", "N", "Calls of an empty function", &samples, {.least = 1}},
                       {"--bytes", "N", "Of the memory that travels", &bytes, {.least = 1}}},
                      argc,
                      argv,
                      [&] {
                        serve_all();
                        rpc::init_rpc();
                        if (rpc::get_current_worker_info().rank == 0) {
                          std::cout << measure(samples, static_cast<size_t>(bytes)).dump() << "\n";
                        }
                        rpc::shutdown();
                      });
}
