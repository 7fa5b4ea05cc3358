// Sums a large array over all ranks some times, and prints how much this host sent for each byte of
// it.
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "argosy/base/env.h"
#include "argosy/base/error.h"
#include "argosy/comm/group_state.h"
#include "argosy/comm/init.h"

namespace {

using namespace argosy;
using transport::DType;
using transport::ReduceOp;
using transport::Transport;

constexpr int64_t kCount = int64_t{2} << 20;
constexpr int kTimes = 5;

/// Bytes that this network namespace has sent to others.
int64_t bytes_sent() {
  int64_t sum = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/sys/class/net")) {
    int64_t bytes = 0;
    std::ifstream(entry.path() / "statistics/tx_bytes") >> bytes;
    sum += entry.path().filename() == "lo" ? 0 : bytes;
  }
  return sum;
}

/// Returns the name of what carried it; the sums must be right and end in the same bits everywhere.
std::string add_up(const comm::Group& world) {
  std::string name;
  std::vector<float> values(kCount, 0.5F * static_cast<float>(world.rank() + 1));
  world.state().run({.op = "all_reduce"}, {}, [&](Transport& transport, const Deadline& deadline) {
    transport.all_reduce(values.data(), kCount, DType::kF32, ReduceOp::kSum, deadline.remaining());
    name = transport.name();
  });
  const float expected = 0.25F * static_cast<float>(world.size() * (world.size() + 1));
  for (const float value : values) {
    if (value != expected) {
      throw Error("hosts_program", fmt::format("expected {}, got {}", expected, value));
    }
  }
  return name;
}

void meet(const comm::Group& world) {
  world.state().run({.op = "barrier"}, {}, [](Transport& transport, const Deadline& deadline) {
    transport.barrier(deadline.remaining());
  });
}

}  // namespace

int main() {
  const comm::Group world = comm::init();
  add_up(world);  // connections that open
  meet(world);
  const int64_t before = bytes_sent();
  meet(world);
  std::string name;
  for (int i = 0; i < kTimes; ++i) {
    name = add_up(world);
  }
  meet(world);
  const double per_byte = static_cast<double>(bytes_sent() - before) /
                          static_cast<double>(kTimes * kCount * int64_t{sizeof(float)});
  meet(world);
  if (env::get("LOCAL_RANK").value_or("0") == "0") {
    fmt::print("{}: this host sent {:.2f} bytes for each byte of the sum\n", name, per_byte);
  }
}
