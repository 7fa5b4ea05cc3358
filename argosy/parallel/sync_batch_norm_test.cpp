#include "argosy/parallel/sync_batch_norm.h"

#include <functional>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/base/error.h"
#include "argosy/parallel/ddp/ddp_test_support.h"
#include "argosy/vision/models/resnet.h"
#include "argosy/vision/ops/norm_pool_relu.h"
#include "argosy/vision/ops/norm_relu.h"

namespace argosy::parallel {
namespace {

using ::testing::AllOf;
using testing::error_of;
using ::testing::HasSubstr;
using testing::on_ranks;
using testing::values;

/// A convolution, a norm that is asked for what it can, and a weighted sum of what comes out.
struct NetImpl : torch::nn::Module {
  explicit NetImpl(at::ScalarType type = at::kDouble) {
    conv = register_module("conv", torch::nn::Conv2d(torch::nn::Conv2dOptions(2, 3, 3).padding(1)));
    norm = register_module("norm", SyncBatchNorm2d(3));
    to(type);
    testing::fill(*this, 1);
  }
  /// One number for each sample.
  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor out = norm(conv(x)).tanh();
    return (out * values(out.sizes().slice(1), 5, out.scalar_type())).sum({1, 2, 3});
  }
  torch::nn::Conv2d conv{nullptr};
  SyncBatchNorm2d norm{nullptr};
};
TORCH_MODULE(Net);

struct Outcome {
  at::Tensor out;
  at::Tensor dx;
  std::vector<at::Tensor> gradients;
  at::Tensor mean;
  at::Tensor variance;
};

/// Gradients of the sum of all samples' outcomes.
template <typename Model>
Outcome run(Model& model, const at::Tensor& input) {
  const at::Tensor x = input.detach().clone().requires_grad_();
  const at::Tensor out = model->forward(x);
  out.sum().backward();
  Outcome outcome{.out = out.detach(), .dx = x.grad(), .gradients = {}, .mean = {}, .variance = {}};
  for (const at::Tensor& parameter : model->parameters()) {
    outcome.gradients.push_back(parameter.grad().clone());
  }
  return outcome;
}

void expect_close(const at::Tensor& got, const at::Tensor& wanted, double bound) {
  ASSERT_EQ(got.sizes(), wanted.sizes());
  EXPECT_LE((got - wanted).abs().max().item<double>(), bound);
}

/// The largest difference, in parts of the largest value wanted.
double apart(const at::Tensor& got, const at::Tensor& wanted) {
  return ((got - wanted).abs().max() / wanted.abs().max()).item<double>();
}

at::Tensor samples(at::ScalarType type = at::kDouble) {
  return values({7, 2, 4, 5}, 3, type) * 2 + 30;  // a mean of many deviations
}

/// Samples [begin[r], begin[r + 1]) on rank r: together they must do what one process does.
void expect_like_one_process(const std::vector<int64_t>& begin, at::ScalarType type, double bound) {
  Net one(type);
  const Outcome wanted = run(one, samples(type));
  const int ranks = static_cast<int>(begin.size()) - 1;
  on_ranks(ranks, [&](comm::Group& group) {
    Net mine(type);
    convert_sync_batchnorm(mine, group);
    const int64_t from = begin[static_cast<size_t>(group.rank())];
    const int64_t to = begin[static_cast<size_t>(group.rank()) + 1];
    const Outcome got = run(mine, samples(type).slice(0, from, to));
    if (to > from) {
      expect_close(got.out, wanted.out.slice(0, from, to), bound);
      expect_close(got.dx, wanted.dx.slice(0, from, to), bound);
    }
    for (size_t i = 0; i < wanted.gradients.size(); ++i) {
      at::Tensor sum = got.gradients[i];
      comm::all_reduce(sum, group);  // the samples' sum; DistributedDataParallel divides it
      expect_close(sum, wanted.gradients[i], 20 * bound);
    }
    expect_close(mine->norm->running_mean, one->norm->running_mean, bound);
    expect_close(mine->norm->running_var, one->norm->running_var, 10 * bound);
    EXPECT_EQ(mine->norm->num_batches_tracked.item<int64_t>(), 1);
  });
}

TEST(SyncBatchNorm, RanksTrainLikeOneProcessWithAllSamples) {
  expect_like_one_process({0, 4, 7}, at::kDouble, 1e-12);
}
TEST(SyncBatchNorm, UnevenBatchesAndAnEmptyOneToo) {
  expect_like_one_process({0, 1, 1, 7}, at::kDouble, 1e-12);
}
TEST(SyncBatchNorm, InF32WithinItsRounding) {
  expect_like_one_process({0, 2, 7}, at::kFloat, 1e-5);
}

TEST(SyncBatchNorm, ConstantsWithLargeMeansKeepAVarianceOfZero) {
  on_ranks(3, [](comm::Group& group) {
    SyncBatchNorm1d norm(2);
    convert_sync_batchnorm(*norm, group);
    const at::Tensor out = norm(at::full({4, 2}, 1e6));
    EXPECT_EQ(out.abs().max().item<float>(), 0);
    EXPECT_NEAR(norm->running_var[0].item<float>(), 0.9, 1e-6);
  });
}

TEST(SyncBatchNorm, InEvaluationNothingIsExchanged) {
  on_ranks(2, [](comm::Group& group) {
    Net net;
    convert_sync_batchnorm(*net, group);
    net->eval();
    if (group.rank() == 0) {  // the other one does not come
      (void)net->forward(samples());
    }
    EXPECT_EQ(net->norm->num_batches_tracked.item<int64_t>(), 0);
  });
}

TEST(SyncBatchNorm, BeforeItIsConvertedItIsLibtorchsToTheBit) {
  SyncBatchNorm3d mine(2);
  torch::nn::BatchNorm3d theirs(2);
  const at::Tensor x = values({3, 2, 2, 3, 2}, 1, at::kFloat);
  EXPECT_TRUE(mine(x).equal(theirs(x)));
  EXPECT_TRUE(mine->running_var.equal(theirs->running_var));
  EXPECT_THAT(error_of([&] { (void)mine(x[0]); }), HasSubstr("expected 5 dimensions"));
}

TEST(SyncBatchNorm, ACloneIsOfTheSameTypeWithItsOwnWeights) {
  Net net;
  const auto copy = net->norm->clone();
  auto* norm = dynamic_cast<engine::BatchNorm2dImpl*>(copy.get());
  ASSERT_NE(norm, nullptr);
  EXPECT_EQ(norm->peers(), nullptr);
  EXPECT_TRUE(norm->weight.equal(net->norm->weight));
  EXPECT_NE(norm->weight.data_ptr(), net->norm->weight.data_ptr());
  EXPECT_EQ(norm->named_parameters().size(), 2U);
}

/// A member of libtorch's type, which nobody can exchange, beside one that can be.
struct WrittenByHandImpl : torch::nn::Module {
  WrittenByHandImpl() {
    bn1 = register_module("bn1", torch::nn::BatchNorm1d(2));
    tail = register_module("tail", torch::nn::Sequential(torch::nn::BatchNorm1d(2)));
  }
  at::Tensor forward(const at::Tensor& x) { return tail->forward(bn1(x)); }
  torch::nn::BatchNorm1d bn1{nullptr};
  torch::nn::Sequential tail{nullptr};
};
TORCH_MODULE(WrittenByHand);

TEST(SyncBatchNorm, LibtorchsNormsInMembersAreNamedAndNothingIsChanged) {
  on_ranks(2, [](comm::Group& group) {
    WrittenByHand net;
    EXPECT_THAT(error_of([&] { convert_sync_batchnorm(net, group); }),
                AllOf(HasSubstr("members of their modules: bn1."), HasSubstr("SyncBatchNorm2d")));
    EXPECT_NE((*net->tail)[0]->as<torch::nn::BatchNorm1dImpl>(), nullptr);
    torch::nn::Linear none(2, 2);
    EXPECT_THAT(error_of([&] { convert_sync_batchnorm(*none, group); }), HasSubstr("without"));
    torch::nn::BatchNorm1d alone(2);
    EXPECT_THAT(error_of([&] { convert_sync_batchnorm(*alone, group); }), HasSubstr("itself"));
  });
}

torch::nn::Sequential libtorchs_net() {
  torch::nn::Sequential net(torch::nn::Conv2d(torch::nn::Conv2dOptions(2, 3, 3).padding(1)),
                            torch::nn::BatchNorm2d(3),
                            torch::nn::Unflatten(torch::nn::UnflattenOptions(1, {1, 3})),
                            torch::nn::BatchNorm3d(1),
                            torch::nn::Tanh(),
                            torch::nn::Flatten(),
                            torch::nn::BatchNorm1d(torch::nn::BatchNorm1dOptions(90).affine(false)),
                            torch::nn::Tanh(),  // or no gradient is left below the norm
                            torch::nn::Linear(90, 1));
  testing::fill(*net, 1);
  return net;
}

TEST(SyncBatchNorm, LibtorchsNormsInASequentialAreReplaced) {
  const at::Tensor x = values({12, 2, 6, 5}, 3, at::kFloat);
  torch::nn::Sequential one = libtorchs_net();
  one->to(at::kDouble);
  const Outcome wanted = run(one, x.to(at::kDouble));
  on_ranks(3, [&](comm::Group& group) {
    torch::nn::Sequential mine = libtorchs_net();
    mine->to(at::kDouble);
    const std::vector<at::Tensor> before = mine->parameters();
    convert_sync_batchnorm(mine, group);
    const int64_t from = 4 * group.rank();
    const Outcome got = run(mine, x.to(at::kDouble).slice(0, from, from + 4));
    EXPECT_LE(apart(got.out, wanted.out.slice(0, from, from + 4)), 1e-12);
    EXPECT_LE(apart(got.dx, wanted.dx.slice(0, from, from + 4)), 1e-11);
    const auto after = mine->parameters();
    ASSERT_EQ(after.size(), before.size());
    for (size_t i = 0; i < after.size(); ++i) {
      EXPECT_TRUE(after[i].is_same(before[i])) << i;  // an optimizer made before updates them
    }
    const auto buffers = one->named_buffers();
    for (const auto& buffer : mine->named_buffers()) {
      EXPECT_LE(apart(buffer->to(at::kDouble), buffers[buffer.key()].to(at::kDouble)), 1e-6)
          << buffer.key();
    }
    EXPECT_NE(dynamic_cast<engine::SyncedNorm*>((*mine)[6].get()), nullptr);
    mine->eval();
    EXPECT_FALSE((*mine)[6]->is_training());
  });
}

/// One Sequential under two names.
struct TwiceImpl : torch::nn::Module {
  TwiceImpl() {
    first = register_module("first", torch::nn::Sequential(torch::nn::BatchNorm1d(2)));
    second = register_module("second", first);
  }
  at::Tensor forward(const at::Tensor& x) { return second->forward(first->forward(x)); }
  torch::nn::Sequential first{nullptr};
  torch::nn::Sequential second{nullptr};
};
TORCH_MODULE(Twice);

TEST(SyncBatchNorm, ASequentialThatStandsTwiceIsConvertedOnce) {
  on_ranks(2, [](comm::Group& group) {
    Twice net;
    convert_sync_batchnorm(*net, group);
    EXPECT_NE(dynamic_cast<engine::SyncedNorm*>((*net->first)[0].get()), nullptr);
    (void)net->forward(values({3, 2}, group.rank(), at::kFloat));
    EXPECT_EQ((*net->first)[0]->named_buffers()["num_batches_tracked"].item<int64_t>(), 2);
  });
}

TEST(SyncBatchNorm, OneValueInAllIsAnErrorEverywhere) {
  on_ranks(2, [](comm::Group& group) {
    SyncBatchNorm1d norm(2);
    convert_sync_batchnorm(*norm, group);
    const at::Tensor x = at::ones({group.rank() == 0 ? 1 : 0, 2});
    EXPECT_THAT(error_of([&] { (void)norm(x); }), HasSubstr("more than one value"));
  });
}

TEST(SyncBatchNorm, ASecondDerivativeIsAnErrorThatSaysSo) {
  on_ranks(2, [](comm::Group& group) {
    Net net;
    convert_sync_batchnorm(*net, group);
    const at::Tensor x = samples().requires_grad_();
    const at::Tensor out = net->forward(x).sum();
    EXPECT_THAT(error_of([&] { out.backward({}, /*retain_graph=*/true, /*create_graph=*/true); }),
                HasSubstr("second derivative"));
  });
}

/// Of a norm that is part of an operator, in f32 and channels_last.
using Operator = std::function<at::Tensor(engine::BatchNorm2d&, const at::Tensor&)>;

void expect_operator_like_one_process(const Operator& op) {
  const at::Tensor x =
      (values({7, 5, 6, 4}, 3, at::kFloat) * 2 + 1).contiguous(at::MemoryFormat::ChannelsLast);
  const auto run_op = [&](engine::BatchNorm2d& norm, const at::Tensor& part) {
    testing::fill(*norm, 1);
    const at::Tensor in = part.detach().clone().requires_grad_();
    const at::Tensor out = op(norm, in);
    (out * values(out.sizes().slice(1), 5, at::kFloat)).sum().backward();
    return std::tuple(out.detach(), in.grad(), norm->weight.grad(), norm->bias.grad());
  };
  engine::BatchNorm2d one(5);
  const auto [out, dx, dweight, dbias] = run_op(one, x);
  on_ranks(2, [&, &out = out, &dx = dx, &dweight = dweight, &dbias = dbias](comm::Group& group) {
    engine::BatchNorm2d norm(5);
    convert_sync_batchnorm(norm, group);
    const int64_t from = group.rank() == 0 ? 0 : 2;
    const int64_t to = group.rank() == 0 ? 2 : 7;
    const auto [my_out, my_dx, my_dweight, my_dbias] = run_op(norm, x.slice(0, from, to));
    expect_close(my_out, out.slice(0, from, to), 2e-6);
    expect_close(my_dx, dx.slice(0, from, to), 2e-6);
    comm::all_reduce(my_dweight, group);
    comm::all_reduce(my_dbias, group);
    expect_close(my_dweight, dweight, 2e-5);
    expect_close(my_dbias, dbias, 2e-5);
    expect_close(norm->running_var, one->running_var, 1e-6);
  });
}

TEST(SyncBatchNorm, NormAndReluAsOneOperatorToo) {
  expect_operator_like_one_process(
      [](auto& norm, const at::Tensor& x) { return vision::ops::norm_relu(norm, x); });
}
TEST(SyncBatchNorm, WithAResidualToo) {
  expect_operator_like_one_process(
      [](auto& norm, const at::Tensor& x) { return vision::ops::norm_add_relu(norm, x * 2, x); });
}
TEST(SyncBatchNorm, WithPoolingToo) {
  expect_operator_like_one_process(
      [](auto& norm, const at::Tensor& x) { return vision::ops::norm_pool_relu(norm, x); });
}

TEST(SyncBatchNorm, InF32NRanksAreOneProcessWithinOneMillionth) {
  const at::Tensor x = values({12, 2, 6, 5}, 3, at::kFloat);
  Net one(at::kFloat);
  one->to(at::kDouble);  // without rounding of its own
  const Outcome wanted = run(one, x.to(at::kDouble));
  on_ranks(3, [&](comm::Group& group) {  // 3 ranks with 4 samples are one process with 12
    Net mine(at::kFloat);
    convert_sync_batchnorm(mine, group);
    DistributedDataParallel model(mine, group);
    const int64_t from = 4 * group.rank();
    const at::Tensor part = x.slice(0, from, from + 4).clone().requires_grad_();
    const at::Tensor out = model(part);
    out.sum().backward();
    EXPECT_LE(apart(out.detach(), wanted.out.slice(0, from, from + 4)), 1e-6);
    EXPECT_LE(apart(part.grad(), wanted.dx.slice(0, from, from + 4)), 1e-6);
    const at::Tensor most = wanted.gradients[0].abs().max();
    const auto parameters = mine->parameters();
    for (size_t i = 0; i < parameters.size(); ++i) {
      // conv.bias has a gradient of zero but for rounding: the norm takes means away.
      const at::Tensor scale = at::maximum(wanted.gradients[i].abs().max(), most);
      const at::Tensor difference = parameters[i].grad() * 3 - wanted.gradients[i];
      EXPECT_LE((difference.abs().max() / scale).item<double>(), 1e-6) << i;
    }
    EXPECT_LE(apart(mine->norm->running_var, one->norm->running_var), 1e-6);
  });
}

struct ElsewhereImpl : torch::nn::Module {
  ElsewhereImpl() {
    norm = register_module("norm", SyncBatchNorm2d(3));
    register_parameter("scale", at::empty({2}, at::kMeta));  // a device that every machine has
  }
  at::Tensor forward(const at::Tensor& x) { return norm(x); }
  SyncBatchNorm2d norm{nullptr};
};
TORCH_MODULE(Elsewhere);

TEST(SyncBatchNorm, TheWrapperRefusesParametersWithoutValues) {
  on_ranks(2, [](comm::Group& group) {
    Elsewhere net;
    convert_sync_batchnorm(net, group);
    EXPECT_THAT(
        error_of([&] { DistributedDataParallel model(net, group); }),
        HasSubstr("parameter scale must be a dense tensor with values, got Strided on meta"));
  });
}

TEST(SyncBatchNorm, AResNetUnderTheWrapperTrainsLikeOneProcess) {
  const auto make = [] {
    vision::ResNet net({.depth = 18, .num_classes = 4});
    net->to(at::kDouble);
    testing::fill(*net, 2);
    return net;
  };
  const at::Tensor x = values({6, 3, 32, 32}, 1);
  const at::Tensor labels = at::arange(6) % 4;
  vision::ResNet one = make();
  torch::nn::functional::cross_entropy(one(x), labels).backward();
  const auto wanted = one->named_parameters();
  const auto buffers = one->named_buffers();
  on_ranks(2, [&](comm::Group& group) {
    vision::ResNet net = make();
    convert_sync_batchnorm(net, group);
    DistributedDataParallel model(net, group);
    const int64_t from = 3 * group.rank();
    const at::Tensor out = model(x.slice(0, from, from + 3));
    torch::nn::functional::cross_entropy(out, labels.slice(0, from, from + 3)).backward();
    for (const auto& parameter : net->named_parameters()) {
      const at::Tensor& other = wanted[parameter.key()].grad();
      EXPECT_TRUE(at::allclose(parameter->grad(), other, 1e-7, 1e-9)) << parameter.key();
    }
    for (const auto& buffer : net->named_buffers()) {
      EXPECT_TRUE(at::allclose(*buffer, buffers[buffer.key()], 1e-9, 1e-9)) << buffer.key();
    }
  });
}

}  // namespace
}  // namespace argosy::parallel
