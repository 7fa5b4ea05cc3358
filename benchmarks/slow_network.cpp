// What a strategy that saves traffic costs and brings, on Fashion-MNIST.
//
//     argosy launch --nproc_per_node 2 bench_slow_network [--strategy '{"dgc": true}']
//         [--optimizer momentum|adamw] [--lr 0.05] [--batch 32] [--seed 1]
//         [--steps 50 --warmup 10 | --target 0.85 --most 3000 --check_every 20]
//
// A perceptron of 535,818 parameters (784, 512, 256, 10): 2.1 MB of gradients a step. Each rank has
// every n-th sample of an order that the seed says. With --target it trains until the test set's
// accuracy reaches it, by what the ranks have together; without it measures steps.
#include <argosy/argosy.h>

#include <algorithm>
#include <utility>
#include <vector>

#include <torch/torch.h>

#include "argosy/program/command_line.h"

#include "benchmarks/workload.h"

namespace {

using namespace argosy;

struct Options {
  std::string data = "/usr/share/datasets/fashion-mnist";
  std::string strategy = "{}";
  std::string optimizer = "momentum";
  double lr = 0.05;
  int64_t batch = 32;
  int64_t seed = 1;
  int64_t steps = 50;
  int64_t warmup = 10;
  double target = 0;
  int64_t most = 3000;
  int64_t check_every = 20;
};

/// A split in memory: f32 [samples, 784] from -1 to 1, and i64 [samples].
std::pair<at::Tensor, at::Tensor> read(const std::string& folder, vision::Split split) {
  const vision::FashionMnist set(folder, split, {.transform = {vision::ToTensor()}});
  std::vector<at::Tensor> images, labels;
  for (int64_t i = 0; i < set.size(); ++i) {
    const vision::Example sample = set.get(i);
    images.push_back(sample.image.reshape({-1}));
    labels.push_back(sample.target.reshape({1}));
  }
  return {(torch::stack(images) - 0.5) * 2, torch::cat(labels)};
}

/// Batches of this rank: every n-th sample of one order an epoch, the same on all ranks.
class Batches final {
 public:
  Batches(const std::string& folder, int64_t batch, int64_t seed)
      : batch_(batch), random_(torch::make_generator<at::CPUGeneratorImpl>(seed)) {
    std::tie(images_, labels_) = read(folder, vision::Split::kTrain);
  }
  bench::Batch next() {
    const int64_t all = batch_ * fleet::worker_num();
    if (!order_.defined() || at_ + all > order_.numel()) {
      order_ = torch::randperm(images_.size(0), random_, torch::kLong);
      at_ = 0;
    }
    const at::Tensor mine =
        order_.slice(0, at_ + fleet::worker_index(), at_ + all, fleet::worker_num());
    at_ += all;
    return {images_.index_select(0, mine), labels_.index_select(0, mine)};
  }

 private:
  int64_t batch_;
  at::Generator random_;
  at::Tensor images_, labels_, order_;
  int64_t at_ = 0;
};

torch::nn::Sequential perceptron(int64_t seed) {
  torch::manual_seed(seed);
  return torch::nn::Sequential(torch::nn::Linear(784, 512),
                               torch::nn::ReLU(),
                               torch::nn::Linear(512, 256),
                               torch::nn::ReLU(),
                               torch::nn::Linear(256, 10));
}

/// A training, and what is asked about it.
class Training final {
 public:
  explicit Training(const Options& options)
      : options_(options),
        batches_(options.data, options.batch, options.seed),
        model_(fleet::distributed_model(perceptron(options.seed))),
        optimizer_(fleet::distributed_optimizer(made())) {}

  void step() {
    const bench::Batch batch = batches_.next();
    const at::Tensor loss = torch::nn::functional::cross_entropy(
        model_.forward<at::Tensor>(batch.images), batch.labels);
    loss.backward();
    last_loss_ = loss.item<double>();
    optimizer_.note_loss(last_loss_);
    optimizer_.step();
    optimizer_.zero_grad();
  }

  /// Of what the ranks have together; each judges all of the test set.
  [[nodiscard]] double accuracy() {
    if (!test_.first.defined()) {
      test_ = read(options_.data, vision::Split::kTest);
    }
    const at::NoGradGuard no_grad;
    optimizer_.use_shared_weights(true);
    const at::Tensor output = model_.module()->forward(test_.first);
    const double share = output.argmax(1).eq(test_.second).to(torch::kDouble).mean().item<double>();
    const bool alike = ranks_agree();
    optimizer_.use_shared_weights(false);
    agree_ = agree_ && alike;
    return share;
  }
  [[nodiscard]] double last_loss() const { return last_loss_; }
  [[nodiscard]] bool agree() const { return agree_; }

