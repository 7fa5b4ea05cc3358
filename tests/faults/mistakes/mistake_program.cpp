// mistake_program MISTAKE: a program as people write it, with that one mistake in it.
#include <argosy/argosy.h>

#include <chrono>
#include <string_view>

#include <torch/torch.h>

using namespace argosy;

namespace {

/// A training that all ranks take part in.
void train(int steps) {
  auto model = fleet::distributed_model(torch::nn::Linear(4, 1));
  auto optimizer = fleet::distributed_optimizer(optim::SGD(model, {.lr = 0.1}));
  for (int step = 0; step < steps; ++step) {
    model(torch::ones({2, 4})).mean().backward();
    optimizer.step();
    optimizer.zero_grad();
  }
}

/// "Rank 0 shows the sum": the others never call all_reduce.
void reduce_on_rank_0() {
  if (fleet::is_first_worker()) {
    at::Tensor loss = torch::ones({});
    comm::all_reduce(loss, fleet::group());
  }
}

/// Evaluates five samples with the sampler of training, which repeats one for the second rank.
void evaluate_padded() {
  const data::TensorDataset set(torch::rand({5, 4}), torch::zeros({5}, torch::kLong));
  data::DataLoader loader(set, fleet::distributed_batch_sampler(set.size(), {.batch_size = 2}));
  auto model = fleet::distributed_model(torch::nn::Linear(4, 2));
  fleet::print("accuracy {}\n", metrics::evaluate(model, loader, metrics::Accuracy()));
}

/// Shows the mean of rank 0's losses, of which the others know nothing.
void show_own_loss() {
  metrics::MeanLoss mean;
  mean.update(torch::tensor(static_cast<float>(fleet::worker_index())), 10);
  fleet::print("of rank 0 alone {}\n", mean.compute());
  fleet::print("of all ranks {}\n", mean.compute(fleet::group()));
}

/// Trains a module that no wrapper knows.
void train_bare() {
  static_cast<void>(fleet::distributed_batch_sampler(8, {.batch_size = 2}));
  torch::nn::Linear net(4, 1);
  optim::SGD optimizer(net, {.lr = 0.1});
  net(torch::ones({2, 4})).mean().backward();
  optimizer.step();
}

void wrap_without_the_fleet() {
  static_cast<void>(fleet::distributed_batch_sampler(8, {.batch_size = 2}));
  const auto model = parallel::fully_shard(torch::nn::Linear(4, 1), fleet::mesh());
}

void make(std::string_view mistake) {
  if (mistake == "rank_0_reduces_then_all_train") {
    reduce_on_rank_0();
    train(3);
  } else if (mistake == "all_train_then_rank_0_reduces") {
    train(3);
    reduce_on_rank_0();
  } else if (mistake == "padded_evaluation") {
    evaluate_padded();
  } else if (mistake == "own_loss") {
    show_own_loss();
  } else if (mistake == "stage_without_sharding") {
    train(1);
  } else if (mistake == "bare_training") {
    train_bare();
  } else if (mistake == "own_wrapper") {
    wrap_without_the_fleet();
  } else {
    throw UsageError("mistake_program", "there is no such mistake");
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view mistake = argc == 2 ? argv[1] : "";
  fleet::DistributedStrategy strategy;
  if (mistake == "stage_4") {
    strategy = {.sharding = true, .sharding_configs = {.stage = 4}};
  } else if (mistake == "stage_without_sharding") {
    strategy = {.sharding_configs = {.stage = 2}};
  } else if (mistake == "bare_training" || mistake == "own_wrapper") {
    strategy = {.sharding = true};
  }
  fleet::init(strategy, {.timeout = std::chrono::seconds(5)});
  make(mistake);
  if (mistake != "bare_training") {  // which is told at exit, too
    fleet::stop_worker();
  }
}
