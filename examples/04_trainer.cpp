// 03_fleet with the trainer: the loop, the division of the data and the wrapping are fit()'s, and
// so are progress, the run's page and checkpoints. The same command again goes on where it was
// stopped.
//
//     argosy launch --nproc_per_node 2 ./04_trainer [folder of Fashion-MNIST] [--device WORD]
#include <argosy/argosy.h>

#include <torch/torch.h>

using namespace argosy;

int main(int argc, char** argv) {
  const std::string device = program::take_option(argc, argv, "--device");
  const std::string folder = argc > 1 ? argv[1] : "/usr/share/datasets/fashion-mnist";
  fleet::init({}, {}, device);
  torch::manual_seed(1);
  vision::FashionMnist train(folder, vision::Split::kTrain), test(folder, vision::Split::kTest);
  vision::MnistCnn net;
  net->to(fleet::device());
  train::Model model(net);
  model.prepare(optim::Adam(net, {.lr = 1e-3}), loss::CrossEntropy(), {metrics::Accuracy()});
  model.fit(train,
            {.batch_size = 64,
             .epochs = 2,
             .num_workers = 1,
             .run_dir = "runs/fashion",
             .resume = train::Resume::kAuto,
             .log = {.freq = 100}});
  const train::Logs result = model.evaluate(test, {.batch_size = 500, .verbose = 0});
  fleet::print("test accuracy {:.2f} %\n", 100 * result["acc"]);
  model.save("weights.pt");
}