 private:
  [[nodiscard]] optim::Optimizer made() {
    if (options_.optimizer == "adamw") {
      return optim::AdamW(model_, {.lr = options_.lr});
    }
    return optim::Momentum(model_, {.lr = options_.lr});
  }
  [[nodiscard]] bool ranks_agree() const {
    at::Tensor sum = torch::zeros({1}, torch::kDouble);
    for (const at::Tensor& parameter : model_.parameters()) {
      sum += parameter.detach().to(torch::kDouble).sum();
    }
    at::Tensor low = sum.clone(), high = sum.clone();
    fleet::all_reduce(low, {.op = comm::ReduceOp::kMin});
    fleet::all_reduce(high, {.op = comm::ReduceOp::kMax});
    return torch::equal(low, high);
  }

  const Options& options_;
  Batches batches_;
  parallel::DistributedDataParallel<torch::nn::Sequential> model_;
  optim::Optimizer optimizer_;
  std::pair<at::Tensor, at::Tensor> test_;
  double last_loss_ = 0;
  bool agree_ = true;
};

void report_steps(const Options& options, Training& training, bench::Report& report) {
  double first = 0;
  for (int64_t step = 0; step < options.warmup; ++step) {
    training.step();
    first = step == 0 ? training.last_loss() : first;
  }
  fleet::barrier_worker();
  const double sent_before = bench::sent_mb();
  const bench::Stopwatch watch;
  for (int64_t step = 0; step < options.steps; ++step) {
    training.step();
  }
  const double ms = watch.ms();
  fleet::barrier_worker();
  const double sent = bench::sent_mb() - sent_before;
  report.numbers("samples_ms", {ms / static_cast<double>(options.steps)});
  report.numbers("sent_kb", {1e3 * sent / static_cast<double>(options.steps)});
  report.number("loss_first", first);
  report.number("loss_last", training.last_loss());
  report.number("accuracy", training.accuracy());
}

void report_target(const Options& options, Training& training, bench::Report& report) {
  int64_t step = 0;
  double accuracy = 0;
  const bench::Stopwatch watch;
  while (accuracy < options.target && step < options.most) {
    for (int64_t i = 0; i < options.check_every; ++i, ++step) {
      training.step();
    }
    accuracy = training.accuracy();
  }
  report.numbers("samples", {static_cast<double>(step)});
  report.number("accuracy", accuracy);
  report.text("reached", accuracy >= options.target ? "yes" : "no");
  report.number("seconds", watch.ms() / 1e3);
}

void run(const Options& options) {
  fleet::init(fleet::DistributedStrategy::from_json(options.strategy));
  Training training(options);
  bench::Report report("slow_network");
  report.number("ranks", fleet::worker_num());
  options.target > 0 ? report_target(options, training, report)
                     : report_steps(options, training, report);
  report.text("ranks_agree", training.agree() ? "yes" : "no");
  bench::add_versions(report);
  if (fleet::is_first_worker()) {
    report.print();
  }
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  return argosy::program::run(
      {"Steps of a perceptron on Fashion-MNIST by a strategy that saves traffic."},
      {{"--data", "DIR", "Folder with the four IDX files", &o.data},
       {"--strategy", "JSON", "Of fleet::DistributedStrategy", &o.strategy},
       {"--optimizer", "NAME", "Of each rank", &o.optimizer, {.words = "momentum|adamw"}},
       {"--lr", "X", "Its rate", &o.lr, {.least = 0}},
       {"--batch", "N", "Per rank", &o.batch, {.least = 1}},
       {"--seed", "N", "Of weights and order", &o.seed, {.least = 0}},
       {"--steps", "N", "That are measured", &o.steps, {.least = 1}},
       {"--warmup", "N", "Steps before", &o.warmup, {.least = 1}},
       {"--target",
        "X",
        "Accuracy to reach; 0: measures steps",
        &o.target,
        {.least = 0, .most = 1}},
       {"--most", "N", "Steps after which it gives up", &o.most, {.least = 1}},
       {"--check_every",
        "N",
        "Steps between two looks at the test set",
        &o.check_every,
        {.least = 1}}},
      argc,
      argv,
      [&] { run(o); });
}
