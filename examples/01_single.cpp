// One process, plain libtorch's loop: what the following examples distribute.
//
//     ./01_single [folder of Fashion-MNIST] [--device auto|cpu|cuda:1]
//
// Prints the mean loss and the test accuracy of each epoch; expect about 89 % after two.
#include <argosy/argosy.h>

#include <torch/torch.h>

using namespace argosy;

int main(int argc, char** argv) {
  const at::Device device = engine::find_device(program::take_option(argc, argv, "--device"));
  const std::string folder = argc > 1 ? argv[1] : "/usr/share/datasets/fashion-mnist";
  torch::manual_seed(1);
  vision::FashionMnist train(folder, vision::Split::kTrain), test(folder, vision::Split::kTest);
  data::DataLoader loader(train,
                          {.batch_size = 64, .shuffle = true, .num_workers = 1, .device = device});
  vision::MnistCnn model;
  model->to(device);
  optim::Adam optimizer(model, {.lr = 1e-3});
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
        model, data::DataLoader(test, {.batch_size = 500, .device = device}), metrics::Accuracy());
    fmt::print("epoch {}: loss {:.4f}, accuracy {:.2f} %\n",
               epoch + 1,
               mean_loss.compute(),
               100 * accuracy);
  }
}
