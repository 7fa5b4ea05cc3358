// What goes wrong, and with which words.
#include <gmock/gmock.h>

#include "argosy/parallel/ddp/ddp_test_support.h"

namespace argosy::parallel {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using namespace argosy::parallel::testing;  // NOLINT(google-build-using-namespace)

const at::Tensor& input() {
  static const at::Tensor x = values({4, 3}, 1);
  return x;
}

TEST(DdpErrors, ModelsThatDifferAreNamedOnEveryRank) {
  on_ranks(3, [](comm::Group& group) {
    const std::string shapes = error_of(
        [&] { DistributedDataParallel(TwoLayers(0.0, group.rank() == 2 ? 7 : 5), group); });
    EXPECT_THAT(shapes,
                AllOf(HasSubstr("[parallel.ddp] the model differs between ranks"),
                      HasSubstr("rank 2: first.weight f64 [7, 3], rank 0: f64 [5, 3]"),
                      Not(HasSubstr("rank 1:"))));
    EXPECT_THAT(error_of([&] {
                  TwoLayers net(0.0);
                  net->second->bias.requires_grad_(group.rank() != 1);
                  DistributedDataParallel(net, group);
                }),
                HasSubstr("rank 1: second.bias f64 [2] frozen, rank 0: f64 [2]"));
    EXPECT_THAT(error_of([&] {
                  DistributedDataParallel(
                      TwoLayers(0.0), group, {.bucket_cap_bytes = 1000 + group.rank()});
                }),
                HasSubstr("rank 1: option bucket_cap_bytes 1001, rank 0: 1000"));
    const std::optional<at::ScalarType> half = at::kBFloat16;
    EXPECT_THAT(error_of([&] {
                  DistributedDataParallel(
                      TwoLayers(0.0), group, {.autocast = group.rank() == 1 ? half : std::nullopt});
                }),
                HasSubstr("rank 1: option autocast bf16, rank 0: unset"));
  });
}

TEST(DdpErrors, WhatCannotBeWrapped) {
  on_ranks(1, [](comm::Group& group) {
    torch::nn::Linear frozen(2, 2);
    for (auto& p : frozen->parameters()) {
      p.requires_grad_(false);
    }
    EXPECT_THAT(error_of([&] { DistributedDataParallel(frozen, group); }),
                HasSubstr("none of the module's 2 parameters requires a gradient"));
    torch::nn::Linear complex(2, 2);
    complex->to(at::kComplexFloat);
    EXPECT_THAT(error_of([&] { DistributedDataParallel(complex, group); }),
                HasSubstr("parameter weight cannot be averaged"));
    EXPECT_THAT(error_of([&] { DistributedDataParallel(TwoLayers(nullptr), group); }),
                HasSubstr("the module is empty"));
    EXPECT_THAT(error_of([&] { DistributedDataParallel(TwoLayers(0.0), comm::Group()); }),
                HasSubstr("the group is empty"));
    EXPECT_THAT(
        error_of([&] { DistributedDataParallel(TwoLayers(0.0), group, {.bucket_cap_bytes = 0}); }),
        HasSubstr("bucket_cap_bytes must be positive, got 0"));
  });
}

TEST(DdpErrors, ParametersMustStayWhatTheyWere) {
  on_ranks(2, [](comm::Group& group) {
    auto message = [&](const std::function<void(TwoLayers&)>& change) {
      DistributedDataParallel model(TwoLayers(0.0), group);
      TwoLayers net = model.module();
      change(net);
      return error_of([&] { model(input()); });
    };
    TwoLayers part_frozen(0.0);
    part_frozen->first->bias.requires_grad_(false);
    DistributedDataParallel thawed(part_frozen, group);
    part_frozen->first->bias.requires_grad_(true);
    EXPECT_THAT(error_of([&] { thawed(input()); }),
                HasSubstr("parameter first.bias was frozen when the model was wrapped, and"));
    EXPECT_THAT(message([](TwoLayers& net) {
                  net->second->register_parameter("scale", at::ones({1}, at::kDouble));
                }),
                HasSubstr("parameter second.scale was added after the model was wrapped"));
    EXPECT_THAT(message([](TwoLayers& net) { net->to(at::kFloat); }),
                HasSubstr("parameter first.weight changed after the model was wrapped: from f64 "
                          "[5, 3] to f32 [5, 3]"));
    EXPECT_THAT(message([](TwoLayers& net) {
                  auto& w = net->first->weight;
                  w.set_data(w.t().contiguous().t());
                }),
                HasSubstr("parameter first.weight changed its memory layout"));
    EXPECT_THAT(message([](TwoLayers& net) { net->unregister_module("second"); }),
                HasSubstr("parameter second.weight was removed"));
  });
}

TEST(DdpErrors, UnusedParametersAreNamedAtOnce) {
  on_ranks(2, [](comm::Group& group) {
    DistributedDataParallel model(
        TwoHeads(), group, {.first_bucket_bytes = 1, .bucket_cap_bytes = 1});
    auto [l, r] = model(input(), true, false);
    const std::string text = error_of([&, a = l, b = r] { (a.sum() + b).backward(); });
    EXPECT_THAT(text,
                AllOf(HasSubstr("2 of 6 parameters got no gradient"),
                      HasSubstr("right.weight, right.bias"),
                      HasSubstr(".find_unused_parameters = true")));
    EXPECT_THAT(error_of([&] { model(input(), true, true); }),
                AllOf(HasSubstr("cannot go on after a backward pass that failed"),
                      HasSubstr("right.weight")));
  });
}

TEST(DdpErrors, CreateGraphIsRefused) {
  on_ranks(2, [](comm::Group& group) {
    DistributedDataParallel model(TwoLayers(0.0), group);
    EXPECT_THAT(error_of([&] { model(input()).sum().backward({}, true, true); }),
                HasSubstr("backward(create_graph = true) reached parameter second."));
    EXPECT_THAT(error_of([&] { model(input()); }), HasSubstr("create_graph"));
  });
}

/// Looks rows up by the function, of which the wrapper cannot know that its gradients are sparse.
struct FunctionalLookupImpl : torch::nn::Module {
  FunctionalLookupImpl() { table = register_parameter("table", torch::ones({4, 2})); }
  torch::Tensor forward(const torch::Tensor& ids) {
    return torch::nn::functional::embedding(
        ids, table, torch::nn::functional::EmbeddingFuncOptions().sparse(true));
  }
  torch::Tensor table{};
};
TORCH_MODULE(FunctionalLookup);

TEST(DdpErrors, SparseGradientsOutsideOfEmbeddingsAreRefused) {
  on_ranks(2, [](comm::Group& group) {
    DistributedDataParallel model(FunctionalLookup(), group);
    EXPECT_THAT(error_of([&] { model(at::arange(3)).sum().backward(); }),
                HasSubstr("parameter table has a sparse gradient"));
  });
}

struct Bomb : torch::autograd::Function<Bomb> {
  static at::Tensor forward(torch::autograd::AutogradContext*, const at::Tensor& x) {
    return x.clone();
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext*,
                                                 const torch::autograd::variable_list&) {
    throw std::range_error("bomb");
  }
};

TEST(DdpErrors, AnExceptionInBackwardIsFoundAtTheNextForward) {
  on_ranks(2, [](comm::Group& group) {
    std::optional<DistributedDataParallel<TwoLayers>> model;
    model.emplace(TwoLayers(0.0), group, DdpOptions{});
    TwoLayers net = model->module();
    auto loss = net->second(Bomb::apply(net->first(input()))).sum();
    EXPECT_THAT(error_of<std::range_error>([&] { loss.backward(); }), HasSubstr("bomb"));
    EXPECT_THAT(error_of([&] { (*model)(input()); }),
                HasSubstr("backward() ended by an exception before all gradients were averaged"));
    // Backward alone is refused too: its gradients would stay local without a word.
    EXPECT_THAT(error_of([&] { net->forward(input()).sum().backward(); }),
                HasSubstr("backward was called again after one that failed"));
    model.reset();
    model.emplace(net, group, DdpOptions{});
    net->zero_grad();
    (*model)(input()).sum().backward();
    EXPECT_TRUE(
        at::allclose(net->first->weight.grad(), plain_gradients(TwoLayers(0.0), input())[0]));
  });
}

TEST(DdpErrors, AnExceptionInForwardLeavesNothingBehind) {
  on_ranks(2, [](comm::Group& group) {
    DistributedDataParallel model(TwoLayers(0.0), group);
    EXPECT_ANY_THROW(model(at::zeros({4, 8}, at::kDouble)));
    model(input()).sum().backward();
    EXPECT_EQ(model.stats().reduced_passes, 1);
  });
}

TEST(DdpErrors, AHooksExceptionKeepsItsType) {
  on_ranks(2, [](comm::Group& group) {
    for (bool at_once : {true, false}) {
      DistributedDataParallel model(TwoLayers(0.0), group);
      model.register_comm_hook([&](GradBucket& bucket) -> BucketWork {
        auto boom = [] { throw CommError("test", "lost", {.peers = {1}}); };
        if (at_once) {
          boom();
        }
        return {average()(bucket).work, boom};
      });
      EXPECT_THAT(error_of<CommError>([&] { model(input()).sum().backward(); }),
                  HasSubstr("[test] lost"));
      EXPECT_THAT(error_of([&] { model(input()); }), HasSubstr("[test] lost"));
    }
  });
}

TEST(DdpErrors, ARankThatNeverComesIsNamed) {
  auto store = rendezvous::in_process_store();
  test::run_ranks(3, [&](int rank) {
    comm::Group group = thread_group(store, rank, 3);
    DistributedDataParallel model(
        TwoLayers(0.0), group, {.timeout = std::chrono::milliseconds(300)});
    auto loss = model(input()).sum();
    if (rank == 2) {
      return;  // leaves without a backward
    }
    try {
      loss.backward();
      ADD_FAILURE() << "expected an error";
    } catch (const CommError& error) {
      EXPECT_THAT(error.peers(), ::testing::ElementsAre(2)) << error.what();
    }
  });
}

}  // namespace
}  // namespace argosy::parallel
