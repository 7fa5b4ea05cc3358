// One epoch on the real Fashion-MNIST as a user writes it: load, train, evaluate.
//
//     argosy launch --nproc_per_node 2 bench_fashion_mnist_epoch [--data FOLDER] [--batch_size 64]
//         [--num_workers 1] [--input_only]
//
// The peer is peers/fashion_mnist_epoch.py.
#include <argosy/argosy.h>

#include <torch/torch.h>

#include "argosy/program/command_line.h"

#include "benchmarks/workload.h"

namespace {

using namespace argosy;

struct Options {
  std::string data = "/usr/share/datasets/fashion-mnist";
  int64_t batch_size = 64;
  int num_workers = 1;
  bool input_only = false;
};

template <typename Loader>
void deliver(Loader& loader) {
  fleet::barrier_worker();
  const bench::Stopwatch watch;
  int64_t count = 0;
  for (auto& [images, labels] : loader) {
    count += images.size(0);
  }
  const double ms = watch.ms();
  at::Tensor images = torch::tensor({count}, torch::kLong);
  fleet::all_reduce(images);
  if (fleet::is_first_worker()) {
    bench::Report report("input");
    report.number("ranks", fleet::worker_num());
    report.numbers("samples_ms", {ms});
    report.number("images", images.item<double>());
    bench::add_versions(report);
    report.print();
  }
}

void run(const Options& options) {
  const bench::Stopwatch total;
  fleet::init();
  torch::manual_seed(1);
  const bench::Stopwatch load;
  vision::FashionMnist train(options.data, vision::Split::kTrain);
  vision::FashionMnist test(options.data, vision::Split::kTest);
  const double load_ms = load.ms();
  data::DataLoader loader(train,
                          fleet::distributed_batch_sampler(
                              train.size(), {.batch_size = options.batch_size, .shuffle = true}),
                          {.num_workers = options.num_workers});
  if (options.input_only) {
    deliver(loader);
    return;
  }
  data::DataLoader test_loader(test, fleet::evaluation_sampler(test.size(), {.batch_size = 500}));
  vision::MnistCnn net;
  auto model = fleet::distributed_model(net);
  auto optimizer = fleet::distributed_optimizer(optim::Adam(model, {.lr = 1e-3}));

  fleet::barrier_worker();
  const bench::Stopwatch training;
  metrics::MeanLoss mean_loss;
  for (auto& [images, labels] : loader) {
    at::Tensor loss = torch::nn::functional::cross_entropy(model(images), labels);
    loss.backward();
    optimizer.step();
    optimizer.zero_grad();
    mean_loss.update(loss, images.size(0));
  }
  const double loss = mean_loss.compute(fleet::group());
  const double train_ms = training.ms();
  const bench::Stopwatch evaluation;
  metrics::Accuracy accuracy;
  const double share = metrics::evaluate(model, test_loader, accuracy);
  const double evaluate_ms = evaluation.ms();
  const auto counted = static_cast<double>(accuracy.count(fleet::group()));
  if (fleet::is_first_worker()) {
    bench::Report report("fashion_mnist");
    report.number("ranks", fleet::worker_num());
    report.number("load_ms", load_ms);
    report.number("train_ms", train_ms);
    report.number("evaluate_ms", evaluate_ms);
    report.numbers("samples_ms", {train_ms + evaluate_ms});
    report.number("process_ms", total.ms());
    report.number("loss", loss);
    report.number("accuracy", share);
    report.number("evaluated", counted);
    bench::add_versions(report);
    report.print();
  }
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  return argosy::program::run(
      {"One epoch of MnistCnn on Fashion-MNIST."},
      {{"--data", "DIR", "Folder with the four IDX files", &o.data},
       {"--batch_size", "N", "Per rank", &o.batch_size, {.least = 1, .most = 60000}},
       {"--num_workers", "N", "Loader threads", &o.num_workers, {.least = 0, .most = 64}},
       {"--input_only", "", "Deliver the batches and do not train", &o.input_only}},
      argc,
      argv,
      [&] { run(o); });
}
