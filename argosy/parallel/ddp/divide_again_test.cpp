/// Several optimizers of one model after each other, and starts anew.
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "argosy/parallel/ddp/divided_step_test_support.h"

namespace argosy::parallel {
namespace {

using testing::error_of;
using testing::expect_same_bits;
using ::testing::HasSubstr;
using testing::on_ranks;
using testing::recipes;
using testing::Trained;
using testing::TwoLayers;
using testing::values;

TEST(DivideAgain, RanksMustAskForTheSame) {
  on_ranks(2, [](comm::Group& group) {
    DistributedDataParallel<TwoLayers> model(TwoLayers(0.5, 37), group);
    const optim::Optimizer optimizer = optim::Adam(model, {.lr = 0.02});
    const std::string error =
        error_of([&] { model.divide_step(optimizer, {.share_parameters = group.rank() == 1}); });
    EXPECT_THAT(error, HasSubstr("rank 1: share_parameters true, rank 0: false"));
  });
}

/// The second optimizer of a training in phases, made while the first still lives.
TEST(DivideAgain, TheLastOptimizerSharesTheParameters) {
  for (const size_t first : {size_t{0}, recipes().size() - 1}) {
    on_ranks(3, [&](comm::Group& group) {
      Trained shared(group, recipes()[0], true, 37, {.share_parameters = true});
      Trained plain(group, recipes()[0], false);
      for (Trained* each : {&shared, &plain}) {
        each->step(group, 0);
        const optim::Optimizer second = recipes()[first].make(each->model);
        EXPECT_EQ(each->model.divide_step(second, {.share_parameters = true}), each == &shared);
        each->optimizer = second;
        each->step(group, 1);
        each->step(group, 2);
      }
      expect_same_bits(shared.model, plain.model, "after the second phase");
    });
  }
}

/// Without its optimizer a division ends, and with it the sharing: else each rank's own update
/// would be made once for every rank.
TEST(DivideAgain, SharingEndsWithTheOptimizerThatWasDivided) {
  on_ranks(3, [](comm::Group& group) {
    Trained shared(group, recipes()[0], true, 37, {.share_parameters = true});
    Trained plain(group, recipes()[0], false);
    for (Trained* each : {&shared, &plain}) {
      each->step(group, 0);
      each->optimizer = optim::SGD(each->model, {.lr = 0.1});  // not divided
      each->step(group, 1);
      each->step(group, 2);
    }
    expect_same_bits(shared.model, plain.model, "updated by each rank alone");
  });
}

/// The first optimizer overlapped its updates and still lives: it makes none any more.
TEST(DivideAgain, AnEarlierOptimizerMakesNoMoreEarlyUpdates) {
  for (const bool shared_memory : {true, false}) {
    on_ranks(2, [&](comm::Group& group) {
      Trained one(group, recipes()[0], shared_memory, 37, {.overlap_update = true});
      Trained plain(group, recipes()[0], false);
      const optim::Optimizer first = one.optimizer;
      for (Trained* each : {&one, &plain}) {
        each->step(group, 0);
        each->optimizer = optim::SGD(each->model, {.lr = 0.1});
        (void)each->model.divide_step(each->optimizer);
        each->step(group, 1);
        each->step(group, 2);
      }
      expect_same_bits(one.model, plain.model, "after the second phase");
    });
  }
}

/// By turns, with private parameters: the one before makes its steps whole.
TEST(DivideAgain, TwoOptimizersByTurns) {
  on_ranks(3, [](comm::Group& group) {
    Trained one(group, recipes()[0], true);
    Trained plain(group, recipes()[0], false);
    for (Trained* each : {&one, &plain}) {
      optim::Optimizer first = each->optimizer;
      optim::Optimizer second = recipes()[2].make(each->model);
      (void)each->model.divide_step(second);
      for (int step = 0; step < 4; ++step) {
        each->optimizer = step % 2 == 0 ? first : second;
        each->step(group, step);
      }
    }
    expect_same_bits(one.model, plain.model, "after two steps of each");
  });
}

/// How long a rank keeps a handle is its own affair.
TEST(DivideAgain, OneRankKeepsTheEarlierOptimizer) {
  on_ranks(3, [](comm::Group& group) {
    const DivideOptions shared{.share_parameters = true};
    Trained one(group, recipes()[0], true, 37, shared);
    Trained plain(group, recipes()[0], false);
    std::vector<optim::Optimizer> kept;
    for (Trained* each : {&one, &plain}) {
      each->step(group, 0);
      if (group.rank() == 0) {
        kept.push_back(each->optimizer);
      }
      each->optimizer = recipes()[2].make(each->model);
      EXPECT_EQ(each->model.divide_step(each->optimizer, shared), each == &one);
      each->step(group, 1);
      each->step(group, 2);
    }
    expect_same_bits(one.model, plain.model, "after the second phase");
  });
}

TEST(DivideAgain, AfterSharingStepsAreStillDivided) {
  on_ranks(3, [](comm::Group& group) {
    Trained one(group, recipes()[0], true, 37, {.share_parameters = true});
    Trained plain(group, recipes()[0], false);
    for (Trained* each : {&one, &plain}) {
      each->step(group, 0);
      each->optimizer = optim::SGD(each->model, {.lr = 0.1});  // the one before is gone
      each->step(group, 1);
      each->optimizer = recipes()[2].make(each->model);
      EXPECT_EQ(each->model.divide_step(each->optimizer), each == &one);
      each->step(group, 2);
      each->step(group, 3);
    }
    expect_same_bits(one.model, plain.model, "after the third phase");
  });
}

TEST(DivideAgain, AParameterWithOtherMemoryOnOneRankIsNamed) {
  on_ranks(2, [](comm::Group& group) {
    DistributedDataParallel<TwoLayers> model(TwoLayers(0.5, 37), group);
    if (group.rank() == 1) {
      model.module()->first->weight.set_data(model.module()->first->weight.detach().clone());
    }
    const optim::Optimizer optimizer = optim::Adam(model, {.lr = 0.02});
    const std::string error = error_of([&] { model.divide_step(optimizer); });
    EXPECT_THAT(error, HasSubstr("what divide_step() is to divide differs"));
    EXPECT_THAT(error, HasSubstr("rank 1: first.weight of 888 bytes in other memory"));
  });
}

TEST(DivideAgain, NotInTheMiddleOfAStep) {
  on_ranks(2, [](comm::Group& group) {
    Trained each(group, recipes()[0], true, 37, {.overlap_update = true});
    Trained plain(group, recipes()[0], false);
    const optim::OptimizerState fresh = each.optimizer.state_dict().clone();
    each.backward(group, 0);
    EXPECT_THAT(error_of([&] { each.optimizer.load_state_dict(fresh); }),
                HasSubstr("load_state_dict() between backward() and step()"));
    EXPECT_THAT(error_of([&] { each.model.divide_step(each.optimizer); }),
                HasSubstr("between backward() and step()"));
    each.optimizer.step();
    plain.step(group, 0);
    expect_same_bits(each.model, plain.model, "one gradient, applied once");
  });
}

/// What the error of a failed backward advises works, though a part of the update is made.
TEST(DivideAgain, AfterABackwardThatFailedOneCanWrapAgain) {
  on_ranks(2, [](comm::Group& group) {
    TwoLayers net(0.5, 37);
    const DdpOptions small{.first_bucket_bytes = 64, .bucket_cap_bytes = 256};
    auto model = std::make_unique<DistributedDataParallel<TwoLayers>>(net, group, small);
    optim::Optimizer optimizer = optim::Adam(*model, {.lr = 0.02});
    const optim::OptimizerState fresh = optimizer.state_dict().clone();
    EXPECT_TRUE(model->divide_step(optimizer, {.overlap_update = true}));
    const at::Tensor x = values({4, 3}, group.rank() + 1.0).requires_grad_();
    x.register_hook([](const at::Tensor& /*grad*/) -> void { throw std::runtime_error("mine"); });
    const void* const place = net->second->weight.data_ptr();
    EXPECT_THROW((*model)(x).square().sum().backward(), std::runtime_error);
    EXPECT_NE(net->second->weight.data_ptr(), place);  // where other ranks do not write
    model.reset();
    DistributedDataParallel<TwoLayers> again(net, group, small);
    EXPECT_TRUE(again.divide_step(optimizer));
    optimizer.load_state_dict(fresh);
    optimizer.zero_grad();
    DistributedDataParallel<TwoLayers> plain(TwoLayers(0.5, 37), group, small);
    {
      const at::NoGradGuard no_grad;
      for (size_t i = 0; i < plain.parameters().size(); ++i) {
        plain.parameters()[i].copy_(again.parameters()[i]);
      }
    }
    optim::Optimizer plain_optimizer = optim::Adam(plain, {.lr = 0.02});
    again(values({4, 3}, group.rank() + 2.0)).square().sum().backward();
    plain(values({4, 3}, group.rank() + 2.0)).square().sum().backward();
    optimizer.step();
    plain_optimizer.step();
    expect_same_bits(again, plain, "a step after the new start");
  });
}

}  // namespace
}  // namespace argosy::parallel
