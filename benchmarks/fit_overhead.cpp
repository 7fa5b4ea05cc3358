// What fit() costs beside a loop of the same parts, written by hand: epochs of one and of the other
// in turns, in one process, on two models that begin with the same weights and see the same
// batches.
//
//     argosy launch --nproc_per_node 2 bench_fit_overhead mnist_cnn|resnet18
//         [--repetitions 12] [--warmup 2] [--verbose 2]
//
// Reports of each repetition by how many percent fit's epoch took longer, the mean over the ranks.
// In the end both models have the same weights, to the bit, or the figure is void.
#include <argosy/argosy.h>

#include <algorithm>

#include <torch/torch.h>

#include "argosy/engine/cpu.h"

#include "benchmarks/workload.h"
#include <CLI/CLI.hpp>

namespace {

using namespace argosy;

struct Options {
  std::string model;
  int repetitions = 12;
  int warmup = 2;
  int verbose = 2;
};

using Set = data::TensorDataset<2>;

auto loader_of(const Set& set, int64_t batch_size) {
  return data::DataLoader(
      set,
      fleet::distributed_batch_sampler(set.size(), {.batch_size = batch_size, .shuffle = true}),
      {.num_workers = 1});
}

/// An epoch by hand: the parts of examples/03_fleet.cpp. Returns the mean loss.
template <typename Model, typename Loader>
double epoch_by_hand(Model& model, optim::Optimizer& optimizer, Loader& loader) {
  const loss::CrossEntropy cross_entropy;
  metrics::MeanLoss mean_loss;
  metrics::Accuracy accuracy;
  loader.set_epoch(0);
  for (auto& [images, labels] : loader) {
    const at::Tensor logits = model(images);
    const at::Tensor loss = cross_entropy(logits, labels);
    loss.backward();
    optimizer.step();
    optimizer.zero_grad();
    mean_loss.update(loss, images.size(0));
    accuracy.update(logits, labels);
  }
  (void)accuracy.compute(fleet::group());
  return mean_loss.compute(fleet::group());
}

/// Of `body`, after all ranks have come: the mean over the ranks.
double milliseconds(const std::function<void()>& body) {
  fleet::barrier_worker();
  const bench::Stopwatch watch;
  body();
  const at::Tensor ms = torch::full({1}, watch.ms(), torch::kDouble);
  comm::all_reduce(ms, fleet::group(), {.op = comm::ReduceOp::kAvg});
  return ms.item<double>();
}

bool same_weights(const torch::nn::Module& a, const torch::nn::Module& b) {
  const auto left = a.parameters();
  const auto right = b.parameters();
  return std::equal(
      left.begin(), left.end(), right.begin(), right.end(), [](const auto& x, const auto& y) {
        return x.equal(y);
      });
}

template <typename Net>
void measure(const Options& options, const std::function<Net()>& make, const Set& set) {
  const int64_t batch_size = options.model == "resnet18" ? 32 : 64;
  const auto filled = [&] {
    Net net = make();
    bench::fill_weights(*net);
    return net;
  };
  Net by_hand = filled();
  auto model = fleet::distributed_model(by_hand);
  auto optimizer = fleet::distributed_optimizer(optim::SGD(model, {.lr = 1e-2, .momentum = 0.9}));
  auto loader = loader_of(set, batch_size);

  Net fitted = filled();
  train::Model trainer(fitted);
  trainer.prepare(optim::SGD(fitted, {.lr = 1e-2, .momentum = 0.9}),
                  loss::CrossEntropy(),
                  {metrics::Accuracy()});
  auto fit_loader = loader_of(set, batch_size);

  std::vector<double> overhead_percent;
  std::vector<double> hand_ms;
  std::vector<double> losses;
  for (int repetition = -options.warmup; repetition < options.repetitions; ++repetition) {
    double hand = 0;
    double fit = 0;
    const auto run_hand = [&] {
      hand = milliseconds([&] { losses.push_back(epoch_by_hand(model, optimizer, loader)); });
    };
    const auto run_fit = [&] {
      fit = milliseconds([&] { (void)trainer.fit(fit_loader, {.verbose = options.verbose}); });
    };
    if (repetition % 2 == 0) {  // neither is always the first
      run_hand();
      run_fit();
    } else {
      run_fit();
      run_hand();
    }
    if (repetition >= 0) {
      overhead_percent.push_back(100 * (fit / hand - 1));
      hand_ms.push_back(hand);
    }
  }
  if (!fleet::is_first_worker()) {
    return;
  }
  bench::Report report("fit_overhead");
  report.text("model", options.model);
  report.number("ranks", fleet::worker_num());
  report.numbers("overhead_percent", overhead_percent);
  report.numbers("samples_ms", hand_ms);
  report.number("loss_first", losses.front());
  report.number("loss_last", losses.back());
  report.text("same_weights", same_weights(*by_hand, *fitted) ? "yes" : "no");
  bench::add_versions(report);
  report.print();
}

void run(const Options& options) {
  engine::setup_cpu();
  fleet::init();
  if (options.model == "resnet18") {
    const bench::Batch all = bench::colour_batch(320, 96, 1);
    measure<vision::ResNet>(
        options, [] { return vision::ResNet({.depth = 18}); }, Set(all.images, all.labels));
  } else {
    const bench::Batch all = bench::image_batch(6400, 1);
    measure<vision::MnistCnn>(
        options, [] { return vision::MnistCnn(); }, Set(all.images, all.labels));
  }
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("fit() beside a loop of the same parts.");
  app.add_option("model", options.model)
      ->required()
      ->check(CLI::IsMember({"mnist_cnn", "resnet18"}));
  app.add_option("--repetitions", options.repetitions, "Measured pairs of epochs")
      ->check(CLI::Range(1, 1000));
  app.add_option("--warmup", options.warmup, "Pairs before them")->check(CLI::Range(0, 1000));
  app.add_option("--verbose", options.verbose, "What fit() prints")->check(CLI::Range(0, 3));
  return argosy::bench::main_of(app, argc, argv, [&] { run(options); });
}
