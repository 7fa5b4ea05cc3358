// The parameter server program of Paddle's guides, in C++: roles, servers and workers by fleet's
// names. Workers learn a number for each of 10,000 ids.
//
//     argosy launch --server_num 2 --worker_num 2 ./10_paddle_servers [--save DIR] [--load CHECKPOINT]
//
// Paddle's own launcher starts it too.
#include <argosy/argosy.h>

#include <iostream>
#include <random>
#include <vector>

#include <torch/torch.h>

using namespace argosy;

struct Net : torch::nn::Module {
  Net()
      : rows(register_module("rows", ps::Embedding(ps::EmbeddingOptions{.dim = 8}))),
        head(register_module("head", torch::nn::Linear(8, 1))) {}
  at::Tensor forward(const at::Tensor& ids) { return head(rows(ids)).squeeze(-1); }
  ps::Embedding rows;
  torch::nn::Linear head;
};

/// 512 ids of a step, and the number that belongs to each.
std::pair<at::Tensor, at::Tensor> batch_of(int worker, int step) {
  std::mt19937_64 random(static_cast<uint64_t>(1000 * worker + step));
  at::Tensor ids = torch::empty(512, at::kLong);
  at::Tensor numbers = torch::empty(512);
  for (int64_t i = 0; i < ids.numel(); ++i) {
    const uint64_t id = random() % 10'000;
    ids[i] = static_cast<int64_t>(id);
    numbers[i] = 2 * ps::RowDraws(1, id).unit(0) - 1;
  }
  return {ids, numbers};
}

int main(int argc, char** argv) {
  const std::string save = program::take_option(argc, argv, "--save", "");
  const std::string load = program::take_option(argc, argv, "--load", "");
  torch::manual_seed(7);
  Net net;
  fleet::init(fleet::PaddleCloudRoleMaker());
  auto optimizer = fleet::distributed_optimizer(optim::Adam(net, {.lr = 0.02}), net);
  if (fleet::is_server()) {
    fleet::init_server();
    fleet::run_server();
    return 0;
  }
  if (!load.empty()) {
    fleet::load_model(load);
  }
  fleet::init_worker();
  for (int step = 0; step < 300; ++step) {
    const auto [ids, numbers] = batch_of(fleet::worker_index(), step);
    const at::Tensor loss = torch::mse_loss(net.forward(ids), numbers);
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    if (fleet::is_first_worker() && (step == 0 || step % 100 == 99)) {
      std::cout << "step " << step + 1 << ": loss " << loss.item<float>() << std::endl;
    }
  }
  fleet::barrier_worker();
  fleet::print_table_stat();
  if (!save.empty()) {
    fleet::save_persistables(save);
  }
  fleet::stop_worker();
}
