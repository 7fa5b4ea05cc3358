// The first lesson of Paddle's course, handwritten digits: DigitNet, Adam 1e-3 with L2Decay(1e-5),
// batches of 100, accuracy while it trains, and a look into the layers.
//
//     argosy data fetch mnist --to IDX_FOLDER
//     python3 mnist_to_json.py IDX_FOLDER mnist.json.gz       # from MNIST's four files, 2 minutes
//     ./mnist_json mnist.json.gz [--epochs 5] [--batch_size 100] [--inspect]
//     argosy launch --nproc_per_node 2 ./mnist_json mnist.json.gz --batch_size 50
//
// mnist_to_json.py is in tests/data of the source tree and in share/argosy where it is installed.
//
// Expect on the whole set (50,000 digits to train, 10,000 to validate, 10,000 to test):
//
//     epoch                     1        2        3        4        5     test   processor time
//     loss                   0.291    0.081    0.058    0.046    0.039
//     accuracy, alone      97.21 %  98.09 %  98.43 %  98.33 %  98.56 %  98.77 %  70 s, one core
//     on two processes     97.16 %  98.10 %  98.47 %  98.41 %  98.55 %  98.75 %  72 s, two cores
//
// --batch_size is each process's: halve it on two, and each step sees the same digits. The curves
// then differ by rounding alone: by at most 0.001 in the loss of an epoch, 0.2 points in accuracy.
//
// --inspect shows the layers before and after: shape of the output, number of parameters, and the
// means (standard deviations) of weights, outputs and gradients, here of the weights and outputs of
// two trained layers:
//
//     layer  type    output             parameters  weights             outputs
//     conv1  Conv2d  [100, 20, 28, 28]         520   2.6e-02 (1.9e-01)   4.7e-02 (4.1e-01)
//     fc     Linear  [100, 10]               9,810  -6.0e-03 (5.8e-02)  -4.0e+00 (7.4e+00)
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
  int epochs = 5;
  int64_t batch_size = 100;
  int64_t samples = 0;  // of each split; 0: all
  int64_t print_every = 100;
  bool inspect = false;
  int workers = 1;
};

using Digits = data::Subset<vision::MnistJson>;

/// The first `samples` of a split, or all of them.
Digits first(const Options& options, vision::Split split) {
  vision::MnistJson digits(options.data, split);
  std::vector<int64_t> indices(options.samples == 0 ? digits.size()
                                                    : std::min(options.samples, digits.size()));
  std::iota(indices.begin(), indices.end(), 0);
  return {std::move(digits), std::move(indices)};
}

/// "-1.2e-03 (8.7e-02)"
std::string mean_and_std(const torch::Tensor& values) {
  return fmt::format("{:8.1e} ({:.1e})",
                     values.mean().item<double>(),
                     values.std(/*unbiased=*/false).item<double>());
}

/// A row for each layer: what it holds, what it makes of these images, and how the loss pulls at
/// its weights. All processes call it, with the same images.
template <typename Model>
void inspect(Model& model, optim::Optimizer& optimizer, const Digits& digits) {
  data::DataLoader loader(digits, {.batch_size = 100});
  const auto [images, labels] = *loader.begin();
  torch::nn::functional::cross_entropy(model(images), labels).backward();
  const auto parameters = model.named_parameters();
  std::vector<std::vector<std::string>> rows;
  for (const auto& [layer, type, output] : engine::layer_outputs(model, images)) {
    const torch::Tensor& weight = parameters[layer + ".weight"];
    const torch::Tensor& bias = parameters[layer + ".bias"];
    rows.push_back({layer,
                    type,
                    fmt::format("[{}]", fmt::join(output.sizes(), ", ")),
                    events::with_commas(weight.numel() + bias.numel()),
                    mean_and_std(weight),
                    mean_and_std(output),
                    mean_and_std(weight.grad())});
  }
  optimizer.zero_grad();
  fleet::print(
      "means (standard deviations) of the layers, for {} validation digits\n{}\n",
      images.size(0),
      events::format_table(
          {"layer", "type", "output", "parameters", "weights", "outputs", "gradients"}, rows));
}

