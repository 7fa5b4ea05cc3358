// PowerSGD and deep gradient compression, beside what their papers say and plain averages.
#include "argosy/parallel/traffic/compress.h"

#include <optional>

#include <gmock/gmock.h>

#include "argosy/optim/adam.h"
#include "argosy/optim/sgd.h"
#include "argosy/parallel/traffic/orthonormal.h"
#include "argosy/parallel/traffic/traffic_test_support.h"

namespace argosy::parallel {
namespace {

using ::testing::HasSubstr;
using namespace argosy::parallel::testing;  // NOLINT(google-build-using-namespace)

class OverBackend : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Compress, OverBackend, ::testing::Values("gloo", "shm"));

const PowerSgdOptions kAtOnce{.start_power_sgd_iter = 0, .min_compression_rate = 0.01};

TEST(Orthonormal, RowsOfAnySizeAndThoseInTheSpanOfOthers) {
  const at::Tensor rows = at::empty({4, 9}, at::kDouble);
  traffic::fill_random(rows, 3);
  rows.select(0, 2).copy_(rows.select(0, 0) * 2 - rows.select(0, 1));
  rows.select(0, 3).mul_(1e-30);
  EXPECT_EQ(traffic::orthonormalize_rows(rows), std::vector<int64_t>{2});
  at::Tensor expected = at::eye(4, at::kDouble);
  expected[2][2] = 0;
  EXPECT_TRUE(at::allclose(rows.mm(rows.t()), expected, 1e-12, 1e-12));
}

TEST_P(OverBackend, PowerSgdOfFullRankIsTheAverage) {
  over(GetParam(), 2, [](comm::Group& group) {
    DistributedDataParallel plain(TwoLayers(0.0), group);
    DistributedDataParallel model(TwoLayers(0.0), group);
    PowerSgdOptions full = kAtOnce;
    full.matrix_approximation_rank = 8;
    const optim::Optimizer exact = optim::Adam(plain, {.lr = 0.01});
    const optim::Optimizer optimizer = compress(model, optim::Adam(model, {.lr = 0.01}), full);
    EXPECT_EQ(model.stats().comm_hook, "powersgd");
    for (int step = 0; step < 5; ++step) {
      train_step(plain, exact, input_of(group.rank() + 2 * step));
      train_step(model, optimizer, input_of(group.rank() + 2 * step));
    }
    for (size_t k = 0; k < plain.parameters().size(); ++k) {
      EXPECT_TRUE(at::allclose(plain.parameters()[k], model.parameters()[k], 1e-6, 1e-9)) << k;
    }
    expect_equal_on_ranks(model.parameters(), group);
  });
}

/// What was applied and what is left over are together all gradients that there were.
TEST_P(OverBackend, PowerSgdLosesNothingOverSteps) {
  over(GetParam(), 2, [](comm::Group& group) {
    DistributedDataParallel plain(Wide(), group);
    DistributedDataParallel model(Wide(), group);
    const optim::Optimizer still = compress(model, optim::SGD(model, {.lr = 0.0}), kAtOnce);
    optim::Optimizer optimizer = still;
    at::Tensor applied = at::zeros({160, 160}), all = at::zeros({160, 160});
    for (int step = 0; step < 6; ++step) {
      plain.module()->zero_grad();
      plain(batch_of(group.rank(), step)).square().mean().backward();
      all += plain.module()->layer->weight.grad();
      model(batch_of(group.rank(), step)).square().mean().backward();
      applied += model.module()->layer->weight.grad();
      optimizer.step();
      optimizer.zero_grad();
    }
    const optim::OptimizerState state = optimizer.state_dict();
    const at::Tensor errors = state.find("layer.weight")->at("powersgd.error").clone();
    EXPECT_EQ(errors.sizes(), at::IntArrayRef({2, 160 * 160}));
    const at::Tensor left = errors.mean(0).view({160, 160});
    EXPECT_GT((all - applied).norm().item<double>(), 0.05 * all.norm().item<double>())
        << "nothing was left out";
    EXPECT_LT((all - applied - left).norm().item<double>(), 1e-5 * all.norm().item<double>());
    expect_equal_on_ranks({applied}, group);
  });
}

TEST_P(OverBackend, PowerSgdOfRankOneSendsAFiftieth) {
  over(GetParam(), 2, [](comm::Group& group) {
    const auto sent = std::make_shared<SentBytes>();
    DistributedDataParallel plain(Wide(512, 512), group);
    DistributedDataParallel model(Wide(512, 512), group);
    const optim::Optimizer exact = optim::SGD(plain, {.lr = 0.01});
    const optim::Optimizer optimizer = compress(model, optim::SGD(model, {.lr = 0.01}), kAtOnce);
    for (int step = 0; step < 3; ++step) {  // buckets are made anew after the first
      train_step(plain, exact, batch_of(group.rank(), step, 512));
      train_step(model, optimizer, batch_of(group.rank(), step, 512));
    }
    comm::barrier(group);
    comm::add_hook(group, sent);
    train_step(plain, exact, batch_of(group.rank(), 3, 512));
    const int64_t all = sent->take();
    train_step(model, optimizer, batch_of(group.rank(), 3, 512));
    const int64_t few = sent->take();
    comm::remove_hook(group, sent);
    EXPECT_GE(all, 512 * 513 * 4);
    EXPECT_GE(few, 3 * 512 * 4);
    EXPECT_LE(few * 50, all);
  });
}

TEST_P(OverBackend, PowerSgdGoesOnFromItsStateWithTheSameBits) {
  over(GetParam(), 2, [](comm::Group& group) {
    PowerSgdOptions options = kAtOnce;
    options.matrix_approximation_rank = 2;
    options.start_power_sgd_iter = 2;
    const auto trained = [&](int stop_at) {
      std::optional<DistributedDataParallel<Wide>> model(std::in_place, Wide(), group);
      optim::Optimizer optimizer = compress(*model, optim::Momentum(*model, {.lr = 0.1}), options);
      for (int step = 0; step < 8; ++step) {
        if (step == stop_at) {
          const optim::OptimizerState saved = optimizer.state_dict().clone();
          const std::vector<at::Tensor> weights = copies(model->parameters());
          model.emplace(Wide(), group);
          const at::NoGradGuard no_grad;
          for (size_t k = 0; k < weights.size(); ++k) {
            model->parameters()[k].copy_(weights[k]);
          }
          optimizer = compress(*model, optim::Momentum(*model, {.lr = 0.1}), options);
          optimizer.load_state_dict(saved);
        }
        const at::AutoGradMode with_gradients(true);
        train_step(*model, optimizer, batch_of(group.rank(), step));
      }
      return copies(model->parameters());
    };
    const auto through = trained(-1);
    expect_same_bits(through, trained(5));
    expect_same_bits(through, trained(1));
  });
}

// --- Deep gradient compression -----------------------------------------------------------------

struct DgcCase {
  bool nesterov = false;
  double decay = 0;
  double clip = 0;
};

optim::Momentum momentum_of(const engine::NamedTensors& parameters, const DgcCase& c) {
  optim::MomentumOptions options{.lr = 0.2, .momentum = 0.8, .nesterov = c.nesterov};
  options.weight_decay = c.decay;
  if (c.clip > 0) {
    options.grad_clip = optim::ClipGradByNorm(c.clip);
  }
  return optim::Momentum(parameters, options);
}

/// The paper's algorithm for one matrix, with all ranks in one process.
class WrittenByHand {
 public:
  WrittenByHand(int ranks, const DgcCase& of) : c(of), u(ranks), v(ranks) {}

