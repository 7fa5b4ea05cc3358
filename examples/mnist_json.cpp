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
#include <torch/torch.h>

#include "lesson.h"

using namespace argosy;

namespace {

struct Options : lesson::Options {
  Options() {
    epochs = 5;
    batch_size = 100;
  }

  int64_t print_every = 100;
  bool inspect = false;
};

/// "-1.2e-03 (8.7e-02)"
std::string mean_and_std(const torch::Tensor& values) {
  return fmt::format("{:8.1e} ({:.1e})",
                     values.mean().item<double>(),
                     values.std(/*unbiased=*/false).item<double>());
}

/// A row for each layer: what it holds, what it makes of these images, and how the loss pulls at
/// its weights.
void inspect(vision::DigitNet& net, const data::Subset<vision::MnistJson>& digits) {
  data::DataLoader loader(digits, {.batch_size = 100, .device = fleet::device()});
  const auto [images, labels] = *loader.begin();
  const auto loss = torch::nn::functional::cross_entropy(net(images), labels);
  const auto parameters = net->named_parameters();
  std::vector<std::vector<std::string>> rows;
  for (const auto& [layer, type, output] : engine::layer_outputs(net, images)) {
    const torch::Tensor& weight = parameters[layer + ".weight"];
    const torch::Tensor& bias = parameters[layer + ".bias"];
    const auto gradient =
        torch::autograd::grad({loss}, {weight}, {}, /*retain_graph=*/true).front();
    rows.push_back({layer,
                    type,
                    fmt::format("[{}]", fmt::join(output.sizes(), ", ")),
                    text::count(weight.numel() + bias.numel()),
                    mean_and_std(weight),
                    mean_and_std(output),
                    mean_and_std(gradient)});
  }
  fleet::print(
      "means (standard deviations) of the layers, for {} validation digits\n{}\n",
      images.size(0),
      text::table({"layer", "type", "output", "parameters", "weights", "outputs", "gradients"},
                  rows));
}

void run(const Options& options) {
  fleet::init({}, {}, options.device);
  torch::manual_seed(1);
  const auto part = [&](vision::Split split) {
    return lesson::first(vision::MnistJson(options.data, split), options.samples);
  };
  const auto train = part(vision::Split::kTrain);
  const auto valid = part(vision::Split::kValid);
  const auto test = part(vision::Split::kTest);
  fleet::print("DigitNet on {}: {} training, {} validation and {} test digits\n",
               lesson::processes(),
               train.size(),
               valid.size(),
               test.size());

  vision::DigitNet net(10);
  net->to(fleet::device());
  train::Model model(net);
  model.prepare(optim::Adam(net, {.lr = 1e-3, .weight_decay = optim::L2Decay(1e-5)}),
                loss::CrossEntropy(),
                {metrics::Accuracy()});
  if (options.inspect) {
    inspect(net, valid);
  }
  model.fit(train,
            valid,
            {.batch_size = options.batch_size,
             .epochs = options.epochs,
             .num_workers = options.num_workers,
             .callbacks = {lesson::EpochLine(lesson::loss_and_accuracy)},
             .data = {.eval_batch_size = 500},
             .log = {.freq = options.print_every}});
  if (options.inspect) {
    inspect(net, valid);
  }
  const train::Logs result = model.evaluate(test, {.batch_size = 500, .verbose = 0});
  fleet::print("test accuracy {:.2f} %\n", 100 * result["acc"]);
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  const program::Options rows = lesson::with_options_of(
      o,
      "mnist.json.gz, or its folder",
      "Digits per step and process",
      {lesson::samples_row(o),
       {"--print_every",
        "N",
        "Batches between two lines of an epoch",
        &o.print_every,
        {.least = 1, .most = 1e6}},
       {"--inspect",
        "",
        "Show shapes, weights, outputs and gradients of the layers, before and after",
        &o.inspect}});
  return program::run(
      {"Trains DigitNet on mnist.json.gz; under `argosy launch` on several processes."},
      rows,
      argc,
      argv,
      [&] { run(o); });
}