/// Returns the mean loss; loss and accuracy so far are printed every so many batches.
template <typename Model, typename Loader>
double train_epoch(
    Model& model, optim::Optimizer& optimizer, Loader& loader, int epoch, int64_t print_every) {
  metrics::MeanLoss mean_loss;
  metrics::Accuracy accuracy;
  int64_t batch = 0;
  for (auto& [images, labels] : loader) {
    const auto logits = model(images);
    auto loss = torch::nn::functional::cross_entropy(logits, labels);
    loss.backward();
    optimizer.step();
    optimizer.zero_grad();
    mean_loss.update(loss, images.size(0));
    accuracy.update(logits, labels);
    if (++batch % print_every == 0) {  // of all processes' batches: each takes part
      fleet::print("  epoch {}, batch {}/{}: loss {:.4f}, training accuracy {:.2f} %\n",
                   epoch,
                   batch,
                   loader.size(),
                   mean_loss.compute(fleet::group()),
                   100 * accuracy.compute(fleet::group()));
    }
  }
  return mean_loss.compute(fleet::group());
}

void run(const Options& options) {
  fleet::init();
  torch::manual_seed(1);
  const Digits train = first(options, vision::Split::kTrain);
  const Digits valid = first(options, vision::Split::kValid);
  const Digits test = first(options, vision::Split::kTest);
  data::DataLoader loader(train,
                          fleet::distributed_batch_sampler(
                              train.size(), {.batch_size = options.batch_size, .shuffle = true}),
                          {.num_workers = options.workers});
  auto model = fleet::distributed_model(vision::DigitNet(10));
  auto optimizer = fleet::distributed_optimizer(
      optim::Adam(model, {.lr = 1e-3, .weight_decay = optim::L2Decay(1e-5)}));
  const auto accuracy_on = [&](const Digits& digits) {
    data::DataLoader batches(digits, fleet::evaluation_sampler(digits.size(), {.batch_size = 500}));
    return 100 * metrics::evaluate(model, batches, metrics::Accuracy());
  };

  fleet::print("DigitNet on {} process{}: {} training, {} validation and {} test digits\n",
               fleet::worker_num(),
               fleet::worker_num() == 1 ? "" : "es",
               train.size(),
               valid.size(),
               test.size());
  if (options.inspect) {
    inspect(model, optimizer, valid);
  }
  for (int epoch = 1; epoch <= options.epochs; ++epoch) {
    const double loss = train_epoch(model, optimizer, loader, epoch, options.print_every);
    const double right = accuracy_on(valid);
    fleet::print(
        "epoch {:2}: loss {:.4f}, accuracy {:.2f} %  (waited {:.0f} % of the time for data)\n",
        epoch,
        loss,
        right,
        100 * loader.stats().input_bound());
  }
  if (options.inspect) {
    inspect(model, optimizer, valid);
  }
  const double right = accuracy_on(test);
  fleet::print("test accuracy {:.2f} %\n", right);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Trains DigitNet on mnist.json.gz; under `argosy launch` on several processes.");
  app.add_option("data", options.data, "mnist.json.gz, or its folder")->required();
  app.add_option("--epochs", options.epochs, "Passes over the training set")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  app.add_option("--batch_size", options.batch_size, "Digits per step and process")
      ->check(CLI::Range(1, 50000))
      ->capture_default_str();
  app.add_option("--samples", options.samples, "The first of each split only; 0: all")
      ->check(CLI::Range(0, 50000))
      ->capture_default_str();
  app.add_option("--print_every", options.print_every, "Batches between two lines of an epoch")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  app.add_flag("--inspect",
               options.inspect,
               "Show shapes, weights, outputs and gradients of the layers, before and after");
  app.add_option("--workers", options.workers, "Loader threads")
      ->check(CLI::Range(0, 256))
      ->capture_default_str();
  return program::run(app, argc, argv, [&] { run(options); });
}
