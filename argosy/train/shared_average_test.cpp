/// The strategy's share_parameters together with an average of the weights.
#include <functional>

#include <gtest/gtest.h>

#include "argosy/fleet/fleet.h"
#include "argosy/loss/loss.h"
#include "argosy/optim/optim.h"
#include "argosy/train/model.h"
#include "argosy/train/train_test_support.h"

namespace argosy::train {
namespace {

using testing::kFeatures;
using testing::small_net;
using testing::SmallNet;

/// A network that tells when it is evaluated.
struct ToldNetImpl : torch::nn::Module {
  ToldNetImpl() { inner = register_module("inner", small_net()); }
  torch::Tensor forward(const torch::Tensor& x) {
    if (!is_training() && on_evaluation) {
      on_evaluation();
    }
    return inner->forward(x);
  }
  SmallNet inner{nullptr};
  std::function<void()> on_evaluation{};
};
TORCH_MODULE(ToldNet);

struct Seen {
  at::Tensor while_averaged{};
  at::Tensor after{};
  at::Tensor after_one_more{};
};

/// Rank 1 has the average only after rank 0 has it, and for longer.
Seen train(bool share, int rank, const std::string& store) {
  fleet::init({.share_parameters = share},
              {.init_method = "file://" + store,
               .timeout = std::chrono::seconds(30),
               .rank = rank,
               .world_size = 2});
  ToldNet net;
  Model model(net);
  model.prepare(optim::Adam(net, {.lr = 0.1}),
                loss::CrossEntropy(),
                {},
                {.ema = optim::ExponentialMovingAverageOptions{.decay = 0.9}});
  const auto x = torch::arange(4 * kFeatures, torch::kFloat).reshape({4, kFeatures}) / 10;
  const auto y = torch::tensor({0, 1, 2, 0});
  const auto weights = [&] { return net->inner->first->weight.detach().clone(); };
  for (int step = 0; step < 3; ++step) {
    model.train_batch({x}, {y});
  }
  Seen seen;
  net->on_evaluation = [&] {
    fleet::barrier_worker();  // rank 0: rank 1 may begin. Rank 1: both have the average
    if (rank == 0) {
      fleet::barrier_worker();
    }
    seen.while_averaged = weights();
  };
  if (rank == 1) {
    fleet::barrier_worker();
  }
  (void)model.predict_batch({x});
  fleet::barrier_worker();
  seen.after = weights();
  fleet::barrier_worker();
  model.train_batch({x}, {y});
  seen.after_one_more = weights();
  fleet::stop_worker();
  return seen;
}

TEST(SharedAverage, EvaluatesAndTrainsOnAsWithoutSharing) {
  const test::TempDir folder;
  test::run_ranks(2,
                  [&](int rank) {
                    torch::set_num_threads(1);
                    const Seen plain = train(false, rank, (folder.path() / "plain").string());
                    const Seen shared = train(true, rank, (folder.path() / "shared").string());
                    EXPECT_TRUE(torch::equal(shared.while_averaged, plain.while_averaged)) << rank;
                    EXPECT_TRUE(torch::equal(shared.after, plain.after)) << rank;
                    EXPECT_TRUE(torch::equal(shared.after_one_more, plain.after_one_more)) << rank;
                    EXPECT_FALSE(torch::equal(plain.while_averaged, plain.after)) << rank;
                  },
                  {.mode = test::RankMode::kProcesses, .deadline = std::chrono::seconds(60)});
}

}  // namespace
}  // namespace argosy::train
