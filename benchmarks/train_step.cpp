// Time of a training step: forward, backward with reduction, Adam, zero_grad.
//
//     argosy launch --nproc_per_node 2 bench_train_step resnet18|resnet18_sized|mnist_cnn
//         [--steps 60] [--warmup 15] [--independent | --share_parameters --overlap_update]
//         [--device cpu|cuda:0]
//
// The peer is peers/train_step.py: same weights, same data, same order. --independent: the ranks
// train beside each other without a word, which is the floor that coupling is measured from.
#include <argosy/argosy.h>

#include <chrono>
#include <numeric>
#include <optional>

#include <torch/torch.h>

#include "argosy/base/check.h"
#include "argosy/engine/layout.h"
#include "argosy/engine/memory_format.h"
#include "argosy/program/command_line.h"

#include "benchmarks/op_profile.h"
#include "benchmarks/workload.h"

namespace {

using namespace argosy;

struct Options {
  std::string model;
  std::string device = "cpu";
  int steps = 60;
  int warmup = 15;
  bool independent = false;
  bool in_step = false;
  bool share_parameters = false;
  bool overlap_update = false;
  bool profile = false;
  bool as_it_comes = false;
};

constexpr int64_t kBatch = 100;  // per rank
constexpr int64_t kColorBatch = 32;
constexpr int64_t kSide = 96;
constexpr int64_t kBatches = 8;

/// Equal on all ranks and on the peer: the parameters' sum.
std::pair<double, bool> checksum(const engine::NamedTensors& parameters) {
  torch::NoGradGuard no_grad;
  at::Tensor sum = torch::zeros({1}, torch::kDouble);
  for (const auto& [name, p] : parameters) {
    sum += p.to(torch::kDouble).sum().cpu();
  }
  at::Tensor low = sum.clone();
  at::Tensor high = sum.clone();
  comm::all_reduce(low, fleet::group(), {.op = comm::ReduceOp::kMin});
  comm::all_reduce(high, fleet::group(), {.op = comm::ReduceOp::kMax});
  return {sum.item<double>(), torch::equal(low, high)};
}

/// Of each step, over the ranks: either may have the slower core. kAvg: of a typical rank; kMax: of
/// the one that the others would wait for.
std::vector<double> over_ranks(const std::vector<double>& samples, comm::ReduceOp op) {
  const at::Tensor all = torch::tensor(samples, torch::kDouble);
  comm::all_reduce(all, fleet::group(), {.op = op});
  const auto* const values = all.data_ptr<double>();
  return {values, values + all.numel()};
}

/// Parameters and gradients.
double model_mb(const engine::NamedTensors& parameters) {
  double bytes = 0;
  for (const auto& [name, p] : parameters) {
    bytes += 2.0 * static_cast<double>(p.nbytes());
  }
  return bytes / 1e6;
}

/// Milliseconds of a step by libtorch operator, of rank 0.
void print_profile(int steps, double step_ms) {
  if (!fleet::is_first_worker()) {
    return;
  }
  double rest = step_ms;
  for (const bench::OpProfile::Row& row : bench::OpProfile::rows()) {
    const double ms = row.ms / steps;
    rest -= ms;
    if (ms > step_ms / 500) {
      fmt::print("{:8.3f} ms {:5.1f} % {:7.1f} calls  {}\n",
                 ms,
                 100 * ms / step_ms,
                 static_cast<double>(row.calls) / steps,
                 row.name);
    }
  }
  fmt::print("{:8.3f} ms {:5.1f} %                outside of operators\n{:8.3f} ms a step\n",
             rest,
             100 * rest / step_ms,
             step_ms);
}

/// What a device still computes belongs to the step that asked for it.
void wait_for(const at::Device& device) {
  if (device.is_cuda()) {
    torch::cuda::synchronize(device.index());
  }
}

/// What the wrapper says of each step; nothing where there is none.
struct StepStats {
  std::vector<double> backward_ms;
  std::vector<double> exposed_ms;    ///< the part of the reduction that backward waits for
  std::vector<double> bucket_bytes;  ///< in the order of reduction

