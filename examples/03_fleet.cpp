// The five steps: fleet keeps the group, fills in rank and size, prints once.
//
//     argosy launch --nproc_per_node 2 ./03_fleet [folder of Fashion-MNIST] [--device auto|cpu|cuda:1]
#include <argosy/argosy.h>

#include <torch/torch.h>

using namespace argosy;

int main(int argc, char** argv) {
  const std::string device = program::take_option(argc, argv, "--device");
  const std::string folder = argc > 1 ? argv[1] : "/usr/share/datasets/fashion-mnist";
  fleet::init({}, {}, device);  // 1: meet the others
  torch::manual_seed(1);
  vision::FashionMnist train(folder, vision::Split::kTrain), test(folder, vision::Split::kTest);
  data::DataLoader loader(
      train,
      fleet::distributed_batch_sampler(train.size(),
                                       {.batch_size = 64, .shuffle = true}),  // 2: split the data
      {.num_workers = 1, .device = fleet::device()});
  vision::MnistCnn net;
  net->to(fleet::device());
  auto model = fleet::distributed_model(net);  // 3: wrap the model
  auto optimizer =
      fleet::distributed_optimizer(optim::Adam(model, {.lr = 1e-3}));  // 4: wrap the optimizer
  for (int epoch = 0; epoch < 2; ++epoch) {
    metrics::MeanLoss mean_loss;
    for (auto& [images, labels] : loader) {
      auto loss = torch::nn::functional::cross_entropy(model(images), labels);
      loss.backward();
      optimizer.step();
      optimizer.zero_grad();
      mean_loss.update(loss, images.size(0));
    }
    auto accuracy = metrics::evaluate(
        model,
        data::DataLoader(test,
                         fleet::evaluation_sampler(test.size(), {.batch_size = 500}),
                         {.device = fleet::device()}),
        metrics::Accuracy());
    fleet::print("epoch {}: loss {:.4f}, accuracy {:.2f} %\n",
                 epoch + 1,
                 mean_loss.compute(fleet::group()),
                 100 * accuracy);
  }
  fleet::save(model, "weights.pt");
}  // 5: argosy launch
