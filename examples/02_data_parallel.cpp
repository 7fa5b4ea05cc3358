// The loop of 01_single on several processes, by hand: every group is explicit, nothing is global.
//
//     argosy launch --nproc_per_node 2 ./02_data_parallel [folder of Fashion-MNIST] [--device WORD]
#include <argosy/argosy.h>
#include <argosy/base/env.h>

#include <torch/torch.h>

using namespace argosy;

int main(int argc, char** argv) {
  const std::string word = program::take_option(argc, argv, "--device");
  const std::string folder = argc > 1 ? argv[1] : "/usr/share/datasets/fashion-mnist";
  const at::Device device =
      engine::set_device(word, env::get_int("LOCAL_RANK", 0, 1 << 20).value_or(0));
  comm::Group world = comm::init();
  torch::manual_seed(1);
  vision::FashionMnist train(folder, vision::Split::kTrain), test(folder, vision::Split::kTest);
  data::DataLoader loader(
      train,
      data::DistributedBatchSampler(
          train.size(),
          {.batch_size = 64, .num_replicas = world.size(), .rank = world.rank(), .shuffle = true}),
      {.num_workers = 1, .device = device});
  vision::MnistCnn net;
  net->to(device);
  parallel::DistributedDataParallel model(net, world);
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
        model,
        data::DataLoader(
            test,
            data::EvaluationSampler(
                test.size(),
                {.batch_size = 500, .num_replicas = world.size(), .rank = world.rank()}),
            {.device = device}),
        metrics::Accuracy());
    auto loss = mean_loss.compute(world);
    if (world.rank() == 0) {
      fmt::print("epoch {}: loss {:.4f}, accuracy {:.2f} %\n", epoch + 1, loss, 100 * accuracy);
    }
  }
}
