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
#include <torch/torch.h>

#include "lesson.h"

using namespace argosy;

namespace {

void run(const lesson::Options& options) {
  fleet::init({}, {}, options.device);
  torch::manual_seed(1);
  const auto part = [&](vision::Split split) {
    return lesson::first(vision::Cifar10(options.data, split), options.samples);
  };
  const auto train = part(vision::Split::kTrain);
  const auto test = part(vision::Split::kTest);
  fleet::print("CifarNet on {}: {} training and {} test pictures\n",
               lesson::processes(),
               train.size(),
               test.size());

  vision::CifarNet net(10);
  net->to(fleet::device());
  train::Model model(net);
  model.prepare(optim::Adam(net, {.lr = 1e-3}), loss::CrossEntropy(), {metrics::Accuracy()});
  model.fit(train,
            test,
            {.batch_size = options.batch_size,
             .epochs = options.epochs,
             .num_workers = options.num_workers,
             .callbacks = {lesson::EpochLine(lesson::loss_and_accuracy)},
             .data = {.eval_batch_size = 500, .drop_last = true},
             .log = {.verbose = 0}});
}

}  // namespace

int main(int argc, char** argv) {
  lesson::Options o;
  const program::Options rows = lesson::with_options_of(o,
                                                        "cifar-10-python.tar.gz, or its folder",
                                                        "Pictures per step and process",
                                                        {lesson::samples_row(o)});
  return program::run({"Trains CifarNet on CIFAR-10; under `argosy launch` on several processes."},
                      rows,
                      argc,
                      argv,
                      [&] { run(o); });
}
