// Image classification on CIFAR-10, as in Paddle's tutorial: CifarNet, Adam 1e-3, batches of 32,
// the last short one dropped, validation after each epoch.
//
//     argosy data fetch cifar10 --to .
//     ./cifar10 cifar-10-python.tar.gz [--epochs 10] [--batch_size 32]
//     argosy launch --nproc_per_node 2 ./cifar10 cifar-10-python.tar.gz --batch_size 16
//
// Reads the archive as Paddle downloads it (Python's or the binary form, nothing is unpacked).
// Expect after ten epochs, on parts of CIFAR-10 in the original formats (the whole has 50,000
// training pictures, takes five times as long as the larger part and gets further):
//
//                                     pictures        processor time   loss   accuracy
//     cifar-10-python.tar.gz, alone    3,000 +   600  13 s            1.480   40.0 %
//     on two processes                                15 s            1.552   40.5 %
//     cifar-10-binary.tar.gz, alone   10,000 + 2,000  41 s            1.219   55.2 %
//     on two processes                                47 s            1.204   55.0 %
//
// --batch_size is each process's: halve it on two, and each step sees the same pictures. The
// curves then differ by rounding alone, which training makes larger: by 1e-6 in the losses of the
// first ten steps, 0.01 in the mean loss of the first epoch, less than 0.1 (on the larger part
// 0.03) in any. The last accuracies differ by less than 3 points, those on the way, of 600
// pictures, by up to 7.
#include <argosy/argosy.h>
#include <argosy/program/command_line.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include <torch/torch.h>

using namespace argosy;

namespace {

struct Options {
  std::string data{};
  int epochs = 10;
  int64_t batch_size = 32;
  int64_t samples = 0;  // of each set; 0: all
  int workers = 1;
};

/// The first `samples` of a data set, or all of them.
data::Subset<vision::Cifar10> first(vision::Cifar10 set, int64_t samples) {
  std::vector<int64_t> indices(samples == 0 ? set.size() : std::min(samples, set.size()));
  std::iota(indices.begin(), indices.end(), 0);
  return {std::move(set), std::move(indices)};
}

void run(const Options& options) {
  fleet::init();
  torch::manual_seed(1);
  const vision::PictureOptions pictures{.transform = {vision::ToTensor()}};
  const auto train = first({options.data, vision::Split::kTrain, pictures}, options.samples);
  const auto test = first({options.data, vision::Split::kTest, pictures}, options.samples);
  data::DataLoader loader(
      train,
      fleet::distributed_batch_sampler(
          train.size(), {.batch_size = options.batch_size, .shuffle = true, .drop_last = true}),
      {.num_workers = options.workers});
  data::DataLoader test_loader(test, fleet::evaluation_sampler(test.size(), {.batch_size = 500}));
  auto model = fleet::distributed_model(vision::CifarNet(10));
  auto optimizer = fleet::distributed_optimizer(optim::Adam(model, {.lr = 1e-3}));

  if (loader.size() == 0) {
    throw UsageError("cifar10",
                     fmt::format("{} pictures are less than a batch of {} on each process: take "
                                 "more by --samples, or a smaller --batch_size",
                                 train.size(),
                                 options.batch_size));
  }
  fleet::print("CifarNet on {} process{}: {} training and {} test pictures\n",
               fleet::worker_num(),
               fleet::worker_num() == 1 ? "" : "es",
               train.size(),
               test.size());
  for (int epoch = 1; epoch <= options.epochs; ++epoch) {
    metrics::MeanLoss mean_loss;
    for (auto& [images, labels] : loader) {
      auto loss = torch::nn::functional::cross_entropy(model(images), labels);
      loss.backward();
      optimizer.step();
      optimizer.zero_grad();
      mean_loss.update(loss, images.size(0));
    }
    metrics::Accuracy accuracy;
    const double right = metrics::evaluate(model, test_loader, accuracy);
    fleet::print(
        "epoch {:2}: loss {:.4f}, accuracy {:.2f} %  (waited {:.0f} % of the time for data)\n",
        epoch,
        mean_loss.compute(fleet::group()),
        100 * right,
        100 * loader.stats().input_bound());
  }
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Trains CifarNet on CIFAR-10; under `argosy launch` on several processes.");
  app.add_option("data", options.data, "cifar-10-python.tar.gz, or its folder")->required();
  app.add_option("--epochs", options.epochs, "Passes over the training set")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  app.add_option("--batch_size", options.batch_size, "Pictures per step and process")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  app.add_option("--samples", options.samples, "The first of each set only; 0: all")
      ->check(CLI::Range(0, 50000))
      ->capture_default_str();
  app.add_option("--workers", options.workers, "Loader threads")
      ->check(CLI::Range(0, 256))
      ->capture_default_str();
  return program::run(app, argc, argv, [&] { run(options); });
}
