// Handwritten digits as every lesson on DistributedDataParallel has them: ResNet-34 with one input
// channel on MNIST, a DistributedSampler, SGD 0.01 with momentum 0.9, batches of 64, a checkpoint
// after each epoch.
//
//     argosy data fetch mnist --to FOLDER
//     ./mnist_ddp FOLDER [--epochs 2] [--batch_size 64] [--lr 0.01]
//     argosy launch --nproc_per_node 2 ./mnist_ddp FOLDER --batch_size 32 --sync_batch_norm
//     argosy launch --nproc_per_node 2 ./mnist_ddp FOLDER --scale_lr
//     ./mnist_ddp FOLDER --resume mnist_ddp.pth --epochs 4
//     ./mnist_ddp FOLDER --resume resnet34-b627a593.pth
//
// Expect, of 60,000 digits to train and 10,000 to test:
//
//                                    epoch 1            epoch 2            processor time
//     alone                       0.1645  98.25 %    0.0542  98.89 %    11.4 minutes, one core
//     two, --sync_batch_norm      0.1690  97.97 %    0.0529  98.91 %    14.9 minutes, two cores
//
// --batch_size is each process's, and the sampler deals the digits out: halve it on two, and each
// step sees the same ones; with --sync_batch_norm the norms do, too. Then both compute the same:
// with --double the losses agree to the last digit shown. Single precision rounds, and a ResNet
// that shrinks 28 pixels to one makes much of it: losses of the first steps differ by 0.001 to 0.3,
// those of whole epochs by less than 0.02, accuracies by less than 1 point. --scale_lr is for the
// other way: batches stay as large, and steps get fewer.
//
// The checkpoint is a file that Python's torch.load reads, the weights under torchvision's names. A
// run that was killed goes on with --resume as if nothing had been: the same digits. Weights with
// other inputs or classes, as torchvision publishes them, are taken as far as they fit by name and
// shape: the program says what does not (the first convolution, the last layer) and starts anew.
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
  std::string checkpoint = "mnist_ddp.pth";
  std::string resume{};
  int epochs = 2;
  int64_t batch_size = 64;
  int64_t samples = 0;  // of each set; 0: all
  double lr = 0.01;
  bool scale_lr = false;
  bool sync_batch_norm = false;
  bool double_precision = false;
  int workers = 1;
};

const std::string kOptimizer = "optimizer.";  // before the names of its state
const std::string kEpoch = "epoch";

/// What a run needs to go on, as one file that Python's torch.load reads too: the weights under
/// torchvision's names, the optimizer's state and the number of epochs behind them. The first
/// process writes it, whole or not at all; the others wait for it.
template <typename Model>
void save_checkpoint(const std::string& path,
                     const Model& model,
                     const optim::Optimizer& optimizer,
                     int epoch) {
  if (fleet::is_first_worker()) {
    engine::StateDict all = engine::state_dict(model);
    for (const auto& [parameter, state] : optimizer.state_dict().parameters) {
      for (const auto& [name, tensor] : state) {
        all.set(kOptimizer + parameter + "." + name, tensor);
      }
    }
    all.set(kEpoch, torch::tensor(int64_t{epoch}));
    engine::write_torch_file(path, all);
  }
  fleet::barrier_worker();
}

/// The optimizer's part of a checkpoint, in the place of what `optimizer` has now.
optim::OptimizerState optimizer_state(const engine::StateDict& all,
                                      const optim::Optimizer& optimizer) {
  optim::OptimizerState state = optimizer.state_dict();
  state.parameters.clear();
  for (const auto& [parameter, tensor] : optimizer.parameters()) {
    engine::StateDict own;
    const std::string prefix = kOptimizer + parameter + ".";
    for (const auto& [name, value] : all) {
      if (name.starts_with(prefix)) {
        own.set(name.substr(prefix.size()), value);
      }
    }
    if (!own.empty()) {
      state.parameters.emplace_back(parameter, std::move(own));
    }
  }
  return state;
}

/// Goes on where the file ends, and returns how many epochs lie behind. From weights of another net
/// (three input channels, a thousand classes) takes what fits by name and shape, says what does
/// not, and begins at 0.
template <typename Model>
int load_checkpoint(const std::string& path, const Model& model, optim::Optimizer& optimizer) {
  const engine::StateDict all = engine::read_torch_file(path);
  engine::StateDict weights;
  for (const auto& [name, tensor] : all) {
    if (!name.starts_with(kOptimizer) && name != kEpoch) {
      weights.set(name, tensor);
    }
  }
  const engine::LoadResult result =
      engine::load_state_dict(model, weights, {.partial = true, .source = path});
  fleet::print("{}: {}\n", path, result.to_string());
  const bool whole = result.missing.empty() && result.mismatched.empty();
  if (!whole || !all.contains(kEpoch)) {
    return 0;
  }
  const torch::Tensor& epoch = all.at(kEpoch);
  if (epoch.numel() != 1 || epoch.scalar_type() != torch::kLong) {
    throw CheckpointError("mnist_ddp", "expected one whole number", {path, kEpoch});
  }
  optimizer.load_state_dict(optimizer_state(all, optimizer));
  return epoch.item<int>();
}

