// Two models in one program: a GAN on the pictures of Fashion-MNIST. Each model has a wrapper and
// an optimizer of its own; the discriminator is frozen while the generator learns from it.
//
//     argosy launch --nproc_per_node 2 ./06_gan [folder of Fashion-MNIST] [--device auto|cpu|cuda:1]
#include <argosy/argosy.h>

#include <torch/torch.h>

using namespace argosy;
namespace F = torch::nn::functional;

torch::nn::Sequential layers(const std::vector<int64_t>& widths, at::Device device) {
  torch::nn::Sequential all;
  for (size_t i = 0; i + 1 < widths.size(); ++i) {
    if (i > 0) {
      all->push_back(torch::nn::LeakyReLU(torch::nn::LeakyReLUOptions().negative_slope(0.2)));
    }
    all->push_back(torch::nn::Linear(widths[i], widths[i + 1]));
  }
  all->to(device);
  return all;
}

/// All ranks freeze the same parameters at the same place; the wrapper checks that they do.
void freeze(const torch::nn::Sequential& module, bool frozen) {
  for (auto& parameter : module->parameters()) {
    parameter.requires_grad_(!frozen);
  }
}

int main(int argc, char** argv) {
  constexpr int64_t kNoise = 32;
  constexpr int64_t kPixels = 28 * 28;
  const std::string word = program::take_option(argc, argv, "--device");
  const std::string folder = argc > 1 ? argv[1] : "/usr/share/datasets/fashion-mnist";
  fleet::init({}, {}, word);
  const at::Device device = fleet::device();
  vision::FashionMnist train(folder, vision::Split::kTrain);
  data::DataLoader loader(
      train,
      fleet::distributed_batch_sampler(train.size(), {.batch_size = 64, .shuffle = true}),
      {.num_workers = 1, .device = device});
  torch::manual_seed(1);
  auto generator = fleet::distributed_model(layers({kNoise, 128, 256, kPixels}, device));
  auto discriminator = fleet::distributed_model(layers({kPixels, 256, 128, 1}, device));
  const optim::AdamOptions rates{.lr = 2e-4, .betas = {0.5, 0.999}};
  auto generator_optimizer = fleet::distributed_optimizer(optim::Adam(generator, rates));
  auto discriminator_optimizer = fleet::distributed_optimizer(optim::Adam(discriminator, rates));
  torch::manual_seed(1000 + fleet::worker_index());  // each rank draws noise of its own

  for (int epoch = 0; epoch < 2; ++epoch) {
    metrics::MeanLoss right, fooled, real_pixels, drawn_pixels;
    for (auto& [images, labels] : loader) {
      const int64_t n = images.size(0);
      auto real = images.flatten(1);
      auto noise = torch::randn({n, kNoise}, device);
      auto drawn = torch::sigmoid(generator.forward<at::Tensor>(noise));

      auto judged = discriminator.forward<at::Tensor>(torch::cat({real, drawn.detach()}));
      auto truth = torch::cat({torch::ones({n, 1}, device), torch::zeros({n, 1}, device)});
      auto discriminator_loss = F::binary_cross_entropy_with_logits(judged, truth);
      discriminator_loss.backward();
      discriminator_optimizer.step();
      discriminator_optimizer.zero_grad();

      freeze(discriminator.module(), true);
      auto generator_loss = F::binary_cross_entropy_with_logits(
          discriminator.forward<at::Tensor>(drawn), torch::ones({n, 1}, device));
      generator_loss.backward();
      generator_optimizer.step();
      generator_optimizer.zero_grad();
      freeze(discriminator.module(), false);

      right.update(discriminator_loss, n);
      fooled.update(generator_loss, n);
      real_pixels.update(real.mean(), n);
      drawn_pixels.update(drawn.mean(), n);
    }
    const auto& all = fleet::group();
    fleet::print(
        "epoch {}: discriminator's loss {:.3f}, generator's {:.3f}; mean pixel {:.3f}, "
        "drawn {:.3f}\n",
        epoch + 1,
        right.compute(all),
        fooled.compute(all),
        real_pixels.compute(all),
        drawn_pixels.compute(all));
  }
  fleet::save(generator, "generator.pt");
}