  template <typename Model>
  void add(const Model& model) {
    if constexpr (requires { model.stats(); }) {
      using Ms = std::chrono::duration<double, std::milli>;
      const auto stats = model.stats();
      backward_ms.push_back(Ms(stats.backward).count());
      exposed_ms.push_back(Ms(stats.exposed).count());
      bucket_bytes.clear();
      for (const auto& bucket : stats.buckets) {
        bucket_bytes.push_back(static_cast<double>(bucket.bytes));
      }
    }
  }
};

template <typename Model, typename Optimizer, typename Loss>
void measure_with(const Options& options, Model model, Optimizer optimizer, Loss loss_of_step) {
  std::vector<double> samples_ms;
  std::vector<at::Tensor> losses;
  StepStats stats;
  std::optional<bench::OpProfile> profile;
  const at::Device device(options.device);
  fleet::barrier_worker();
  for (int step = 0; step < options.warmup + options.steps; ++step) {
    if (options.profile && step == options.warmup) {
      profile.emplace();
    }
    const bench::Stopwatch watch;
    if (options.in_step) {
      fleet::barrier_worker();
    }
    at::Tensor loss = loss_of_step(model, step);
    loss.backward();
    optimizer.step();
    optimizer.zero_grad();
    wait_for(device);
    if (step >= options.warmup) {
      samples_ms.push_back(watch.ms());
      stats.add(model);
    }
    losses.push_back(loss.detach());
  }
  if (profile) {
    profile.reset();
    const double total = std::accumulate(samples_ms.begin(), samples_ms.end(), 0.0);
    print_profile(options.steps, total / options.steps);
    return;
  }
  const double memory = bench::pss_mb();
  const auto [sum, agree] = checksum(engine::named_parameters(model));
  const std::vector<double> typical = over_ranks(samples_ms, comm::ReduceOp::kAvg);
  const std::vector<double> slowest = over_ranks(samples_ms, comm::ReduceOp::kMax);
  if (fleet::is_first_worker()) {
    bench::Report report(options.model);
    report.number("ranks", fleet::worker_num());
    report.numbers("samples_ms", typical);
    report.numbers("slowest_ms", slowest);
    report.numbers("backward_ms", stats.backward_ms);
    report.numbers("exposed_ms", stats.exposed_ms);
    report.numbers("bucket_bytes", stats.bucket_bytes);
    report.number("loss_first", losses.front().item<double>());
    report.number("loss_last", losses.back().item<double>());
    report.number("checksum", sum);
    report.number("pss_mb", memory);
    report.number("model_mb", model_mb(engine::named_parameters(model)));
    report.text("ranks_agree", agree || options.independent ? "yes" : "no");
    bench::add_versions(report);
    report.print();
  }
}

template <typename Net, typename Loss>
void measure(const Options& options, Net net, Loss loss_of_step) {
  if (options.independent) {
    measure_with(options, net, optim::Adam(net, {.lr = 1e-3}), loss_of_step);
  } else {
    auto model = fleet::distributed_model(net);
    measure_with(options,
                 model,
                 fleet::distributed_optimizer(optim::Adam(model, {.lr = 1e-3})),
                 loss_of_step);
  }
}

template <typename Net>
void measure_on(const Options& options, Net net, std::vector<bench::Batch> batches) {
  const at::Device device(options.device);
  net->to(device);
  for (bench::Batch& batch : batches) {
    batch = {batch.images.to(device), batch.labels.to(device)};
  }
  measure(options, net, [&](auto& model, int step) {
    const bench::Batch& batch = batches[step % kBatches];
    return torch::nn::functional::cross_entropy(model(batch.images), batch.labels);
  });
}

void run(const Options& options) {
  using engine::MemoryFormat;
  fleet::init(
      {.divide_update = !options.as_it_comes,
       .share_parameters = options.share_parameters,
       .overlap_update = options.overlap_update,
       .memory_format = options.as_it_comes ? MemoryFormat::kContiguous : MemoryFormat::kAuto});
  const int rank = fleet::worker_index();
  if (options.model == "resnet18_sized") {
    ARGOSY_CHECK(options.device == "cpu", "bench.train_step", "resnet18_sized takes no --device");
    measure(options, bench::ResNet18Sized(rank), [](auto& model, int) { return model(); });
    return;
  }
  std::vector<bench::Batch> batches;
  for (int64_t i = 0; i < kBatches; ++i) {
    const int64_t seed = 100 * rank + i;
    batches.push_back(options.model == "resnet18" ? bench::color_batch(kColorBatch, kSide, seed)
                                                  : bench::image_batch(kBatch, seed));
  }
  if (options.model == "resnet18") {
    vision::ResNet net;
    bench::fill_weights(*net);
    if (options.independent) {  // fleet does the same by itself: memory_format = auto
      engine::to_channels_last(*net);
      for (bench::Batch& batch : batches) {
        batch.images = batch.images.contiguous(at::MemoryFormat::ChannelsLast);
      }
    }
    measure_on(options, net, batches);
  } else {
    vision::MnistCnn net;
    bench::fill_weights(*net);
    measure_on(options, net, batches);
  }
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  return argosy::program::run(
      {"Time of a training step of DistributedDataParallel."},
      {{"model",
        "",
        "",
        &o.model,
        {.words = "resnet18|resnet18_sized|mnist_cnn", .required = true}},
       {"--independent", "", "Without any exchange between the ranks", &o.independent},
       {"--in_step", "", "Each step begins on all ranks at once", &o.in_step},
       {"--share_parameters", "", "One copy for all ranks", &o.share_parameters},
       {"--overlap_update", "", "Updates beside backward", &o.overlap_update},
       {"--as_it_comes",
        "",
        "Row-major memory, the whole update on each rank; and ARGOSY_MALLOC=default "
        "beside it: what libtorch does by itself",
        &o.as_it_comes},
       {"--profile", "", "Print the time of libtorch's operators instead", &o.profile},
       {"--device", "NAME", "Where the networks compute: cpu, cuda:0, …", &o.device},
       {"--steps", "N", "Measured steps", &o.steps, {.least = 1, .most = 100000}},
       {"--warmup", "N", "Steps before them", &o.warmup, {.least = 0, .most = 100000}}},
      argc,
      argv,
      [&] { run(o); });
}