/// The first `samples` of a data set, or all of them.
data::Subset<vision::Mnist> first(vision::Mnist set, int64_t samples) {
  std::vector<int64_t> indices(samples == 0 ? set.size() : std::min(samples, set.size()));
  std::iota(indices.begin(), indices.end(), 0);
  return {std::move(set), std::move(indices)};
}

template <typename Model, typename Loader>
double train_epoch(Model& model, optim::Optimizer& optimizer, Loader& loader) {
  metrics::MeanLoss mean_loss;
  for (auto& [images, labels] : loader) {
    auto loss = torch::nn::functional::cross_entropy(model(images), labels);
    loss.backward();
    optimizer.step();
    optimizer.zero_grad();
    mean_loss.update(loss, images.size(0));
  }
  return mean_loss.compute(fleet::group());
}

void run(const Options& options) {
  fleet::init({.sync_batch_norm = options.sync_batch_norm});
  torch::manual_seed(1);
  vision::MnistOptions pictures{.mean = 0.1307, .std = 0.3081};
  if (options.double_precision) {
    pictures.transform = [](const torch::Tensor& image, data::Random&) {
      return image.to(torch::kDouble);
    };
  }
  const auto train = first({options.data, vision::Split::kTrain, pictures}, options.samples);
  const auto test = first({options.data, vision::Split::kTest, pictures}, options.samples);
  data::DistributedSampler sampler(
      train.size(), {.num_replicas = fleet::worker_num(), .rank = fleet::worker_index()});
  data::DataLoader loader(
      train, sampler, {.batch_size = options.batch_size, .num_workers = options.workers});
  data::DataLoader test_loader(test, fleet::evaluation_sampler(test.size(), {.batch_size = 500}));

  vision::ResNet net = vision::resnet34({.num_classes = 10, .in_channels = 1});
  if (options.double_precision) {
    net->to(torch::kDouble);
  }
  auto model = fleet::distributed_model(net);
  const double lr = options.lr * (options.scale_lr ? fleet::worker_num() : 1);
  auto optimizer = fleet::distributed_optimizer(optim::SGD(model, {.lr = lr, .momentum = 0.9}));
  const int done = options.resume.empty() ? 0 : load_checkpoint(options.resume, model, optimizer);

  fleet::print("ResNet-34 on {} process{}: {} training and {} test digits, learning rate {}\n",
               fleet::worker_num(),
               fleet::worker_num() == 1 ? "" : "es",
               train.size(),
               test.size(),
               lr);
  if (done >= options.epochs) {
    fleet::print("{} epochs lie behind already: ask for more by --epochs\n", done);
  }
  for (int epoch = done + 1; epoch <= options.epochs; ++epoch) {
    loader.set_epoch(epoch);  // the order depends on it alone, after a resume too
    const double loss = train_epoch(model, optimizer, loader);
    const double right = metrics::evaluate(model, test_loader, metrics::Accuracy());
    save_checkpoint(options.checkpoint, model, optimizer, epoch);
    fleet::print(
        "epoch {:2}: loss {:.4f}, accuracy {:.2f} %  (waited {:.0f} % of the time for data)\n",
        epoch,
        loss,
        100 * right,
        100 * loader.stats().input_bound());
  }
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Trains ResNet-34 on MNIST; under `argosy launch` on several processes.");
  app.add_option("data", options.data, "Folder with MNIST's four IDX files, plain or .gz")
      ->required();
  app.add_option("--epochs", options.epochs, "Passes over the training set, those behind included")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  app.add_option("--batch_size", options.batch_size, "Digits per step and process")
      ->check(CLI::Range(1, 60000))
      ->capture_default_str();
  app.add_option("--samples", options.samples, "The first of each set only; 0: all")
      ->check(CLI::Range(0, 60000))
      ->capture_default_str();
  app.add_option("--lr", options.lr, "Learning rate")
      ->check(CLI::Range(1e-9, 100.))
      ->capture_default_str();
  app.add_flag("--scale_lr", options.scale_lr, "Multiply it by the number of processes");
  app.add_flag("--sync_batch_norm",
               options.sync_batch_norm,
               "Batch norm over the batches of all processes together");
  app.add_flag("--double", options.double_precision, "Compute in double precision");
  app.add_option("--checkpoint", options.checkpoint, "Written after each epoch")
      ->check(program::in_a_folder)
      ->capture_default_str();
  app.add_option("--resume", options.resume, "A checkpoint, or weights as torchvision's .pth");
  app.add_option("--workers", options.workers, "Loader threads")
      ->check(CLI::Range(0, 256))
      ->capture_default_str();
  return program::run(app, argc, argv, [&] { run(options); });
}
