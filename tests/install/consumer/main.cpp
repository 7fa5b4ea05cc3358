// A project outside the tree: trains three steps and fails unless the loss falls.
#include <argosy/argosy.h>

#include <torch/torch.h>

using namespace argosy;

int main() {
  fleet::init();
  torch::manual_seed(7);
  auto model = fleet::distributed_model(
      torch::nn::Sequential(torch::nn::Linear(8, 16), torch::nn::ReLU(), torch::nn::Linear(16, 2)));
  auto optimizer = fleet::distributed_optimizer(optim::Adam(model, {.lr = 0.05}));
  auto inputs = torch::randn({32, 8});
  auto labels = (inputs.select(1, 0) > 0).to(torch::kLong);
  double first = 0;
  double last = 0;
  for (int step = 0; step < 3; ++step) {
    auto loss = torch::nn::functional::cross_entropy(model(inputs), labels);
    loss.backward();
    optimizer.step();
    optimizer.zero_grad();
    last = loss.item<double>();
    first = step == 0 ? last : first;
  }
  fleet::print(
      "three steps on {} ranks: loss {:.4f} -> {:.4f}\n", fleet::worker_num(), first, last);
  return last < first ? 0 : 1;
}
