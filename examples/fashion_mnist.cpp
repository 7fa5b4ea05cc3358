// The demo: a small CNN on the real Fashion-MNIST, on any number of processes, with a progress bar,
// a table, and a folder of results.
//
//     argosy launch --nproc_per_node 2 ./fashion_mnist [--epochs 3] [--data FOLDER] [--help]
//
// Expect 90 % test accuracy after three epochs.
#include <argosy/argosy.h>
#include <argosy/base/env.h>
#include <argosy/program/command_line.h>

#include <torch/torch.h>

#include <nlohmann/json.hpp>

using namespace argosy;

namespace {

struct Options {
  std::string data = "/usr/share/datasets/fashion-mnist";
  int epochs = 3;
  int64_t batch_size = 64;
  double lr = 1e-3;
  uint64_t seed = 1;
  int num_workers = 1;
  std::string device = "auto";
};

struct EpochResult {
  double loss = 0;               // mean over all training samples of all ranks
  double accuracy = 0;           // over exactly the test set's samples
  double seconds = 0;            // training and evaluation
  double images_per_second = 0;  // training only, all ranks
};

template <typename Model, typename Batches>
double train_epoch(Model& model, optim::Optimizer& optimizer, Batches& batches) {
  metrics::MeanLoss mean_loss;
  for (auto& [images, labels] : batches) {
    auto loss = torch::nn::functional::cross_entropy(model(images), labels);
    loss.backward();
    optimizer.step();
    optimizer.zero_grad();
    mean_loss.update(loss, images.size(0));
    batches.show("loss",
                 mean_loss.compute());  // this rank's so far; at the end that of all ranks
  }
  const double loss = mean_loss.compute(fleet::group());
  batches.show("loss", loss);
  batches.finish();
  return loss;
}

std::string table(const std::vector<EpochResult>& results) {
  std::vector<std::vector<std::string>> rows;
  for (const EpochResult& r : results) {
    rows.push_back({std::to_string(rows.size() + 1),
                    fmt::format("{:.4f}", r.loss),
                    fmt::format("{:.2f} %", 100 * r.accuracy),
                    text::count(std::llround(r.images_per_second)),
                    fmt::format("{:.1f}", r.seconds)});
  }
  return text::table({"epoch", "train loss", "test accuracy", "images/s", "seconds"}, rows);
}

void run(const Options& options) {
  fleet::init({}, {}, options.device);
  torch::manual_seed(options.seed);
  vision::FashionMnist train(options.data, vision::Split::kTrain);
  vision::FashionMnist test(options.data, vision::Split::kTest);
  data::DataLoader loader(train,
                          fleet::distributed_batch_sampler(
                              train.size(), {.batch_size = options.batch_size, .shuffle = true}),
                          {.num_workers = options.num_workers, .device = fleet::device()});
  data::DataLoader test_loader(test,
                               fleet::evaluation_sampler(test.size(), {.batch_size = 500}),
                               {.device = fleet::device()});
  vision::MnistCnn net;
  net->to(fleet::device());
  auto model = fleet::distributed_model(net);
  auto optimizer = fleet::distributed_optimizer(optim::Adam(model, {.lr = options.lr}));

  fleet::print("{} on {} process{}: {} training and {} test images, batch {} per process\n",
               "MnistCnn",
               fleet::worker_num(),
               fleet::worker_num() == 1 ? "" : "es",
               text::count(train.size()),
               text::count(test.size()),
               options.batch_size);
  const std::string metrics_path = fleet::run_dir() + "/metrics.jsonl";
  std::vector<EpochResult> results;
  for (int epoch = 1; epoch <= options.epochs; ++epoch) {
    auto batches = fleet::progress(loader,
                                   {.label = fmt::format("epoch {}/{}", epoch, options.epochs),
                                    .total = train.size(),
                                    .unit = "images"});
    EpochResult result;
    result.loss = train_epoch(model, optimizer, batches);
    result.images_per_second = static_cast<double>(train.size()) / batches.seconds();
    metrics::Accuracy accuracy;
    result.accuracy = metrics::evaluate(model, test_loader, accuracy);
    result.seconds = batches.seconds();
    results.push_back(result);
    const int64_t evaluated = accuracy.count(fleet::group());
    if (fleet::is_first_worker()) {
      events::JsonlWriter(metrics_path)
          .write({{"epoch", epoch},
                  {"train_loss", result.loss},
                  {"test_accuracy", result.accuracy},
                  {"test_images", evaluated},
                  {"images_per_second", result.images_per_second},
                  {"seconds", result.seconds},
                  {"ranks", fleet::worker_num()},
                  {"restart", env::get_int("ARGOSY_RESTART_COUNT").value_or(0)}});
    }
  }
  fleet::print("\n{}\n", table(results));  // before a full disk can stop the program
  fleet::save(model, fleet::run_dir() + "/weights.pt");
  fleet::print("Results in {}/: metrics.jsonl, weights.pt{}\n",
               fleet::run_dir(),
               env::get("ARGOSY_LOG_DIR") ? ", the ranks' logs" : "");
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  return program::run(
      {"Trains MnistCnn on Fashion-MNIST; under `argosy launch` on several processes."},
      {{"--data", "DIR", "Folder with the four IDX files", &options.data},
       {"--epochs",
        "N",
        "Passes over the training set",
        &options.epochs,
        {.least = 1, .most = 10000}},
       {"--batch_size",
        "N",
        "Images per step and process",
        &options.batch_size,
        {.least = 1, .most = 60000}},
       {"--lr", "X", "Adam's learning rate", &options.lr},
       {"--seed", "N", "Seed of the weights", &options.seed},
       {"--num_workers", "N", "Loader threads", &options.num_workers},
       {"--device", "WORD", "auto (a GPU where there is one), cpu, cuda:1", &options.device}},
      argc,
      argv,
      [&] { run(options); });
}
