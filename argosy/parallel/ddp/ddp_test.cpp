// What every program relies on: construction, averaging, gradients as views, accumulation.
#include <fmt/format.h>

#include <gmock/gmock.h>

#include "argosy/parallel/ddp/ddp_test_support.h"

namespace argosy::parallel {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace argosy::parallel::testing;  // NOLINT(google-build-using-namespace)

/// The averages over `n` ranks of the gradients that a plain TwoLayers(0) has for input_of(rank).
std::vector<at::Tensor> expected_average(int n, double scale = 1) {
  std::vector<at::Tensor> sum;
  for (int rank = 0; rank < n; ++rank) {
    auto gradients = plain_gradients(TwoLayers(0.0), input_of(rank));
    for (size_t k = 0; k < gradients.size(); ++k) {
      if (rank == 0) {
        sum.push_back(gradients[k]);
      } else {
        sum[k] += gradients[k];
      }
    }
  }
  for (auto& each : sum) {
    each *= scale / n;
  }
  return sum;
}

template <typename Model>
void expect_gradients(const Model& model, const std::vector<at::Tensor>& expected) {
  const auto parameters = model.parameters();
  ASSERT_EQ(parameters.size(), expected.size());
  for (size_t k = 0; k < expected.size(); ++k) {
    ASSERT_TRUE(parameters[k].grad().defined()) << k;
    EXPECT_TRUE(at::allclose(parameters[k].grad(), expected[k], 1e-12, 1e-14))
        << k << ":\n"
        << parameters[k].grad() << "\nexpected\n"
        << expected[k];
  }
}

TEST(Ddp, AveragesGradientsAndStartsFromRankZero) {
  for (int64_t cap : {int64_t{1}, int64_t{100}, int64_t{1} << 20}) {
    on_ranks(3, [&](comm::Group& group) {
      DistributedDataParallel model(TwoLayers(group.rank() * 7.0),
                                    group,
                                    {.first_bucket_bytes = cap, .bucket_cap_bytes = cap});
      EXPECT_TRUE(model->first->weight.equal(TwoLayers(0.0)->first->weight));
      for (int step = 0; step < 3; ++step) {  // the buckets are rebuilt before the second
        model(input_of(group.rank())).sum().backward();
        expect_gradients(model, expected_average(3));
        for (auto& parameter : model.parameters()) {
          parameter.mutable_grad().zero_();
        }
      }
      EXPECT_EQ(model.stats().reduced_passes, 3);
      EXPECT_TRUE(model.stats().rebuilt);
      EXPECT_EQ(model.stats().buckets.size(), cap == 1 ? 4U : (cap == 100 ? 2U : 1U));
    });
  }
}

TEST(Ddp, SaysWhenItCommunicated) {
  on_ranks(2, [](comm::Group& group) {
    DistributedDataParallel model(TwoLayers(0.0), group);
    EXPECT_EQ(model.communication_times().pass, 0);
    for (int64_t pass = 1; pass <= 2; ++pass) {
      const auto before = std::chrono::steady_clock::now();
      model(input_of(group.rank())).sum().backward();
      const CommunicationTimes times = model.communication_times();
      EXPECT_EQ(times.pass, pass);
      EXPECT_LE(before, times.begun);
      EXPECT_LE(times.begun, times.waited);
      EXPECT_LE(times.waited, times.ended);
      EXPECT_LE(times.ended, std::chrono::steady_clock::now());
      EXPECT_EQ(times.ended - times.waited, model.stats().exposed);
    }
  });
}

TEST(Ddp, WrapsHoldersPointersAnyModuleAndSequential) {
  on_ranks(2, [](comm::Group& group) {
    const auto expected = expected_average(2);
    DistributedDataParallel holder(TwoLayers(0.0), group, {.find_unused_parameters = false});
    DistributedDataParallel pointer(std::make_shared<TwoLayersImpl>(0.0), group);
    DistributedDataParallel any(torch::nn::AnyModule(TwoLayers(0.0)), group);
    DistributedDataParallel sequential(torch::nn::Sequential(TwoLayers(0.0)), group);
    DistributedDataParallel copy = pointer;
    const at::Tensor x = input_of(group.rank());
    holder(x).sum().backward();
    expect_gradients(holder, expected);
    copy(x).sum().backward();
    expect_gradients(pointer, expected);
    any(x).sum().backward();
    expect_gradients(any, expected);
    sequential.forward<at::Tensor>(x).sum().backward();
    expect_gradients(sequential, expected);
    EXPECT_EQ(holder.named_parameters().keys().front(), "first.weight");
    EXPECT_EQ(any->parameters().size(), 4U);
    holder.eval();
    EXPECT_FALSE(holder.module()->is_training());
    holder.module()->train();
    EXPECT_TRUE(holder.module()->is_training());
  });
}

TEST(Ddp, GroupOfOneLeavesLibtorchAlone) {
  on_ranks(1, [](comm::Group& group) {
    DistributedDataParallel model(TwoLayers(0.0), group);
    model.register_comm_hook([](GradBucket&) -> BucketWork {
      ADD_FAILURE() << "not called in a group of one";
      return {};
    });
    auto sync = model.no_sync();
    auto join = model.join();
    auto plain = plain_gradients(TwoLayers(0.0), input_of(0));
    model(input_of(0)).sum().backward();
    join.finish();
    for (size_t k = 0; k < plain.size(); ++k) {
      EXPECT_TRUE(model.parameters()[k].grad().equal(plain[k]));
    }
    EXPECT_TRUE(model.stats().buckets.empty());
    EXPECT_EQ(model.stats().copied_gradients, 0);
  });
}

TEST(Ddp, GradientsStayInTheirBuckets) {
  on_ranks(2, [](comm::Group& group) {
    DistributedDataParallel model(TwoLayers(0.0), group);
    auto step = [&] { model(input_of(group.rank())).sum().backward(); };
    step();
    step();  // after it the buckets are final
    std::vector<void*> places;
    for (auto& parameter : model.parameters()) {
      places.push_back(parameter.grad().data_ptr());
      parameter.mutable_grad().zero_();
    }
    const auto copied = model.stats().copied_gradients;
    step();
    expect_gradients(model, expected_average(2));
    EXPECT_EQ(model.stats().copied_gradients, copied) << "zeroed gradients arrive in place";
    // Undefined, replaced, and libtorch's own zero_grad(), which detaches in place.
    auto parameters = model.parameters();
    torch::optim::SGD sgd(model.parameters(), 0.1);
    sgd.zero_grad();
    parameters[0].mutable_grad() = at::Tensor();
    parameters[1].mutable_grad() = at::zeros_like(parameters[1]);
    step();
    expect_gradients(model, expected_average(2));
    for (size_t k = 0; k < places.size(); ++k) {
      EXPECT_EQ(parameters[k].grad().data_ptr(), places[k]) << k;
    }
    parameters[1].mutable_grad() = at::zeros({7}, at::kDouble);
    EXPECT_ANY_THROW(step());
  });
}

TEST(Ddp, PassesAddUp) {
  on_ranks(2, [](comm::Group& group) {
    DistributedDataParallel model(TwoLayers(0.0), group, {.bucket_cap_bytes = 1});
    const at::Tensor x = input_of(group.rank());
    auto first = model(x).sum();
    first.backward({}, /*retain_graph=*/true);
    first.backward();  // the same graph again, without a forward
    expect_gradients(model, expected_average(2, 2));
    (model(x).sum() + model(x).sum()).backward();  // two forwards, one backward
    expect_gradients(model, expected_average(2, 4));
    EXPECT_EQ(model.stats().reduced_passes, 3);
  });
}

TEST(Ddp, NoSyncGathersUntilTheNextSynchronisedPass) {
  on_ranks(3, [](comm::Group& group) {
    DistributedDataParallel model(TwoLayers(0.0), group);
    const at::Tensor x = input_of(group.rank());
    for (int micro = 0; micro < 3; ++micro) {
      const bool last = micro == 2;
      auto sync = last ? std::optional<NoSync>() : model.no_sync();
      auto nested = last ? std::optional<NoSync>() : model.no_sync();
      model(x).sum().backward();
      if (!last) {
        EXPECT_EQ(model.stats().reduced_passes, 0);
        const auto local = plain_gradients(TwoLayers(0.0), x);
        EXPECT_TRUE(at::allclose(model.parameters()[0].grad(), local[0] * (micro + 1)));
      }
    }
    expect_gradients(model, expected_average(3, 3));
    EXPECT_EQ(model.stats().reduced_passes, 1);
  });
}

TEST(Ddp, AutogradGradAveragesNothing) {
  on_ranks(2, [](comm::Group& group) {
    DistributedDataParallel model(TwoLayers(0.0), group);
    const at::Tensor x = input_of(group.rank()).requires_grad_();
    auto dx = torch::autograd::grad(
        {model(x).sum()}, {x}, {}, /*retain_graph=*/true, /*create_graph=*/true);
    EXPECT_EQ(model.stats().reduced_passes, 0);
    EXPECT_FALSE(model->first->weight.grad().defined());
    // A gradient penalty does not depend on the last bias: reported, and only that one.
    EXPECT_THAT(error_of([&] { dx[0].square().sum().backward(); }),
                HasSubstr("1 of 4 parameters got no gradient in this backward pass: second.bias."));
  });
}

TEST(Ddp, BucketsAreRebuiltInTheOrderOfRankZero) {
  // Each rank uses the branches in another order; all must reduce in rank 0's.
  struct BranchesImpl : torch::nn::Module {
    BranchesImpl() {
      for (int k = 0; k < 4; ++k) {
        branches.push_back(register_parameter(fmt::format("p{}", k), values({8}, k)));
      }
    }
    at::Tensor forward(const at::Tensor& x, const std::vector<int>& order) {
      at::Tensor y = x;
      for (int k : order) {
        y = (y * branches[static_cast<size_t>(k)]).tanh();
      }
      return y;
    }
    std::vector<at::Tensor> branches;
  };
  on_ranks(2, [](comm::Group& group) {
    DistributedDataParallel model(
        std::make_shared<BranchesImpl>(), group, {.first_bucket_bytes = 1, .bucket_cap_bytes = 1});
    const std::vector<int> order =
        group.rank() == 0 ? std::vector<int>{2, 0, 3, 1} : std::vector<int>{0, 1, 2, 3};
    auto buckets = [&] {
      std::string text;
      for (const auto& bucket : model.stats().buckets) {
        text += bucket.parameters.front();
      }
      return text;
    };
    EXPECT_EQ(buckets(), "p3p2p1p0");
    model(values({8}, 1), order).sum().backward();
    const auto before = model.parameters()[2].grad().clone();
    EXPECT_EQ(buckets(), "p3p2p1p0");
    auto output = model(values({8}, 1), order).sum();
    EXPECT_EQ(buckets(), "p1p3p0p2");  // the reverse of rank 0's use
    EXPECT_TRUE(model.parameters()[2].grad().equal(before)) << "gradients keep their values";
    output.backward();
    EXPECT_TRUE(at::allclose(model.parameters()[2].grad(), before * 2));
    EXPECT_THAT(model.stats().arrival_order.front(), group.rank() == 0 ? "p1" : "p3");
  });
}

TEST(Ddp, ReductionsStartBeforeBackwardEnds) {
  on_ranks(2, [](comm::Group& group) {
    DistributedDataParallel model(
        TwoLayers(0.0), group, {.first_bucket_bytes = 1, .bucket_cap_bytes = 1});
    size_t sent = 0;
    std::vector<size_t> sent_when_first_layer_ran;
    model.register_comm_hook([&](GradBucket& bucket) -> BucketWork {
      EXPECT_EQ(bucket.index(), sent++);
      EXPECT_EQ(bucket.is_last(), sent == 4);
      return average()(bucket);
    });
    auto hidden = model->first->forward(input_of(group.rank()));
    hidden.register_hook([&](const at::Tensor&) { sent_when_first_layer_ran.push_back(sent); });
    model->second(hidden.tanh()).sum().backward();
    EXPECT_THAT(sent_when_first_layer_ran, ElementsAre(2)) << "both tensors of the last layer";
    EXPECT_EQ(sent, 4U);
    EXPECT_EQ(model.stats().buckets[0].ready_at_start, 1U);
    EXPECT_EQ(model.stats().buckets[3].ready_at_start, 4U);
    expect_gradients(model, expected_average(2));
  });
}

TEST(Ddp, NestedBackwardIsOnePass) {
  // Activation checkpointing: the inner layers run again, and backward, inside the outer backward.
  struct Checkpoint : torch::autograd::Function<Checkpoint> {
    static at::Tensor forward(torch::autograd::AutogradContext* context,
                              const at::Tensor& x,
                              TwoLayersImpl* net) {
      context->save_for_backward({x});
      context->saved_data["net"] = reinterpret_cast<int64_t>(net);
      return net->forward(x);
    }
    static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                   torch::autograd::variable_list grads) {
      torch::AutoGradMode on(true);
      auto* net = reinterpret_cast<TwoLayersImpl*>(context->saved_data["net"].toInt());
      at::Tensor x = context->get_saved_variables()[0].detach().requires_grad_();
      net->forward(x).backward(grads[0]);
      return {x.grad(), at::Tensor()};
    }
  };
  struct NetImpl : torch::nn::Module {
    NetImpl() {
      net = register_module("net", TwoLayers(0.0));
      head = register_module("head", TwoLayers(2.0, 4));
    }
    at::Tensor forward(const at::Tensor& x, bool checkpoint) {
      at::Tensor h = checkpoint ? Checkpoint::apply(x, net.get()) : net(x);
      return Checkpoint::apply(at::cat({h, x.narrow(1, 0, 1)}, 1), head.get());
    }
    TwoLayers net{nullptr}, head{nullptr};
  };
  on_ranks(2, [](comm::Group& group) {
    DistributedDataParallel model(
        std::make_shared<NetImpl>(), group, {.first_bucket_bytes = 1, .bucket_cap_bytes = 1});
    const at::Tensor x = input_of(group.rank()).requires_grad_();
    model(x, true).sum().backward();
    EXPECT_EQ(model.stats().reduced_passes, 1);
    std::vector<at::Tensor> expected;
    for (int rank = 0; rank < 2; ++rank) {
      auto gradients =
          plain_gradients(std::make_shared<NetImpl>(), input_of(rank).requires_grad_(), false);
      for (size_t k = 0; k < gradients.size(); ++k) {
        rank == 0 ? expected.push_back(gradients[k] / 2) : void(expected[k] += gradients[k] / 2);
      }
    }
    expect_gradients(model, expected);
  });
}