  void step(Wide& net, int64_t sent, int number) {
    const at::Tensor weight = net->layer->weight;
    at::Tensor sum = at::zeros({weight.numel()}, at::kFloat);
    for (size_t rank = 0; rank < u.size(); ++rank) {
      net->zero_grad();
      net->forward(batch_of(static_cast<int>(rank), number)).square().mean().backward();
      const at::NoGradGuard no_grad;
      at::Tensor g = weight.grad().reshape({-1}).clone();
      if (c.clip > 0) {
        const double limit = c.clip / std::sqrt(static_cast<double>(u.size()));
        g *= std::min(1.0, limit / g.norm().item<double>());
      }
      g += c.decay * weight.reshape({-1});
      at::Tensor& m = u[rank].defined() ? u[rank] : u[rank] = at::zeros_like(g);
      at::Tensor& left = v[rank].defined() ? v[rank] : v[rank] = at::zeros_like(g);
      m = c.nesterov ? 0.8 * (m + g) : 0.8 * m + g;
      left = left + m + (c.nesterov ? g : at::zeros_like(g));
      const at::Tensor order = left.abs().argsort(0, /*descending=*/true);
      for (int64_t i = 0; i < sent; ++i) {
        const int64_t at = order[i].item<int64_t>();
        sum[at] += left[at];
        left[at] = 0;
        m[at] = 0;
      }
    }
    const at::NoGradGuard no_grad;
    net->layer->weight -= 0.2 * (sum / static_cast<double>(u.size())).view(weight.sizes());
  }

