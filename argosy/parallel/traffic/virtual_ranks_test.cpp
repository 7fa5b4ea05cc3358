// Trainings that save traffic: V virtual ranks have the same bits on any number of processes, and
// go on from a checkpoint on any other.
#include <fmt/format.h>

#include <mutex>
#include <type_traits>

#include <gmock/gmock.h>

#include "argosy/base/even_part.h"
#include "argosy/optim/adam.h"
#include "argosy/optim/sgd.h"
#include "argosy/parallel/traffic/compress.h"
#include "argosy/parallel/traffic/traffic_test_support.h"
#include "argosy/parallel/traffic/train_apart.h"

namespace argosy::parallel {
namespace {

using ::testing::HasSubstr;
using namespace argosy::parallel::testing;  // NOLINT(google-build-using-namespace)

/// Matrices, of which one is a convolution's, vectors, and running statistics.
struct NetImpl : torch::nn::Module {
  NetImpl() {
    conv = register_module("conv", torch::nn::Conv2d(torch::nn::Conv2dOptions(2, 12, 3)));
    norm = register_module("norm", torch::nn::BatchNorm2d(12));
    wide = register_module("wide", torch::nn::Linear(12 * 16, 70));
    last = register_module("last", torch::nn::Linear(70, 5));
    fill(*this, 1);
  }
  torch::Tensor forward(const torch::Tensor& x) {
    return last(wide(norm(conv(x)).relu().flatten(1)).tanh());
  }
  torch::nn::Conv2d conv{nullptr};
  torch::nn::BatchNorm2d norm{nullptr};
  torch::nn::Linear wide{nullptr}, last{nullptr};
};
TORCH_MODULE(Net);
using Model = DistributedDataParallel<Net>;

at::Tensor images(int64_t virtual_rank, int step) {
  return values({3, 2, 6, 6}, 11.0 * static_cast<double>(virtual_rank) + step, at::kFloat);
}

struct Way {
  std::string name{};
  std::function<optim::Optimizer(Model& model)> wrap{};
  bool has_spares = true;  // processes without a virtual rank
};

/// What a training has come to, and where it goes on. Equal on all ranks.
struct Result {
  int steps = 0;
  std::vector<at::Tensor> weights{}, buffers{};
  optim::OptimizerState state{};
};

struct Run {
  int64_t virtual_ranks = 4;
  int processes = 4;
  int until = 8;
  bool says_whose = true;     // false: a plain loop, with a process for each virtual rank
  bool evaluates = false;     // what ranks have together, after each step
  bool looks_amid = false;    // at the shared weights, before the pass of the second virtual rank
  bool clears_model = false;  // by libtorch's own zero_grad(), which reaches what is in the model
  double last_lr = 0;         // is set after the last step
};

void set(const std::vector<at::Tensor>& to, const std::vector<at::Tensor>& from) {
  const at::NoGradGuard no_grad;
  for (size_t k = 0; k < from.size(); ++k) {
    to[k].copy_(from[k]);
  }
}

void look_at_shared_weights(optim::Optimizer& optimizer) {
  optimizer.use_shared_weights(true);
  optimizer.use_shared_weights(false);
}

void evaluate(Model& model, optim::Optimizer& optimizer) {
  model.sync_buffers();
  look_at_shared_weights(optimizer);
}

void make_step(Model& model, optim::Optimizer& optimizer, int step, const Run& run, int rank) {
  const IndexRange mine = even_part(run.virtual_ranks, run.processes, rank);
  const int64_t leaves = std::max<int64_t>(mine.size(), 1);  // a spare begins as if it had one
  for (int64_t leaf = 0; leaf < leaves; ++leaf) {
    if (run.says_whose) {
      model.begin({.leaf = leaf, .leaves = leaves});
    }
    if (run.looks_amid && leaf == 1) {
      look_at_shared_weights(optimizer);
    }
    if (mine.size() > 0) {
      const at::Tensor loss = model(images(mine.begin + leaf, step)).square().mean();
      loss.backward();
      optimizer.note_loss(loss.item<double>());
    }
  }
  if (run.says_whose) {
    model.end_update();
  }
  optimizer.step();
  if (run.clears_model) {
    model.module()->zero_grad();
  } else {
    optimizer.zero_grad();
  }
}

/// Goes on from `begun`, in new models.
Result trained(const Way& way, const Run& run, const Result& begun = {}) {
  Result result;
  std::mutex mutex;
  over("shm", run.processes, [&](comm::Group& group) {
    Net net;
    const DdpOptions options{.first_bucket_bytes = 1000,
                             .bucket_cap_bytes = 20000,
                             .virtual_ranks = run.says_whose ? run.virtual_ranks : 0};
    Model model(net, group, options);
    optim::Optimizer optimizer = way.wrap(model);
    set(net->parameters(), begun.weights);
    set(net->buffers(), begun.buffers);
    if (begun.steps > 0) {
      optimizer.load_state_dict(begun.state);
    }
    for (int step = begun.steps; step < run.until; ++step) {
      make_step(model, optimizer, step, run, group.rank());
      if (run.evaluates) {
        evaluate(model, optimizer);
      }
    }
    if (run.last_lr > 0) {
      optimizer.set_lr(run.last_lr);
    }
    const optim::OptimizerState state = optimizer.state_dict().clone();
    optimizer.use_shared_weights(true);
    expect_equal_on_ranks(net->parameters(), group);
    const std::lock_guard lock(mutex);
    if (group.rank() == 0) {
      result = {run.until, copies(net->parameters()), copies(net->buffers()), state};
    }
  });
  return result;
}

void expect_same(const Result& a, const Result& b) {
  expect_same_bits(a.weights, b.weights);
  expect_same_bits(a.buffers, b.buffers);
  ASSERT_EQ(a.state.parameters.size(), b.state.parameters.size());
  for (const auto& [name, entries] : a.state.parameters) {
    const engine::StateDict* const others = b.state.find(name);
    ASSERT_NE(others, nullptr) << name;
    EXPECT_EQ(entries.size(), others->size()) << name;
    for (const auto& [entry, tensor] : entries) {
      EXPECT_TRUE(tensor.equal(others->at(entry))) << name << "/" << entry;
    }
  }
}

optim::Optimizer momentum_of(Model& model) {
  optim::MomentumOptions options{.lr = 0.05, .nesterov = true};
  options.weight_decay = 0.01;
  options.grad_clip = optim::ClipGradByNorm(0.02);
  return optim::Momentum(model, options);
}

template <typename Options>
Way apart(const std::string& name, const Options& options) {
  const auto wrap = [options](Model& model) {
    constexpr bool kByMomentum = !std::is_same_v<Options, DilocoOptions>;
    return train_apart(
        model,
        kByMomentum ? momentum_of(model) : optim::Optimizer(optim::AdamW(model, {.lr = 0.01})),
        options);
  };
  return {.name = name, .wrap = wrap, .has_spares = false};
}

std::vector<Way> ways() {
  const DilocoOptions streaming{
      .sync_every = 4, .fragments = 2, .fragment_sync_delay = 1, .fragment_update_alpha = 0.5};
  DilocoOptions in_few_bits = streaming;
  in_few_bits.bits = 4;
  return {{"power_sgd",
           [](Model& model) {
             return compress(model,
                             optim::AdamW(model, {.lr = 0.01}),
                             PowerSgdOptions{.matrix_approximation_rank = 2,
                                             .start_power_sgd_iter = 2,
                                             .min_compression_rate = 1.2});
           }},
          {"dgc",
           [](Model& model) {
             return compress(model,
                             momentum_of(model),
                             DgcOptions{.rampup_begin_step = 1,
                                        .rampup_step = 4,
                                        .sparsity = {0.5, 0.95},
                                        .min_elements = 100});
           }},
          apart("localsgd", LocalSgdOptions{.k_steps = 3, .begin_step = 1}),
          apart("adaptive_localsgd", AdaptiveLocalSgdOptions{.init_k_steps = 2}),
          apart("diloco", DilocoOptions{.sync_every = 3}),
          apart("streaming", streaming),
          apart("streaming_in_few_bits", in_few_bits)};
}

class VirtualRanksOf : public ::testing::TestWithParam<size_t> {
 protected:
  [[nodiscard]] static Way way() { return ways()[GetParam()]; }
};
INSTANTIATE_TEST_SUITE_P(Traffic,
                         VirtualRanksOf,
                         ::testing::Range<size_t>(0, ways().size()),
                         [](const auto& info) { return ways()[info.param].name; });

TEST_P(VirtualRanksOf, AnyNumberOfProcessesHasTheBitsOfOneForEach) {
  const Result plain = trained(way(), {.processes = 4, .says_whose = false});
  EXPECT_FALSE(plain.weights[0].equal(Net()->parameters()[0]));
  const Result expected = trained(way(), {.processes = 4});
  expect_same_bits(expected.weights, plain.weights);
  for (const int processes : {1, 2, 3, 5}) {
    SCOPED_TRACE(processes);
    if (processes < 5 || way().has_spares) {
      expect_same(trained(way(), {.processes = processes}), expected);
    }
  }
}

TEST_P(VirtualRanksOf, ACheckpointGoesOnWithAnotherNumberOfProcesses) {
  const Result expected = trained(way(), {.virtual_ranks = 5, .processes = 5});
  const int most = way().has_spares ? 6 : 5;
  for (const int stop : {1, 5}) {
    for (const auto& [first, second] : {std::pair(5, 2), std::pair(2, 1), std::pair(1, most)}) {
      SCOPED_TRACE(fmt::format("{} on {} processes, then {}", stop, first, second));
      const Result saved = trained(way(), {.virtual_ranks = 5, .processes = first, .until = stop});
      expect_same(trained(way(), {.virtual_ranks = 5, .processes = second}, saved), expected);
    }
  }
}

TEST_P(VirtualRanksOf, EvaluationsLeaveNoTrace) {
  const Result expected = trained(way(), {.processes = 4});
  for (const int processes : {1, 2, 4}) {
    SCOPED_TRACE(processes);
    expect_same(trained(way(), {.processes = processes, .evaluates = true}), expected);
  }
}

TEST_P(VirtualRanksOf, ALookAtTheSharedWeightsAmidThePassesLeavesNoTrace) {
  const Result expected = trained(way(), {.processes = 4});
  for (const int processes : {1, 2}) {
    SCOPED_TRACE(processes);
    expect_same(trained(way(), {.processes = processes, .looks_amid = true}), expected);
  }
}

TEST_P(VirtualRanksOf, ARateThatWasSetIsSaved) {
  for (const int processes : {1, 2, 4}) {
    const Result saved = trained(way(), {.processes = processes, .until = 5, .last_lr = 0.125});
    EXPECT_EQ(saved.state.groups.front().lr, 0.125) << processes;
  }
}

TEST_P(VirtualRanksOf, AStepInsideOfThePassesIsAnErrorWhereRanksTrainApart) {
  if (way().has_spares) {
    return;  // the wrapper's own check, see fleet's updates()
  }
  over("shm", 1, [&](comm::Group& group) {
    Model model(Net(), group, {.virtual_ranks = 2});
    optim::Optimizer optimizer = way().wrap(model);
    for (int step = 0; step < 5; ++step) {
      make_step(model, optimizer, step, {.virtual_ranks = 2, .processes = 1}, 0);
    }
    model.begin({.leaf = 0, .leaves = 2});
    model(images(0, 5)).sum().backward();
    EXPECT_THAT(error_of([&] { optimizer.step(); }), HasSubstr("inside of the passes"));
  });
}

TEST_P(VirtualRanksOf, GradientsMayBeClearedInTheModel) {
  const Result expected = trained(way(), {.processes = 4});
  for (const int processes : {1, 2}) {
    SCOPED_TRACE(processes);
    expect_same(trained(way(), {.processes = processes, .clears_model = true}), expected);
  }
}

TEST_P(VirtualRanksOf, ProcessesBeyondThemAreSparesOrRefused) {
  if (way().has_spares) {
    const Result one = trained(way(), {.virtual_ranks = 1, .processes = 1});
    expect_same(trained(way(), {.virtual_ranks = 1, .processes = 2}), one);
    return;
  }
  over("shm", 2, [&](comm::Group& group) {
    Model model(Net(), group, {.virtual_ranks = 1});
    EXPECT_THAT(error_of([&] { static_cast<void>(way().wrap(model)); }),
                HasSubstr("here are 2 processes for 1. Start at most 1"));
  });
}

TEST_P(VirtualRanksOf, ACheckpointOfOthersIsNamed) {
  const Result saved = trained(way(), {.virtual_ranks = 4, .processes = 2, .until = 5});
  over("shm", 1, [&](comm::Group& group) {
    Model model(Net(), group, {.virtual_ranks = 3});
    optim::Optimizer optimizer = way().wrap(model);
    EXPECT_THAT(error_of<CheckpointError>([&] { optimizer.load_state_dict(saved.state); }),
                HasSubstr("resume with as many virtual ranks as saved it"));
  });
}

/// An update that was left amid its passes has no part in what is remembered.
TEST_P(VirtualRanksOf, AnUpdateThatWasLeftHasNoTrace) {
  const Result expected = trained(way(), {.processes = 1, .until = 6});
  over("shm", 1, [&](comm::Group& group) {
    Net net;
    Model model(net, group, {.first_bucket_bytes = 1000, .virtual_ranks = 4});
    optim::Optimizer optimizer = way().wrap(model);
    for (int step = 0; step < 6; ++step) {
      model.begin({.leaf = 0, .leaves = 4});
      model(images(7, step)).sum().backward();
      optimizer.zero_grad();
      make_step(model, optimizer, step, {.processes = 1}, 0);
    }
    optimizer.use_shared_weights(true);
    expect_same_bits(copies(net->parameters()), expected.weights);
  });
}

/// As fit() deals those of a checkpoint, when the optimizer is there already.
TEST_P(VirtualRanksOf, MayBeDealtBeforeTheFirstStepOnly) {
  const Result expected = trained(way(), {.processes = 4});
  for (const int processes : {1, 2}) {
    over("shm", processes, [&](comm::Group& group) {
      Net net;
      Model model(net, group);
      optim::Optimizer optimizer = way().wrap(model);
      model.core()->deal_to(4);
      for (int step = 0; step < 8; ++step) {
        make_step(model, optimizer, step, {.processes = processes}, group.rank());
      }
      EXPECT_THAT(error_of([&] { model.core()->deal_to(6); }), HasSubstr("and 6 were asked for"));
      optimizer.use_shared_weights(true);
      expect_same_bits(copies(net->parameters()), expected.weights);
    });
  }
}

/// Of two layers the second has a part in the virtual ranks whose inputs are positive.
struct ForkedImpl : torch::nn::Module {
  ForkedImpl() {
    first = register_module("first", torch::nn::Linear(4, 4));
    second = register_module("second", torch::nn::Linear(4, 4));
  }
  torch::Tensor forward(const torch::Tensor& x) {
    const torch::Tensor out = first(x);
    return x.min().item<float>() > 0 ? second(out) : out;
  }
  torch::nn::Linear first{nullptr}, second{nullptr};
};
TORCH_MODULE(Forked);

TEST(VirtualRanksOfTraffic, AParameterThatOnlySomePassesReachIsNamedWhereItIsSaved) {
  for (const int together : {0, 1}) {  // updates that reach it on both
    over("shm", 1, [&](comm::Group& group) {
      DistributedDataParallel<Forked> model(Forked(), group, {.virtual_ranks = 2});
      optim::Optimizer optimizer = train_apart(model, optim::AdamW(model), DilocoOptions{});
      for (int update = 0; update <= together; ++update) {
        for (int64_t leaf = 0; leaf < 2; ++leaf) {
          model.begin({.leaf = leaf, .leaves = 2});
          const bool reaches = leaf == 0 || update < together;
          model(torch::full({1, 4}, reaches ? 1.0F : -1.0F)).sum().backward();
        }
        model.end_update();
        optimizer.step();
        optimizer.zero_grad();
      }
      EXPECT_THAT(error_of([&] { (void)optimizer.state_dict(); }),
                  HasSubstr("second.weight was trained on one virtual rank and not on another"));
    });
  }
}

/// A way of a program's own that knows of one virtual rank only.
struct Plain final : GradientCompressor {
  [[nodiscard]] std::string name() const override { return "plain"; }
  [[nodiscard]] BucketWork reduce(GradBucket& bucket) override { return average()(bucket); }
  void step(optim::OptimizerImpl& inner) override { inner.step(); }
  void add_state(optim::OptimizerState& /*state*/) const override {}
  void take_state(optim::OptimizerState& /*state*/) override {}
};

TEST(VirtualRanksOfTraffic, ACompressorThatKnowsNoneNeedsAProcessForEach) {
  on_ranks(2, [](comm::Group& group) {
    Model model(Net(), group, {.virtual_ranks = 4});
    EXPECT_THAT(
        error_of([&] {
          static_cast<void>(compress(model.core(), optim::SGD(model), std::make_shared<Plain>()));
        }),
        HasSubstr("plain needs as many processes as virtual ranks"));
  });
}

}  // namespace
}  // namespace argosy::parallel
