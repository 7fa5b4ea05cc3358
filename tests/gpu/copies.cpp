/// How fast a device moves bytes and makes the sums of NCCL's exact mode. Prints a line of JSON for
/// each kind of work and round, rounds interleaved; run.sh says how it is started.
///
///     gpu_copies --device cuda:0 --elements 67108864 --rounds 5
///
/// "second" is the stand-in of tests/support/second_device.h, whose times mean nothing.
#include <fmt/format.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <c10/core/StreamGuard.h>
#include <torch/torch.h>

#include "argosy/comm/device_queues.h"
#include "argosy/program/command_line.h"
#include "argosy/transport/leaf_deal.h"
#include "argosy/transport/reduce.h"

#include "tests/support/second_device.h"

namespace argosy {
namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  std::string device = "cuda:0";
  int64_t elements = int64_t{1} << 26;  ///< of f32: 256 MiB, several times a card's cache
  int rounds = 5;
  int64_t least_ms = 100;  ///< of each measurement
};

c10::Device device_of(const std::string& name) {
  if (name != "second") {
    return c10::Device(name);
  }
  comm::set_stream_handle(test::second_device().type(), &test::handle_of);
  return test::second_device();
}

/// One kind of work, which `queue`s itself.
struct Work {
  std::string what{};
  double bytes = 0;  ///< read and written, the fewest that there could be
  std::function<void()> queue{};
};

class Bench final {
 public:
  explicit Bench(const Options& options)
      : options_(options),
        device_(device_of(options.device)),
        queue_(comm::queues_of(device_)->make()) {
    const auto inside = queue_->enter();
    for (int i = 0; i < kTerms; ++i) {
      terms_.push_back(at::full({options.elements}, i + 1.0F, at::TensorOptions(device_)));
    }
    result_ = at::empty_like(terms_[0]);
    queue_->follow(*queue_->mark_of_caller());
    add_copies();
    for (const int count : {2, 3, 4, 8}) {
      for (const bool half : {false, true}) {
        add_sum(count, half);
      }
    }
  }

  void run() {
    for (int round = 0; round <= options_.rounds; ++round) {
      for (const Work& work : works_) {
        const double gb_per_s = rate_of(work);
        if (round > 0) {  // the first warms up
          fmt::print("{{\"part\": \"copies\", \"what\": \"{}\", ", work.what);
          fmt::print("\"round\": {}, \"gb_per_s\": {:.6g}}}\n", round, gb_per_s);
        }
      }
    }
  }

 private:
  static constexpr int kTerms = 8;

  /// On the device both ways count, as a sum's do; over the bus a byte counts once.
  void add_copies() {
    const auto bytes = static_cast<double>(terms_[0].nbytes());
    works_.push_back({"copy on the device", 2 * bytes, [this] {
                        queue_->copy(result_.data_ptr(),
                                     terms_[0].data_ptr(),
                                     static_cast<int64_t>(terms_[0].nbytes()));
                      }});
    for (const bool pinned : {false, true}) {
      if (pinned && !device_.is_cuda()) {
        continue;  // nothing is pinned for the second device
      }
      const at::Tensor host =
          at::ones({options_.elements}, at::TensorOptions(at::kFloat).pinned_memory(pinned));
      const std::string memory = pinned ? "pinned memory" : "memory";
      const auto between = [this](const at::Tensor& to, const at::Tensor& from) {
        return [=, this] {
          const c10::StreamGuard guard(comm::stream_of(*queue_));
          to.copy_(from, /*non_blocking=*/true);
        };
      };
      works_.push_back({"from " + memory, bytes, between(result_, host)});
      works_.push_back({"to " + memory, bytes, between(host, result_)});
    }
  }

  void add_sum(int count, bool half) {
    const auto deal = std::make_shared<transport::LeafDeal>(transport::LeafDeal::one_each(count));
    const int64_t elements = half ? 2 * options_.elements : options_.elements;
    works_.push_back({fmt::format("sum of {} {}", count, half ? "bf16" : "f32"),
                      (count + 1) * static_cast<double>(terms_[0].nbytes()),
                      [=, this] {
                        std::vector<const void*> data;
                        for (int i = 0; i < count; ++i) {
                          data.push_back(terms_[static_cast<size_t>(i)].data_ptr());
                        }
                        queue_->reduce({.data = data.data(),
                                        .merges = deal->sums().front().merges.data(),
                                        .count = count,
                                        .divisor = count},
                                       result_.data_ptr(),
                                       elements,
                                       half ? transport::DType::kBf16 : transport::DType::kF32,
                                       transport::ReduceOp::kSum);
                      }});
  }

  void await() const {
    const auto mark = queue_->mark();
    while (!mark->has_passed()) {
      std::this_thread::yield();
    }
  }
  /// GB (10^9 bytes) a second, of so many in a row that the start does not count.
  [[nodiscard]] double rate_of(const Work& work) const {
    for (int64_t repeats = 1;; repeats *= 2) {
      const auto begin = Clock::now();
      for (int64_t i = 0; i < repeats; ++i) {
        work.queue();
      }
      await();
      const std::chrono::duration<double> took = Clock::now() - begin;
      if (took >= std::chrono::milliseconds(options_.least_ms)) {
        return work.bytes * static_cast<double>(repeats) / took.count() / 1e9;
      }
    }
  }

  const Options options_;
  const c10::Device device_;
  const std::unique_ptr<transport::DeviceQueue> queue_;
  std::vector<at::Tensor> terms_;
  at::Tensor result_;
  std::vector<Work> works_;
};

}  // namespace
}  // namespace argosy

int main(int argc, char** argv) {
  argosy::Options options;
  return argosy::program::run(
      {"Rates of a device's copies, and of the sums of NCCL's exact mode."},
      {{"--device", "NAME", "cuda:0, or second: a stand-in for tests", &options.device},
       {"--elements", "N", "f32 in each tensor", &options.elements, {.least = 1}},
       {"--rounds", "N", "Measurements of each kind", &options.rounds, {.least = 1}},
       {"--least_ms", "N", "Time of a measurement", &options.least_ms, {.least = 1}}},
      argc,
      argv,
      [&] { argosy::Bench(options).run(); });
}
