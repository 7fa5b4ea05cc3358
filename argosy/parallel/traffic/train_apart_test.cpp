// LocalSGD and DiLoCo, beside the same trainings written by hand in one process.
#include "argosy/parallel/traffic/train_apart.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <future>
#include <limits>
#include <optional>

#include <gmock/gmock.h>

#include "argosy/optim/adam.h"
#include "argosy/optim/sgd.h"
#include "argosy/parallel/traffic/delta_code.h"
#include "argosy/parallel/traffic/orthonormal.h"
#include "argosy/parallel/traffic/rank_state.h"
#include "argosy/parallel/traffic/traffic_test_support.h"

namespace argosy::parallel {
namespace {

using ::testing::HasSubstr;
using namespace argosy::parallel::testing;  // NOLINT(google-build-using-namespace)

class ApartOver : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(TrainApart, ApartOver, ::testing::Values("gloo", "shm"));

bool alike_on_ranks(const at::Tensor& own, const comm::Group& group) {
  const auto all = comm::all_gather(own.detach(), group);
  return std::ranges::all_of(all, [&](const at::Tensor& each) { return each.equal(own); });
}

/// Nets of all ranks in one process, each with an optimizer of its own.
struct Ranks {
  template <typename MakeOptimizer>
  Ranks(int ranks, const MakeOptimizer& make) {
    for (int rank = 0; rank < ranks; ++rank) {
      nets.emplace_back(TwoLayers(0.0));
      optimizers.push_back(make(nets.back()));
    }
  }
  void step(int number) {
    for (size_t rank = 0; rank < nets.size(); ++rank) {
      train_step(nets[rank], optimizers[rank], input_of(static_cast<int>(rank) + 2 * number));
    }
  }
  [[nodiscard]] at::Tensor mean_of(size_t parameter) const {
    at::Tensor sum = at::zeros_like(nets[0]->parameters()[parameter]);
    for (const TwoLayers& net : nets) {
      sum += net->parameters()[parameter].detach();
    }
    return sum / static_cast<double>(nets.size());
  }
  void set(size_t parameter, const at::Tensor& value) {
    const at::NoGradGuard no_grad;
    for (TwoLayers& net : nets) {
      net->parameters()[parameter].copy_(value);
    }
  }
  [[nodiscard]] static size_t parameters() { return 4; }

