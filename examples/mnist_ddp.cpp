// Handwritten digits as every lesson on DistributedDataParallel has them: ResNet-34 with one input
// channel on MNIST, a DistributedSampler, SGD 0.01 with momentum 0.9, batches of 64, a checkpoint
// after each epoch.
//
//     argosy data fetch mnist --to FOLDER
//     ./mnist_ddp FOLDER [--epochs 2] [--batch_size 64] [--lr 0.01]
//     argosy launch --nproc_per_node 2 ./mnist_ddp FOLDER --batch_size 32 --sync_batch_norm
//     argosy launch --nproc_per_node 2 ./mnist_ddp FOLDER --scale_lr
//     ./mnist_ddp FOLDER --resume mnist_ddp.checkpoints --epochs 4
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
// A checkpoint is a folder, whole or not there at all; Python's safetensors reads the weights in
// it, under torchvision's names (`argosy checkpoint convert` makes a .pth of it). A run that was
// killed goes on with --resume as if nothing had been: the same digits. Weights with other inputs
// or classes, as torchvision publishes them, are taken as far as they fit by name and shape: the
// program says what does not (the first convolution, the last layer) and starts anew.
#include <torch/torch.h>

#include "lesson.h"

using namespace argosy;

namespace {

struct Options : lesson::Options {
  Options() {
    epochs = 2;
    batch_size = 64;
  }

  std::string checkpoint = "mnist_ddp.checkpoints";
  std::string resume{};
  double lr = 0.01;
  bool scale_lr = false;
  bool sync_batch_norm = false;
  bool double_precision = false;
};

data::Subset<vision::Mnist> digits(const Options& options, vision::Split split) {
  vision::PictureOptions pictures{.mean = {0.1307}, .std = {0.3081}};
  if (options.double_precision) {
    pictures = {.transform =
                    lesson::in_double({vision::ToTensor(), vision::Normalize(0.1307, 0.3081)})};
  }
  return lesson::first(vision::Mnist(options.data, split, pictures), options.samples);
}

void run(const Options& options) {
  fleet::init({.sync_batch_norm = options.sync_batch_norm}, {}, options.device);
  torch::manual_seed(1);
  const auto train = digits(options, vision::Split::kTrain);
  const auto test = digits(options, vision::Split::kTest);
  data::DistributedSampler sampler(
      train.size(),
      {.num_replicas = fleet::worker_num(), .rank = fleet::worker_index(), .seed = 1});
  data::DataLoader loader(
      train, sampler, {.batch_size = options.batch_size, .num_workers = options.num_workers});

  vision::ResNet net = vision::resnet34({.num_classes = 10, .in_channels = 1});
  if (options.double_precision) {
    net->to(torch::kDouble);
  }
  net->to(fleet::device());
  train::Model model(net);
  const double lr = options.lr * (options.scale_lr ? fleet::worker_num() : 1);
  model.prepare(
      optim::SGD(net, {.lr = lr, .momentum = 0.9}), loss::CrossEntropy(), {metrics::Accuracy()});
  const bool goes_on = std::filesystem::is_directory(options.resume);
  if (!options.resume.empty() && !goes_on) {  // weights, of another net perhaps
    const auto loaded = model.load(options.resume, {.partial = true});
    fleet::print("{}: {}\n", options.resume, loaded.to_string());
  }
  fleet::print("ResNet-34 on {}: {} training and {} test digits, learning rate {}\n",
               lesson::processes(),
               train.size(),
               test.size(),
               lr);

  const train::History history = model.fit(
      loader,
      test,
      {.epochs = options.epochs,
       .callbacks = {lesson::EpochLine(lesson::loss_and_accuracy)},
       .data = {.eval_batch_size = 500},
       .checkpoint = {.dir = options.checkpoint, .resume_from = goes_on ? options.resume : ""},
       .log = {.verbose = 0}});
  if (history.epochs.empty()) {
    fleet::print("{} epochs lie behind already: ask for more by --epochs\n", options.epochs);
  }
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  const program::Options rows = lesson::with_options_of(
      o,
      "Folder with MNIST's four IDX files, plain or .gz",
      "Digits per step and process",
      {lesson::samples_row(o),
       {"--lr", "X", "Learning rate", &o.lr, {.least = 1e-9, .most = 100}},
       {"--scale_lr", "", "Multiply it by the number of processes", &o.scale_lr},
       {"--sync_batch_norm",
        "",
        "Batch norm over the batches of all processes together",
        &o.sync_batch_norm},
       lesson::double_row(o.double_precision),
       {"--checkpoint", "DIR", "Folder for one after each epoch", &o.checkpoint},
       {"--resume", "PATH", "Folder of checkpoints, or weights as torchvision's .pth", &o.resume}});
  return program::run({"Trains ResNet-34 on MNIST; under `argosy launch` on several processes."},
                      rows,
                      argc,
                      argv,
                      [&] { run(o); });
}