  DgcCase c;
  std::vector<at::Tensor> u, v;
};

void check_dgc(const char* backend, const DgcCase& c) {
  over(backend, 2, [&](comm::Group& group) {
    DistributedDataParallel model(Wide(), group);
    model.module()->layer->bias.set_requires_grad(true);
    const optim::Optimizer optimizer = compress(
        model, momentum_of(engine::named_parameters(model), c), DgcOptions{.sparsity = {0.99}});
    Wide by_hand;
    WrittenByHand reference(2, c);
    for (int step = 0; step < 6; ++step) {
      // The bias is small: plain momentum. Here it follows the model's, so that the weight counts.
      reference.step(by_hand, 256, step);
      train_step(model, optimizer, batch_of(group.rank(), step));
      const at::NoGradGuard no_grad;
      by_hand->layer->bias.copy_(model.module()->layer->bias);
    }
    const at::Tensor a = model.module()->layer->weight, b = by_hand->layer->weight;
    EXPECT_FALSE(a.equal(Wide()->layer->weight));
    EXPECT_TRUE(at::allclose(a, b, 1e-4, 1e-6)) << (a - b).abs().max().item<double>();
    expect_equal_on_ranks(model.parameters(), group);
  });
}

TEST_P(OverBackend, DgcIsThePapersAlgorithm) {
  check_dgc(GetParam(), {});
}
TEST_P(OverBackend, DgcWithNesterovIsThePapersAlgorithm) {
  check_dgc(GetParam(), {.nesterov = true});
}
TEST_P(OverBackend, DgcWithDecayAndClippingIsThePapersAlgorithm) {
  check_dgc(GetParam(), {.decay = 0.01, .clip = 0.002});
}

TEST_P(OverBackend, DgcSendsAHundredth) {
  over(GetParam(), 2, [](comm::Group& group) {
    const auto sent = std::make_shared<SentBytes>();
    DistributedDataParallel plain(Wide(512, 512), group);
    DistributedDataParallel model(Wide(512, 512), group);
    const optim::Optimizer exact = optim::Momentum(plain, {.lr = 0.01});
    const optim::Optimizer optimizer =
        compress(model, optim::Momentum(model, {.lr = 0.01}), DgcOptions());
    for (int step = 0; step < 3; ++step) {
      train_step(plain, exact, batch_of(group.rank(), step, 512));
      train_step(model, optimizer, batch_of(group.rank(), step, 512));
    }
    comm::barrier(group);
    comm::add_hook(group, sent);
    train_step(plain, exact, batch_of(group.rank(), 3, 512));
    const int64_t all = sent->take();
    train_step(model, optimizer, batch_of(group.rank(), 3, 512));
    const int64_t few = sent->take();
    comm::remove_hook(group, sent);
    EXPECT_GE(all, 512 * 513 * 4);
    EXPECT_GE(few, 262 * 8 + 512 * 4);
    EXPECT_LE(few * 100, all);
  });
}

TEST(Dgc, WarmsUpStageByStage) {
  const Wide net;
  const optim::Momentum optimizer(net, {.lr = 0.1});
  over("in_process", 1, [&](comm::Group& group) {
    DeepGradientCompression dgc(
        *optimizer.impl(),
        group,
        {.rampup_begin_step = 2, .rampup_step = 4, .sparsity = {0.75, 0.9375, 0.999}});
    std::vector<double> seen;
    for (int step = 0; step < 9; ++step) {
      seen.push_back(dgc.sparsity_now());
      dgc.step(*optimizer.impl());
    }
    EXPECT_EQ(seen,
              (std::vector<double>{0.75, 0.75, 0.75, 0.75, 0.9375, 0.999, 0.999, 0.999, 0.999}));
  });
}

TEST(Dgc, IsPlainMomentumBeforeItBegins) {
  over("shm", 2, [](comm::Group& group) {
    DistributedDataParallel plain(Wide(), group);
    DistributedDataParallel model(Wide(), group);
    const optim::Optimizer exact = optim::Momentum(plain, {.lr = 0.1});
    const optim::Optimizer optimizer =
        compress(model, optim::Momentum(model, {.lr = 0.1}), DgcOptions{.rampup_begin_step = 3});
    for (int step = 0; step < 4; ++step) {
      train_step(plain, exact, batch_of(group.rank(), step));
      train_step(model, optimizer, batch_of(group.rank(), step));
      EXPECT_EQ(plain.module()->layer->weight.equal(model.module()->layer->weight), step < 3);
    }
  });
}

TEST_P(OverBackend, DgcGoesOnFromItsStateWithTheSameBits) {
  over(GetParam(), 2, [](comm::Group& group) {
    const DgcOptions options{.rampup_begin_step = 1, .rampup_step = 4, .sparsity = {0.5, 0.99}};
    std::optional<DistributedDataParallel<Wide>> through(std::in_place, Wide(), group);
    std::optional<DistributedDataParallel<Wide>> resumed(std::in_place, Wide(), group);
    optim::Optimizer one = compress(*through, optim::Momentum(*through, {.lr = 0.1}), options);
    for (int step = 0; step < 4; ++step) {
      train_step(*through, one, batch_of(group.rank(), step));
    }
    optim::Optimizer two = compress(*resumed, optim::Momentum(*resumed, {.lr = 0.1}), options);
    two.load_state_dict(one.state_dict());
    {
      const at::NoGradGuard no_grad;
      for (size_t k = 0; k < through->parameters().size(); ++k) {
        resumed->parameters()[k].copy_(through->parameters()[k]);
      }
    }
    for (int step = 4; step < 8; ++step) {
      train_step(*through, one, batch_of(group.rank(), step));
      train_step(*resumed, two, batch_of(group.rank(), step));
    }
    expect_same_bits(through->parameters(), resumed->parameters());
  });
}

TEST(Dgc, ASecondAveragedPassBeforeTheStepIsNamed) {
  over("shm", 2, [](comm::Group& group) {
    DistributedDataParallel model(Wide(), group);
    const optim::Optimizer optimizer =
        compress(model, optim::Momentum(model, {.lr = 0.1}), DgcOptions());
    model(batch_of(group.rank(), 0)).sum().backward();
    EXPECT_THAT(error_of([&] { model(batch_of(group.rank(), 1)).sum().backward(); }),
                HasSubstr("layer.weight was averaged a second time before optimizer.step()"));
  });
}

TEST(Dgc, AnUpdateThatWasDroppedIsNoSecondPass) {
  over("shm", 2, [](comm::Group& group) {
    DistributedDataParallel model(Wide(), group);
    optim::Optimizer optimizer = compress(model, optim::Momentum(model, {.lr = 0.1}), DgcOptions());
    model(batch_of(group.rank(), 0)).square().mean().backward();
    optimizer.zero_grad();
    train_step(model, optimizer, batch_of(group.rank(), 1));
    EXPECT_FALSE(model.module()->layer->weight.equal(Wide()->layer->weight));
    expect_equal_on_ranks(model.parameters(), group);
  });
}

TEST(Dgc, AStepThatFailsKeepsWeightsAndGradients) {
  over("shm", 2, [](comm::Group& group) {
    DistributedDataParallel model(Wide(), group);
    optim::Optimizer optimizer = compress(model, optim::Momentum(model, {.lr = 0.1}), DgcOptions());
    model(batch_of(group.rank(), 0)).square().mean().backward();
    const at::Tensor weight = model.module()->layer->weight, bias = model.module()->layer->bias;
    const at::Tensor before = weight.detach().clone(), gradient = bias.grad();
    bias.mutable_grad() = at::zeros({160}).to_sparse();
    EXPECT_THAT(error_of([&] { optimizer.step(); }), HasSubstr("layer.bias"));
    EXPECT_TRUE(weight.grad().defined());
    EXPECT_TRUE(weight.equal(before));
    bias.mutable_grad() = gradient;
    optimizer.step();
    EXPECT_FALSE(weight.equal(before));
    expect_equal_on_ranks(model.parameters(), group);
  });
}

// --- What does not go --------------------------------------------------------------------------

TEST(Compress, RefusesWhatItDoesNotGoWith) {
  on_ranks(2, [](comm::Group& group) {
    DistributedDataParallel model(Wide(), group);
    const auto refused = [&](const optim::Optimizer& optimizer) {
      return error_of([&] { static_cast<void>(compress(model, optimizer, DgcOptions())); });
    };
    EXPECT_THAT(refused(optim::Adam(model)), HasSubstr("got Adam. Give it one of these"));
    EXPECT_THAT(refused(optim::SGD(model)), HasSubstr("got SGD without momentum"));
    EXPECT_THAT(refused(optim::SGD(model, {.momentum = 0.9, .dampening = 0.5})),
                HasSubstr("dampening 0.5"));
    EXPECT_THAT(refused(optim::Momentum(model, {.grad_clip = optim::ClipGradByGlobalNorm(1.0)})),
                HasSubstr("expected ClipGradByNorm or none, got ClipGradByGlobalNorm"));
    EXPECT_THAT(
        error_of([&] {
          static_cast<void>(compress(model, optim::Momentum(model), DgcOptions{.sparsity = {1.0}}));
        }),
        HasSubstr("sparsity: expected shares from 0 to below 1, got 1"));
    const optim::Optimizer momentum = compress(model, optim::Momentum(model), DgcOptions());
    EXPECT_THAT(error_of([&] { auto join = model.join(); }), HasSubstr("dgc remembers"));
    const optim::Optimizer plain = optim::SGD(model);
    EXPECT_THAT(error_of([&] { model.divide_step(plain, {.scatter_gradients = true}); }),
                HasSubstr("and dgc sends whole ones"));
    EXPECT_THAT(
        error_of([&] { static_cast<void>(compress(model, optim::Momentum(model), DgcOptions())); }),
        HasSubstr("once only; \"dgc\" is registered"));
    DistributedDataParallel unused(Wide(), group, {.find_unused_parameters = true});
    EXPECT_THAT(error_of([&] {
                  static_cast<void>(compress(unused, optim::Adam(unused), PowerSgdOptions()));
                }),
                HasSubstr("find_unused_parameters leaves gradients as they are"));
  });
}

TEST(Compress, StateOfAnotherNumberOfRanksIsNamed) {
  optim::OptimizerState of_two;
  over("shm", 2, [&](comm::Group& group) {
    DistributedDataParallel model(Wide(), group);
    const optim::Optimizer optimizer = compress(model, optim::SGD(model), kAtOnce);
    train_step(model, optimizer, batch_of(group.rank(), 0));
    const optim::OptimizerState state = optimizer.state_dict().clone();
    if (group.rank() == 0) {
      of_two = state;
    }
  });
  over("shm", 3, [&](comm::Group& group) {
    DistributedDataParallel model(Wide(), group);
    optim::Optimizer optimizer = compress(model, optim::SGD(model), kAtOnce);
    EXPECT_THAT(error_of<CheckpointError>([&] { optimizer.load_state_dict(of_two); }),
                HasSubstr("expected [3, 25600], got [2, 25600]"));
  });
}

}  // namespace
}  // namespace argosy::parallel
