// What of the command `argosy` needs tensors: `argosy` starts it, beside which it lies.
#include <argosy/argosy.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include <torch/torch.h>

#include "argosy/engine/cpu.h"
#include "argosy/engine/version.h"

#include "apps/torch_commands.h"
#include <nlohmann/json.hpp>

namespace argosy {
namespace {

bool weights_agree(torch::nn::Module& model, const comm::Group& world) {
  for (const torch::Tensor& weight : model.parameters()) {
    const torch::Tensor low = weight.detach().clone();
    const torch::Tensor high = weight.detach().clone();
    comm::all_reduce(low, world, {.op = transport::ReduceOp::kMin});
    comm::all_reduce(high, world, {.op = transport::ReduceOp::kMax});
    if (!torch::equal(low, high)) {
      return false;
    }
  }
  return true;
}

/// As a rank of `argosy launch`: trains a small network for a moment; rank 0 says what came of it.
int doctor(const program::Words& /*args*/) {
  constexpr int kSteps = 30;
  const auto start = std::chrono::steady_clock::now();
  comm::Group world = comm::init();
  torch::manual_seed(world.rank());  // the ranks begin with different weights: DDP has work to do
  auto net = torch::nn::Sequential(torch::nn::Conv2d(torch::nn::Conv2dOptions(1, 8, 3).padding(1)),
                                   torch::nn::ReLU(),
                                   torch::nn::Flatten(),
                                   torch::nn::Linear(8 * 8 * 8, 10));
  parallel::DistributedDataParallel model(net, world);
  optim::Adam optimizer(model, {.lr = 1e-2});
  const torch::Tensor images = torch::randn({32, 1, 8, 8});
  const torch::Tensor labels = images.flatten(1).slice(1, 0, 10).argmax(1);
  double first = 0;
  double last = 0;
  for (int step = 0; step < kSteps; ++step) {
    const torch::Tensor loss = torch::nn::functional::cross_entropy(model(images), labels);
    loss.backward();
    optimizer.step();
    optimizer.zero_grad();
    (step == 0 ? first : last) = loss.item<double>();
  }
  const bool agree = weights_agree(*net, world);
  const engine::CpuSetup& cpu = engine::setup_cpu();
  if (world.rank() == 0) {
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    const nlohmann::json said{{"ranks", world.size()},
                              {"steps", kSteps},
                              {"seconds", took.count()},
                              {"first_loss", first},
                              {"last_loss", last},
                              {"agree", agree},
                              {"libtorch", engine::torch_version()},
                              {"blas", engine::to_string(cpu.blas)},
                              {"blas_advice", engine::blas_advice(cpu)},
                              {"threads", cpu.intra_op_threads}};
    fmt::print("doctor {}\n", said.dump());
  }
  return agree ? 0 : 1;
}

const program::Commands kCommands{.name = "argosy-torch",
                                  .purpose = "Started by argosy: see argosy --help.",
                                  .usage = "<command>",
                                  .all = {{"train", "", apps::train},
                                          {"evaluate", "", apps::evaluate},
                                          {"predict", "", apps::predict},
                                          {"checkpoint-convert", "", apps::checkpoint_convert},
                                          {"checkpoint-hash", "", apps::checkpoint_hash},
                                          {"doctor", "", doctor}}};

}  // namespace
}  // namespace argosy

int main(int argc, char** argv) {
  return argosy::program::run_main(argc, argv, [](const argosy::program::Words& args) {
    return dispatch(argosy::kCommands, args);
  });
}