TEST(Ddp, TwoWrappersShareAGroup) {
  on_ranks(2, [](comm::Group& group) {
    DistributedDataParallel a(TwoLayers(0.0), group);
    auto b = std::make_unique<DistributedDataParallel<TwoLayers>>(TwoLayers(0.0), group);
    const at::Tensor x = input_of(group.rank());
    for (int step = 1; step <= 3; ++step) {
      a(x).sum().backward();
      (*b)(x).sum().backward();
      expect_gradients(a, expected_average(2, step));
      expect_gradients(*b, expected_average(2, step));
    }
    (a(x).sum() + (*b)(x).sum()).backward();  // one backward through both
    expect_gradients(a, expected_average(2, 4));
    expect_gradients(*b, expected_average(2, 4));
    // One goes between forward and backward: its module lives on, alone.
    TwoLayers inner = b->module();
    auto output = (*b)(x).sum();
    b.reset();
    inner->zero_grad();
    output.backward();
    EXPECT_TRUE(at::allclose(inner->parameters()[0].grad(), plain_gradients(TwoLayers(0.0), x)[0]));
    a(x).sum().backward();
    expect_gradients(a, expected_average(2, 5));
  });
}

TEST(Ddp, BuffersFollowRankZeroInTraining) {
  struct CountImpl : torch::nn::Module {
    CountImpl() {
      weight = register_parameter("weight", at::ones({2}, at::kDouble));
      mean = register_buffer("mean", at::zeros({2}));
      steps = register_buffer("steps", at::zeros({}, at::kLong));
    }
    at::Tensor forward(double by) {
      seen = mean[0].item<double>();
      mean += by;
      steps += 1;
      return weight.sum() * by;
    }
    at::Tensor weight, mean, steps;
    double seen = 0;
  };
  for (bool broadcast : {true, false}) {
    on_ranks(2, [&](comm::Group& group) {
      auto net = std::make_shared<CountImpl>();
      net->mean.fill_(group.rank() * 100);
      DistributedDataParallel model(net, group, {.broadcast_buffers = broadcast});
      EXPECT_EQ(net->mean[0].item<double>(), 0) << "construction copies buffers";
      const double by = 1 + group.rank();
      model(by).backward();
      EXPECT_EQ(net->mean[0].item<double>(), by);
      model(by).backward();
      EXPECT_EQ(net->seen, broadcast ? 1 : by);
      {
        auto local = model.no_sync();
        model(by).backward();
      }
      EXPECT_EQ(net->seen, broadcast ? 1 + by : 2 * by) << "no_sync communicates nothing";
      model.eval();
      if (group.rank() == 0) {
        torch::NoGradGuard no_grad;
        model(0.0);  // one rank alone may evaluate
      }
      model.sync_buffers();
      EXPECT_EQ(net->mean[0].item<double>(), 3);
      EXPECT_EQ(net->steps.item<int64_t>(), 4);
      // Loading weights may give a buffer other memory: the wrapper follows the tensor.
      net->mean.set_data(torch::full_like(net->mean, 10.0 + group.rank()));
      model.sync_buffers();
      EXPECT_EQ(net->mean[0].item<double>(), 10);
    });
  }
}

}  // namespace
}  // namespace argosy::parallel