  std::vector<TwoLayers> nets{};
  std::vector<optim::Optimizer> optimizers{};
};

void expect_close(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  for (size_t k = 0; k < b.size(); ++k) {
    EXPECT_TRUE(at::allclose(a[k], b[k], 1e-9, 1e-12)) << k << "\n" << (a[k] - b[k]);
  }
}

// --- LocalSGD ----------------------------------------------------------------------------------

TEST_P(ApartOver, LocalSgdOfOneStepIsTheAverageOfGradients) {
  over(GetParam(), 2, [](comm::Group& group) {
    DistributedDataParallel plain(TwoLayers(0.0), group);
    DistributedDataParallel model(TwoLayers(0.0), group);
    const optim::Optimizer exact = optim::SGD(plain, {.lr = 0.1});
    const optim::Optimizer optimizer =
        train_apart(model, optim::SGD(model, {.lr = 0.1}), LocalSgdOptions{.k_steps = 1});
    for (int step = 0; step < 6; ++step) {
      train_step(plain, exact, input_of(group.rank() + 2 * step));
      train_step(model, optimizer, input_of(group.rank() + 2 * step));
    }
    expect_close(model.parameters(), plain.parameters());
    EXPECT_EQ(model.stats().reduced_passes, 1) << "gradients were averaged after begin_step";
    expect_equal_on_ranks(model.parameters(), group);
  });
}

TEST_P(ApartOver, LocalSgdKeepsEachRanksMomentum) {
  const auto momentum = [](const auto& model) {
    return optim::Optimizer(optim::Momentum(model, {.lr = 0.1, .momentum = 0.9}));
  };
  over(GetParam(), 2, [&](comm::Group& group) {
    DistributedDataParallel model(TwoLayers(0.0), group);
    const optim::Optimizer optimizer =
        train_apart(model, momentum(model), LocalSgdOptions{.k_steps = 3, .begin_step = 1});
    Ranks by_hand(2, momentum);
    for (int step = 0; step < 10; ++step) {
      train_step(model, optimizer, input_of(group.rank() + 2 * step));
      if (step == 0) {  // its gradients are averaged
        for (size_t rank = 0; rank < 2; ++rank) {
          by_hand.nets[rank]->zero_grad();
          by_hand.nets[rank]->forward(input_of(static_cast<int>(rank))).square().mean().backward();
        }
        const at::NoGradGuard no_grad;
        for (size_t k = 0; k < Ranks::parameters(); ++k) {
          const at::Tensor mean =
              (by_hand.nets[0]->parameters()[k].grad() + by_hand.nets[1]->parameters()[k].grad()) /
              2;
          by_hand.nets[0]->parameters()[k].mutable_grad() = mean.clone();
          by_hand.nets[1]->parameters()[k].mutable_grad() = mean.clone();
        }
        for (optim::Optimizer& each : by_hand.optimizers) {
          each.step();
          each.zero_grad();
        }
        continue;
      }
      by_hand.step(step);
      for (size_t k = 0; k < Ranks::parameters() && step % 3 == 0; ++k) {
        by_hand.set(k, by_hand.mean_of(k));
      }
      EXPECT_EQ(alike_on_ranks(model.parameters()[0], group), step % 3 == 0) << step;
      expect_close(model.parameters(),
                   by_hand.nets[static_cast<size_t>(group.rank())]->parameters());
    }
  });
}

TEST(LocalSgd, HasTheBitsOfAveragedGradientsUntilItBegins) {
  over("shm", 2, [](comm::Group& group) {
    DistributedDataParallel plain(TwoLayers(0.0), group);
    DistributedDataParallel model(TwoLayers(0.0), group);
    const optim::Optimizer exact = optim::Momentum(plain, {.lr = 0.1});
    const optim::Optimizer optimizer = train_apart(
        model, optim::Momentum(model, {.lr = 0.1}), LocalSgdOptions{.k_steps = 4, .begin_step = 3});
    for (int step = 0; step < 4; ++step) {
      train_step(plain, exact, input_of(group.rank() + 2 * step));
      train_step(model, optimizer, input_of(group.rank() + 2 * step));
      EXPECT_EQ(plain.parameters()[0].equal(model.parameters()[0]), step < 3) << step;
    }
  });
}

TEST(LocalSgd, AdaptsTheStepsToLossAndRate) {
  over("shm", 2, [](comm::Group& group) {
    DistributedDataParallel model(TwoLayers(0.0), group);
    const auto steps = std::make_shared<LocalSgd>(model.core(),
                                                  optim::SGD(model, {.lr = 0.1}).impl(),
                                                  AdaptiveLocalSgdOptions{.init_k_steps = 4});
    optim::Optimizer optimizer(steps);
    const auto step = [&](double loss) {
      model(input_of(group.rank())).square().mean().backward();
      optimizer.note_loss(loss + group.rank());  // whose mean is loss + 0.5
      optimizer.step();
      optimizer.zero_grad();
    };
    step(7.5);  // loss0 = 8
    EXPECT_EQ(steps->k_steps(), 4);
    for (int i = 0; i < 4; ++i) {
      step(1.5);
    }
    EXPECT_EQ(steps->k_steps(), 1) << "sqrt(2 / 8 * 4)";
    step(31.5);
    EXPECT_EQ(steps->k_steps(), 4) << "sqrt(32 / 8 * 4)";
    optimizer.set_lr(0.01);
    for (int i = 0; i < 4; ++i) {
      step(31.5);
    }
    EXPECT_EQ(steps->k_steps(), 13) << "sqrt(10 * 32 / 8 * 4)";
    for (int i = 0; i < 13; ++i) {
      step(1e6);
    }
    EXPECT_EQ(steps->k_steps(), 16) << "the most";
    for (int i = 0; i < 15; ++i) {
      step(1);
    }
    model(input_of(group.rank())).square().mean().backward();
    EXPECT_THAT(error_of([&] { optimizer.step(); }),
                HasSubstr("goes by the loss, and none was told for step"));
  });
}

TEST(LocalSgd, ALossThatIsNotANumberMakesOneStepOnAllRanks) {
  over("shm", 2, [](comm::Group& group) {
    DistributedDataParallel model(TwoLayers(0.0), group);
    const auto steps = std::make_shared<LocalSgd>(model.core(),
                                                  optim::SGD(model, {.lr = 0.1}).impl(),
                                                  AdaptiveLocalSgdOptions{.init_k_steps = 4});
    optim::Optimizer optimizer(steps);
    const auto step = [&](double loss) {
      optimizer.note_loss(loss);
      train_step(model, optimizer, input_of(group.rank()));
    };
    step(8);
    for (int i = 0; i < 4; ++i) {
      step(group.rank() == 1 ? std::numeric_limits<double>::quiet_NaN() : 8.0);
    }
    EXPECT_EQ(steps->k_steps(), 1);
    step(8);
    EXPECT_EQ(steps->k_steps(), 2) << "sqrt(8 / 8 * 4)";
  });
}

// --- DiLoCo ------------------------------------------------------------------------------------

TEST_P(ApartOver, DilocoWithAPlainOuterStepIsTheAverageOfWeights) {
  over(GetParam(), 2, [](comm::Group& group) {
    DistributedDataParallel averaged(TwoLayers(0.0), group);
    DistributedDataParallel model(TwoLayers(0.0), group);
    const optim::Optimizer one = optim::SGD(averaged, {.lr = 0.1});
    const optim::Optimizer two =
        train_apart(model,
                    optim::SGD(model, {.lr = 0.1}),
                    DilocoOptions{.sync_every = 1, .outer_lr = 1, .outer_momentum = 0});
    for (int step = 0; step < 5; ++step) {
      train_step(averaged, one, input_of(group.rank() + 2 * step));
      train_step(model, two, input_of(group.rank() + 2 * step));
    }
    EXPECT_EQ(model.stats().reduced_passes, 0) << "gradients were averaged";
    expect_close(model.parameters(), averaged.parameters());
    expect_equal_on_ranks(model.parameters(), group);
  });
}

optim::Optimizer adamw_of(const auto& model) {
  return optim::AdamW(model, {.lr = 0.01});
}

/// The outer optimizer is libtorch's here.
TEST_P(ApartOver, DilocoIsThePapersAlgorithm) {
  over(GetParam(), 2, [](comm::Group& group) {
    for (const bool nesterov : {true, false}) {
      DistributedDataParallel model(TwoLayers(0.0), group);
      const optim::Optimizer optimizer =
          train_apart(model,
                      adamw_of(model),
                      DilocoOptions{.sync_every = 3, .outer_lr = 0.7, .outer_nesterov = nesterov});
      Ranks by_hand(2, [](const auto& net) { return adamw_of(net); });
      std::vector<at::Tensor> global;
      for (const at::Tensor& parameter : by_hand.nets[0]->parameters()) {
        global.push_back(parameter.detach().clone().requires_grad_());
      }
      torch::optim::SGD outer(global,
                              torch::optim::SGDOptions(0.7).momentum(0.9).nesterov(nesterov));
      for (int step = 0; step < 9; ++step) {
        train_step(model, optimizer, input_of(group.rank() + 2 * step));
        by_hand.step(step);
        if (step % 3 == 2) {
          for (size_t k = 0; k < global.size(); ++k) {
            global[k].mutable_grad() = global[k].detach() - by_hand.mean_of(k);
          }
          outer.step();
          for (size_t k = 0; k < global.size(); ++k) {
            by_hand.set(k, global[k].detach());
          }
        }
        EXPECT_EQ(alike_on_ranks(model.parameters()[0], group), step % 3 == 2) << step;
      }
      expect_close(model.parameters(), by_hand.nets[0]->parameters());
    }
  });
}

/// Two fragments, the first weight and the rest, whose sums are used two steps after they began.
TEST_P(ApartOver, StreamingDilocoIsThePapersAlgorithm) {
  over(GetParam(), 2, [](comm::Group& group) {
    DistributedDataParallel model(TwoLayers(0.0, 2), group);
    const optim::Optimizer optimizer = train_apart(model,
                                                   optim::SGD(model, {.lr = 0.1}),
                                                   DilocoOptions{.sync_every = 6,
                                                                 .outer_lr = 0.5,
                                                                 .outer_momentum = 0.8,
                                                                 .fragments = 2,
                                                                 .fragment_sync_delay = 2,
                                                                 .fragment_update_alpha = 0.25});
    std::vector<TwoLayers> nets{TwoLayers(0.0, 2), TwoLayers(0.0, 2)};
    std::vector<at::Tensor> global = copies(nets[0]->parameters());
    std::vector<at::Tensor> momentum, delta(4);
    for (const at::Tensor& each : global) {
      momentum.push_back(at::zeros_like(each));
    }
    for (int step = 1; step <= 20; ++step) {
      train_step(model, optimizer, input_of(group.rank() + 2 * step));
      for (int rank = 0; rank < 2; ++rank) {
        train_step(nets[static_cast<size_t>(rank)],
                   optim::SGD(nets[static_cast<size_t>(rank)], {.lr = 0.1}),
                   input_of(rank + 2 * step));
      }
      const at::NoGradGuard no_grad;
      for (size_t k = 0; k < 4; ++k) {
        const int turn = k < 1 ? 3 : 0;  // of the fragment
        const at::Tensor a = nets[0]->parameters()[k], b = nets[1]->parameters()[k];
        if (step % 6 == (turn + 2) % 6 && delta[k].defined()) {
          momentum[k] = 0.8 * momentum[k] + delta[k];
          global[k] = global[k] - 0.5 * (delta[k] + 0.8 * momentum[k]);
          a.copy_(0.25 * a + 0.75 * global[k]);
          b.copy_(0.25 * b + 0.75 * global[k]);
        }
        if (step % 6 == turn) {
          delta[k] = global[k] - (a + b) / 2;
        }
      }
      expect_close(model.parameters(), nets[static_cast<size_t>(group.rank())]->parameters());
    }
  });
}

TEST(DeltaCode, IsWithinHalfAUnitForAnyLength) {
  for (const int bits : {8, 4}) {
    for (const int64_t size : {1, 63, 64, 65, 256, 1000}) {
      const at::Tensor values = at::empty({size}, at::kFloat);
      traffic::fill_random(values, static_cast<uint64_t>(size));
      const at::Tensor code = traffic::encode_delta(values, bits);
      EXPECT_EQ(code.numel(), traffic::code_bytes(size, bits));
      const at::Tensor back = at::zeros({size}, at::kFloat);
      traffic::add_decoded(code, bits, back);
      const double unit = values.abs().max().item<double>() / (bits == 8 ? 127 : 7);
      EXPECT_LE((back - values).abs().max().item<double>(), unit * 0.5001) << bits << " " << size;
      EXPECT_NEAR(back.abs().max().item<float>(), values.abs().max().item<float>(), 1e-6);
    }
    const at::Tensor bad = at::zeros({70}, at::kFloat);
    bad[3] = std::numeric_limits<float>::infinity();
    const at::Tensor back = at::zeros({70}, at::kFloat);
    traffic::add_decoded(traffic::encode_delta(bad, bits), bits, back);
    EXPECT_TRUE(back.isnan().any().item<bool>());
  }
}

TEST_P(ApartOver, DilocoInFewBitsSendsLessAndRanksStayAlike) {
  over(GetParam(), 2, [](comm::Group& group) {
    const auto sent = std::make_shared<SentBytes>();
    int64_t bytes_of_32 = 0;
    std::vector<at::Tensor> exact;
    for (const int64_t bits : {32, 8, 4}) {
      DistributedDataParallel model(Wide(), group);
      const std::vector<at::Tensor> begun = copies(model.parameters());
      const optim::Optimizer optimizer =
          train_apart(model,
                      optim::SGD(model, {.lr = 1.0}),
                      DilocoOptions{.sync_every = 4, .fragments = 2, .bits = bits});
      for (int step = 0; step < 8; ++step) {
        if (step == 4) {
          comm::barrier(group);
          comm::add_hook(group, sent);
        }
        train_step(model, optimizer, batch_of(group.rank(), step));
      }
      comm::remove_hook(group, sent);
      const int64_t bytes = sent->take();
      expect_equal_on_ranks({model.module()->layer->bias}, group);  // of the last fragment
      if (bits == 32) {
        bytes_of_32 = bytes;
        EXPECT_EQ(bytes, 160 * 161 * 4);
        exact = copies(model.parameters());
        continue;
      }
      EXPECT_LE(bytes * (bits == 8 ? 39 : 70), bytes_of_32 * 10);
      const at::Tensor moved = exact[0] - begun[0];
      const at::Tensor error = model.parameters()[0].detach() - exact[0];
      EXPECT_LT(error.norm().item<double>(),
                (bits == 8 ? 0.01 : 0.2) * moved.norm().item<double>());
      EXPECT_GT(error.norm().item<double>(), 0);
    }
  });
}

TEST(Diloco, TheOuterStepActsForOneRank) {
  over("in_process", 1, [](comm::Group& group) {
    DistributedDataParallel model(TwoLayers(0.0), group);
    const at::Tensor begun = model.parameters()[0].detach().clone();
    TwoLayers plain(0.0);
    const optim::Optimizer optimizer =
        train_apart(model,
                    optim::SGD(model, {.lr = 0.1}),
                    DilocoOptions{.sync_every = 1, .outer_lr = 0.5, .outer_momentum = 0});
    train_step(model, optimizer, input_of(0));
    train_step(plain, optim::SGD(plain, {.lr = 0.1}), input_of(0));
    EXPECT_TRUE(
        at::allclose(model.parameters()[0] - begun, (plain->parameters()[0] - begun) * 0.5));
  });
}

void copy_weights(const std::vector<at::Tensor>& to, const std::vector<at::Tensor>& from) {
  const at::NoGradGuard no_grad;
  for (size_t k = 0; k < to.size(); ++k) {
    to[k].copy_(from[k]);
  }
}

TEST_P(ApartOver, DilocoBeginsAtTheWeightsOfTheFirstStep) {
  over(GetParam(), 2, [](comm::Group& group) {
    const DilocoOptions options{.sync_every = 2, .outer_lr = 0.5};
    DistributedDataParallel loaded(TwoLayers(5.0), group);
    DistributedDataParallel model(TwoLayers(0.0), group);
    const optim::Optimizer one = train_apart(loaded, adamw_of(loaded), options);
    const optim::Optimizer two = train_apart(model, adamw_of(model), options);
    copy_weights(loaded.parameters(), model.parameters());
    for (int step = 0; step < 4; ++step) {
      train_step(loaded, one, input_of(group.rank() + 2 * step));
      train_step(model, two, input_of(group.rank() + 2 * step));
    }
    expect_same_bits(copies(loaded.parameters()), copies(model.parameters()));
  });
}

/// They come while a sum is under way and the shared weights are in use.
TEST_P(ApartOver, ReplacedWeightsEndWhatDilocoRemembersOfTheOld) {
  over(GetParam(), 2, [](comm::Group& group) {
    const DilocoOptions options{
        .sync_every = 2, .outer_lr = 0.5, .outer_momentum = 0, .fragment_sync_delay = 1};
    DistributedDataParallel model(TwoLayers(0.0), group);
    DistributedDataParallel fresh(TwoLayers(5.0), group);
    optim::Optimizer one = train_apart(model, optim::SGD(model, {.lr = 0.1}), options);
    const optim::Optimizer two = train_apart(fresh, optim::SGD(fresh, {.lr = 0.1}), options);
    for (int step = 0; step < 2; ++step) {
      train_step(model, one, input_of(group.rank() + 2 * step));
    }
    one.use_shared_weights(true);
    copy_weights(model.parameters(), fresh.parameters());
    one.weights_replaced();
    one.use_shared_weights(false);
    expect_same_bits(copies(model.parameters()), copies(fresh.parameters()));
    for (int step = 0; step < 5; ++step) {
      train_step(model, one, input_of(group.rank() + 2 * step));
      train_step(fresh, two, input_of(group.rank() + 2 * step));
    }
    expect_same_bits(copies(model.parameters()), copies(fresh.parameters()));
  });
}

/// Rank 1 takes no part in it, and stays until rank 0 has seen the timeout.
TEST(Diloco, ASumThatFailedIsNoResult) {
  std::promise<void> seen;
  const std::shared_future<void> until_seen = seen.get_future().share();
  on_ranks(
      2,
      [&](comm::Group& group) {
        DistributedDataParallel model(TwoLayers(0.0), group);
        const optim::Optimizer optimizer =
            train_apart(model,
                        optim::SGD(model, {.lr = 0.1}),
                        DilocoOptions{.sync_every = 2, .fragment_sync_delay = 1});
        if (group.rank() == 1) {
          static_cast<void>(until_seen.wait_for(std::chrono::seconds(10)));
          return;
        }
        for (int step = 0; step < 2; ++step) {
          train_step(model, optimizer, input_of(step));
        }
        for (int time = 0; time < 2; ++time) {
          EXPECT_THROW(static_cast<void>(optimizer.state_dict()), CommError) << time;
        }
        seen.set_value();
      },
      std::chrono::seconds(1));
}

/// The last weight is so large that the last of four fragments is empty.
struct LastIsLargeImpl : torch::nn::Module {
  LastIsLargeImpl() {
    first = register_module("first", torch::nn::BatchNorm1d(3));
    last = register_module("last", torch::nn::Linear(torch::nn::LinearOptions(3, 40).bias(false)));
    to(torch::kDouble);
    fill(*this, 1);
  }
  torch::Tensor forward(const torch::Tensor& x) { return last(first(x)); }
  torch::nn::BatchNorm1d first{nullptr};
  torch::nn::Linear last{nullptr};
};
TORCH_MODULE(LastIsLarge);

TEST(Diloco, BuffersFollowTheLastFragmentThatHasWeights) {
  over("shm", 2, [](comm::Group& group) {
    DistributedDataParallel model(LastIsLarge(), group);
    const optim::Optimizer optimizer = train_apart(
        model, optim::SGD(model, {.lr = 0.1}), DilocoOptions{.sync_every = 4, .fragments = 4});
    const at::Tensor mean = model.module()->first->running_mean;
    for (int step = 1; step <= 3; ++step) {
      train_step(model, optimizer, input_of(group.rank() + 2 * step));
      EXPECT_EQ(alike_on_ranks(mean, group), step == 3) << step;
    }
  });
}

TEST(Diloco, AStateOfAnotherModelIsNamedAndChangesNothing) {
  over("shm", 2, [](comm::Group& group) {
    DistributedDataParallel model(TwoLayers(0.0), group);
    DistributedDataParallel other(TwoLayers(5.0), group);
    const optim::Optimizer one =
        train_apart(model, adamw_of(model), DilocoOptions{.sync_every = 2});
    optim::Optimizer two = train_apart(other, adamw_of(other), DilocoOptions{.sync_every = 2});
    for (int step = 0; step < 3; ++step) {
      train_step(model, one, input_of(group.rank() + 2 * step));
      train_step(other, two, input_of(group.rank() + 2 * step));
    }
    const std::vector<at::Tensor> before = copies(other.parameters());
    const optim::OptimizerState saved = one.state_dict().clone();
    optim::OptimizerState lacking = saved;
    std::erase_if(lacking.parameters, [](const auto& each) { return each.first == "second.bias"; });
    EXPECT_THAT(error_of<CheckpointError>([&] { two.load_state_dict(lacking); }),
                HasSubstr("second.bias/diloco.global: expected an entry"));
    optim::OptimizerState larger = saved;
    traffic::entries_of(larger, "second.bias").set("rank.exp_avg", at::zeros({2, 99}, at::kDouble));
    EXPECT_THAT(error_of<CheckpointError>([&] { two.load_state_dict(larger); }),
                HasSubstr("second.bias/rank.exp_avg: expected [2, 2], got [2, 99]"));
    expect_same_bits(copies(other.parameters()), before);
  });
}

// --- Both --------------------------------------------------------------------------------------

using Wrap = std::function<optim::Optimizer(DistributedDataParallel<TwoLayers>& model)>;

/// A resume at each step has the bits of the training that was never stopped.
void check_resume(const char* backend, const Wrap& wrap) {
  over(backend, 2, [&](comm::Group& group) {
    const auto trained = [&](int stop_at) {
      std::optional<DistributedDataParallel<TwoLayers>> model(std::in_place, TwoLayers(0.0), group);
      std::optional<optim::Optimizer> optimizer = wrap(*model);
      for (int step = 0; step < 9; ++step) {
        if (step == stop_at) {
          const optim::OptimizerState saved = optimizer->state_dict().clone();
          optimizer.reset();
          model.emplace(TwoLayers(5.0), group);  // whose weights are others
          optimizer = wrap(*model);
          optimizer->load_state_dict(saved);
        }
        train_step(*model, *optimizer, input_of(group.rank() + 2 * step));
      }
      return copies(model->parameters());
    };
    const auto through = trained(-1);
    for (int stop_at = 1; stop_at < 9; ++stop_at) {
      expect_same_bits(through, trained(stop_at));
    }
  });
}

TEST_P(ApartOver, LocalSgdGoesOnFromItsStateWithTheSameBits) {
  check_resume(GetParam(), [](auto& model) {
    return train_apart(
        model, optim::Momentum(model, {.lr = 0.1}), LocalSgdOptions{.k_steps = 3, .begin_step = 2});
  });
}

TEST_P(ApartOver, StreamingDilocoGoesOnWithSumsUnderWay) {
  for (const int64_t bits : {32, 4}) {
    check_resume(GetParam(), [bits](auto& model) {
      return train_apart(model,
                         adamw_of(model),
                         DilocoOptions{.sync_every = 4,
                                       .fragments = 2,
                                       .fragment_sync_delay = 2,
                                       .fragment_update_alpha = 0.5,
                                       .bits = bits});
    });
  }
}

TEST_P(ApartOver, SharedWeightsAreAlikeAndOwnOnesComeBack) {
  over(GetParam(), 2, [](comm::Group& group) {
    DistributedDataParallel model(TwoLayers(0.0), group);
    optim::Optimizer optimizer =
        train_apart(model, adamw_of(model), DilocoOptions{.sync_every = 10});
    for (int step = 0; step < 3; ++step) {
      train_step(model, optimizer, input_of(group.rank() + 2 * step));
    }
    const std::vector<at::Tensor> own = copies(model.parameters());
    EXPECT_FALSE(alike_on_ranks(own[0], group));
    optimizer.use_shared_weights(true);
    expect_equal_on_ranks(model.parameters(), group);
    EXPECT_THAT(error_of([&] { optimizer.step(); }), HasSubstr("while the shared weights"));
    const at::Tensor saved =
        optimizer.state_dict().find("first.weight")->at("rank.weights").clone();
    EXPECT_TRUE(saved[group.rank()].equal(own[0].reshape({-1})));
    optimizer.use_shared_weights(false);
    expect_same_bits(copies(model.parameters()), own);
  });
}

TEST(TrainApart, TheEndOfOneOfTwoLeavesRanksApart) {
  on_ranks(2, [](comm::Group& group) {
    DistributedDataParallel model(TwoLayers(0.0), group);
    const auto wrapped = [&] {
      return train_apart(model, optim::SGD(model, {.lr = 0.1}), DilocoOptions{.sync_every = 100});
    };
    std::optional<optim::Optimizer> first = wrapped();
    const optim::Optimizer second = wrapped();
    first.reset();
    for (int step = 0; step < 2; ++step) {
      train_step(model, second, input_of(group.rank() + 2 * step));
    }
    EXPECT_EQ(model.stats().reduced_passes, 0) << "gradients were averaged";
    EXPECT_FALSE(alike_on_ranks(model.parameters()[0], group));
  });
}

TEST(TrainApart, RefusesWhatItDoesNotGoWith) {
  on_ranks(2, [](comm::Group& group) {
    DistributedDataParallel model(TwoLayers(0.0), group);
    engine::NamedTensors some = engine::named_parameters(model);
    some.pop_back();
    EXPECT_THAT(error_of([&] {
                  static_cast<void>(train_apart(model, optim::SGD(some), LocalSgdOptions()));
                }),
                HasSubstr("localsgd: the optimizer lacks parameter second.bias of the model"));
    EXPECT_THAT(
        error_of([&] { static_cast<void>(train_apart(model, optim::SGD(some), DilocoOptions())); }),
        HasSubstr("diloco: the optimizer lacks parameter second.bias of the model"));
    EXPECT_THAT(error_of([&] {
                  static_cast<void>(train_apart(model, adamw_of(model), LocalSgdOptions()));
                }),
                HasSubstr("got AdamW, whose state would not fit"));
    DistributedDataParallel one(TwoLayers(0.0), group, {.virtual_ranks = 1});
    EXPECT_THAT(
        error_of([&] { static_cast<void>(train_apart(one, optim::SGD(one), LocalSgdOptions())); }),
        HasSubstr("here are 2 processes for 1. Start at most 1"));
    DistributedDataParallel four(TwoLayers(0.0), group, {.virtual_ranks = 4});
    const optim::Optimizer first = train_apart(four, optim::SGD(four), LocalSgdOptions());
    {
      const optim::Optimizer second = train_apart(four, optim::SGD(four), LocalSgdOptions());
      EXPECT_THAT(error_of([&] { four.begin({.leaf = 0, .leaves = 2}); }),
                  HasSubstr("before you train with the other"));
    }
    four.begin({.leaf = 0, .leaves = 2});  // it has gone
    EXPECT_THAT(error_of([&] {
                  static_cast<void>(train_apart(
                      model, optim::SGD(model), DilocoOptions{.sync_every = 4, .fragments = 5}));
                }),
                HasSubstr("fragments: expected 1 to sync_every (4), got 5"));
    const optim::Optimizer optimizer = train_apart(model, adamw_of(model), DilocoOptions());
    EXPECT_THAT(error_of([&] { auto join = model.join(); }), HasSubstr("weights of its own"));
    DistributedDataParallel other(TwoLayers(0.0), group);
    optim::Optimizer of_four =
        train_apart(other, adamw_of(other), DilocoOptions{.sync_every = 8, .fragments = 4});
    EXPECT_THAT(error_of<CheckpointError>([&] { of_four.load_state_dict(optimizer.state_dict()); }),
                HasSubstr("fragments: expected 4, the checkpoint has 1"));
  });
}

}  // namespace
}  // namespace argosy::parallel
