// Time and memory of a training step of a Gpt whose parameters, gradients and optimizer's state are
// divided among the ranks, or not.
//
//     argosy launch --nproc_per_node 2 bench_sharded_step [--way ddp|state|full|independent]
//         [--model gpt:vocab_size=1000,layers=8,width=512,heads=8,context=256] [--batch 1]
//         [--degree 0] [--steps 12] [--warmup 4] [--amp bf16] [--device cpu|cuda:0]
//
// ways: each rank has everything (ddp); gradients and state are divided (state), and parameters too
// (full); the ranks train beside each other without a word, which is the floor that all are
// measured from (independent). --degree: parameters are divided among so many ranks. The peer is
// peers/sharded_step.py: the same weights, tokens and order.
#include <argosy/argosy.h>

#include <chrono>
#include <functional>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <torch/torch.h>

#include "argosy/base/check.h"
#include "argosy/engine/autocast.h"
#include "argosy/program/command_line.h"
#include "argosy/text/models/gpt.h"

#include "benchmarks/workload.h"

namespace {

using namespace argosy;

struct Options {
  std::string way = "full";
  std::string model = "gpt:vocab_size=1000,layers=8,width=512,heads=8,context=256";
  std::string amp{};
  std::string device = "cpu";
  int64_t batch = 1;
  int64_t degree = 0;
  int steps = 12;
  int warmup = 4;
  bool recompute = false;
};

constexpr int kBatches = 4;     // in turns
constexpr double kRate = 3e-4;  // losses fall within a few steps

/// A Gpt with its loss, as a wrapper calls it.
struct TrainedImpl : torch::nn::Module {
  explicit TrainedImpl(const text::GptOptions& options) {
    gpt = register_module("gpt", text::Gpt(options));
    gpt->initialize(1);
  }
  at::Tensor forward(const at::Tensor& tokens, const at::Tensor& targets) {
    return gpt->loss(tokens, targets);
  }
  text::Gpt gpt{nullptr};
};
TORCH_MODULE(Trained);

/// Tokens by a formula that the peer has too.
at::Tensor tokens_of(const Options& options, const text::GptOptions& model, int rank, int number) {
  const int64_t count = options.batch * (model.context + 1);
  const at::Tensor index = at::arange(count, at::kLong) + 7919 * (kBatches * rank + number);
  return (index * index % 65537 + 3 * index)
      .remainder(model.vocab_size)
      .view({options.batch, model.context + 1})
      .to(at::Device(options.device));
}

/// What a device still computes belongs to the step that asked for it.
void wait_for(const at::Device& device) {
  if (device.is_cuda()) {
    torch::cuda::synchronize(device.index());
  }
}

struct Measured {
  std::vector<double> samples_ms{};
  std::vector<double> losses{};
  double pss_mb = 0;   // with all gradients, before the last step that is not measured
  double sent_mb = 0;  // by this host, in a step
};

Measured run_steps(const Options& options,
                   const text::GptOptions& model_options,
                   optim::Optimizer optimizer,
                   const std::function<at::Tensor(const at::Tensor&, const at::Tensor&)>& loss_of) {
  std::vector<at::Tensor> batches;
  for (int i = 0; i < kBatches; ++i) {
    batches.push_back(tokens_of(options, model_options, fleet::worker_index(), i));
  }
  const at::Device device(options.device);
  Measured all;
  double sent_before = 0;
  for (int step = 0; step < options.warmup + options.steps; ++step) {
    if (step == options.warmup) {
      sent_before = bench::sent_mb();
    }
    const auto begin = std::chrono::steady_clock::now();
    const at::Tensor& tokens = batches[static_cast<size_t>(step % kBatches)];
    at::Tensor loss;
    {
      std::optional<engine::Autocast> autocast;
      if (!options.amp.empty()) {
        autocast.emplace(engine::AutocastOptions{.device = device.type(), .dtype = at::kBFloat16});
      }
      loss = loss_of(tokens.narrow(1, 0, model_options.context),
                     tokens.narrow(1, 1, model_options.context));
    }
    loss.backward();
    if (step + 1 == options.warmup) {
      all.pss_mb = bench::pss_mb();
    }
    optimizer.step();
    optimizer.zero_grad();
    wait_for(device);
    if (step >= options.warmup) {
      all.samples_ms.push_back(
          std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
              .count());
    }
    if (step % kBatches == 0) {
      all.losses.push_back(loss.item<double>());
    }
  }
  all.sent_mb = (bench::sent_mb() - sent_before) / options.steps;
  return all;
}

/// The mean over the ranks, of each step.
std::vector<double> over_ranks(const std::vector<double>& samples) {
  const at::Tensor all = torch::tensor(samples, torch::kDouble);
  comm::all_reduce(all, fleet::group(), {.op = comm::ReduceOp::kAvg});
  const auto* const values = all.data_ptr<double>();
  return {values, values + all.numel()};
}

/// Of all parameters, the same on all ranks: where they are divided, an operator gathers each.
double checksum(const engine::NamedTensors& parameters) {
  const torch::NoGradGuard no_grad;
  double sum = 0;
  for (const auto& [name, parameter] : parameters) {
    sum += parameter.to(torch::kDouble).sum().item<double>();
  }
  return sum;
}

bool same_on_all(double value) {
  const at::Tensor both = torch::tensor({value, -value}, torch::kDouble);
  comm::all_reduce(both, fleet::group(), {.op = comm::ReduceOp::kMax});
  return both[0].item<double>() == -both[1].item<double>();
}

void run(const Options& options) {
  fleet::DistributedStrategy strategy{.sharding = options.way == "full" || options.way == "state"};
  strategy.sharding_configs.stage = options.way == "state" ? 2 : 3;
  if (options.degree > 0) {
    strategy.hybrid_configs = {{"sharding", options.degree}};
  }
  fleet::init(strategy);
  const text::GptOptions model_options = text::gpt_options(options.model);
  Trained net(model_options);
  net->to(at::Device(options.device));
  if (options.recompute) {
    net->gpt->set_block_runner([](const text::GptBlock& block, const at::Tensor& x) {
      return parallel::recompute(block, x);
    });
  }
  const bool alone = options.way == "independent";
  Measured measured;
  double sum = 0;
  if (alone) {
    optim::Optimizer optimizer = optim::AdamW(net, {.lr = kRate});
    measured = run_steps(options, model_options, optimizer, [&](const auto& x, const auto& y) {
      return net->forward(x, y);
    });
    sum = checksum(engine::named_parameters(net));
  } else {
    auto model = fleet::distributed_model(net);
    optim::Optimizer optimizer = fleet::distributed_optimizer(optim::AdamW(model, {.lr = kRate}));
    measured = run_steps(options, model_options, optimizer, [&](const auto& x, const auto& y) {
      return model(x, y);
    });
    sum = checksum(engine::named_parameters(model));
  }
  const std::vector<double> typical = over_ranks(measured.samples_ms);
  const bool agree = same_on_all(sum);
  if (fleet::is_first_worker()) {
    bench::Report report("gpt");
    report.number("ranks", fleet::worker_num());
    report.number("batch", static_cast<double>(options.batch));
    report.numbers("samples_ms", typical);
    report.number("loss_first", measured.losses.front());
    report.number("loss_last", measured.losses.back());
    if (!alone) {
      report.number("layout_checksum", sum);  // whatever is divided, the same
    }
    report.number("pss_mb", measured.pss_mb);
    report.number("sent_mb", measured.sent_mb);
    report.text("ranks_agree", agree || alone ? "yes" : "no");
    bench::add_versions(report);
    report.print();
  }
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  return argosy::program::run(
      {"Time of a training step of a Gpt that ranks divide."},
      {{"--way",
        "NAME",
        "What the ranks divide: nothing, gradients and state, or parameters too",
        &o.way,
        {.words = "ddp|state|full|independent"}},
       {"--model", "TEXT", "The model: gpt:layers=8,width=512", &o.model},
       {"--batch", "N", "Sequences of a batch", &o.batch, {.least = 1, .most = 100000}},
       {"--degree",
        "N",
        "Ranks that divide the parameters; 0: all",
        &o.degree,
        {.least = 0, .most = 4096}},
       {"--recompute", "", "The blocks' activations are computed again", &o.recompute},
       {"--amp", "DTYPE", "Mixed precision", &o.amp, {.words = "bf16"}},
       {"--device", "DEVICE", "Where the model is: cpu, cuda:0", &o.device},
       {"--steps", "N", "Measured steps", &o.steps, {.least = 1, .most = 100000}},
       {"--warmup", "N", "Steps before them", &o.warmup, {.least = 1, .most = 100000}}},
      argc,
      argv,
      [&] { run(o); });
}
