// The same weights to the bit, whether one process trains or several: a loop over updates and their
// passes.
//
//     argosy launch --nproc_per_node 2 ./08_same_bits [folder of Fashion-MNIST] [--device WORD]
//
// One process by the launcher too, which chooses OpenBLAS's kernels: --nproc_per_node 1.
#include <argosy/argosy.h>

#include <torch/torch.h>

using namespace argosy;

int main(int argc, char** argv) {
  const std::string device = program::take_option(argc, argv, "--device");
  const std::string folder = argc > 1 ? argv[1] : "/usr/share/datasets/fashion-mnist";
  fleet::init({.virtual_ranks = 4}, {}, device);  // the recipe has four, on any number of processes
  seed_everything(1);
  vision::FashionMnist train(folder, vision::Split::kTrain), test(folder, vision::Split::kTest);
  data::DataLoader loader(
      train,
      fleet::distributed_batch_sampler(train.size(), {.batch_size = 32, .shuffle = true}),
      {.num_workers = 1, .device = fleet::device()});
  vision::MnistCnn net;
  net->to(fleet::device());
  auto model = fleet::distributed_model(net);
  auto optimizer = fleet::distributed_optimizer(optim::Adam(model, {.lr = 1e-3}));
  for (int epoch = 0; epoch < 2; ++epoch) {
    metrics::MeanLoss mean_loss;
    for (auto& update : fleet::updates(loader)) {  // one update of the optimizer
      for (auto& [images, labels] : update) {      // a batch of one virtual rank
        auto loss = torch::nn::functional::cross_entropy(model(images), labels);
        loss.backward();  // the last pass averages
        mean_loss.update(loss, images.size(0));
      }
      optimizer.step();
      optimizer.zero_grad();
    }
    auto accuracy = metrics::evaluate(
        model,
        data::DataLoader(test,
                         fleet::evaluation_sampler(test.size(), {.batch_size = 500}),
                         {.device = fleet::device()}),
        metrics::Accuracy());
    fleet::print("epoch {}: loss {:.6f}, accuracy {:.2f} %\n",
                 epoch + 1,
                 mean_loss.compute(fleet::group()),
                 100 * accuracy);
  }
  fleet::print("weights {}\n", checkpoint::weights_hash(engine::state_dict(*model.module())));
}
