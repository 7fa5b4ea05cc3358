#include "benchmarks/op_profile.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>

#include <ATen/record_function.h>

namespace argosy::bench {
namespace {

using Clock = std::chrono::steady_clock;

struct Running final : at::ObserverContext {
  std::string name;
  Clock::time_point began{};
  Clock::duration inside{0};  // of operators that it called
};

struct Sum {
  Clock::duration time{0};
  int64_t calls = 0;
};

std::mutex mutex;
std::map<std::string, Sum> sums;
thread_local std::vector<Running*> stack;

std::unique_ptr<at::ObserverContext> enter(const at::RecordFunction& function) {
  auto running = std::make_unique<Running>();
  running->name = function.name();
  running->began = Clock::now();
  stack.push_back(running.get());
  return running;
}

void leave(const at::RecordFunction& /*function*/, at::ObserverContext* context) {
  auto* const running = static_cast<Running*>(context);
  const Clock::duration whole = Clock::now() - running->began;
  if (stack.empty() || stack.back() != running) {
    return;  // it began before the profile did
  }
  stack.pop_back();
  if (!stack.empty()) {
    stack.back()->inside += whole;
  }
  const std::lock_guard lock(mutex);
  Sum& sum = sums[running->name];
  sum.time += whole - running->inside;
  ++sum.calls;
}

}  // namespace

OpProfile::OpProfile()
    : handle_(at::addGlobalCallback(
          at::RecordFunctionCallback(enter, leave)
              .scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION}))) {
  const std::lock_guard lock(mutex);
  sums.clear();
}

OpProfile::~OpProfile() {
  at::removeCallback(handle_);
}

std::vector<OpProfile::Row> OpProfile::rows() {
  const std::lock_guard lock(mutex);
  std::vector<Row> out;
  for (const auto& [name, sum] : sums) {
    out.push_back({name, std::chrono::duration<double, std::milli>(sum.time).count(), sum.calls});
  }
  std::sort(out.begin(), out.end(), [](const Row& a, const Row& b) { return a.ms > b.ms; });
  return out;
}

}  // namespace argosy::bench
