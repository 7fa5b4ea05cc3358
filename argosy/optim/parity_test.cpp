// Every optimizer and option against libtorch's own: 100 steps on the same random gradients.
#include <fmt/format.h>

#include <functional>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/optim/optim.h"
#include "argosy/optim/optim_test_problem.h"

namespace argosy::optim {
namespace {

using engine::NamedTensors;
using testing::clone;
using testing::difference;
using testing::make_parameters;
using testing::set_gradients;
using testing::tensors;

template <typename Theirs>
void expect_parity(const std::function<Optimizer(const NamedTensors&)>& ours,
                   const std::function<Theirs(const std::vector<torch::Tensor>&)>& theirs,
                   const std::string& what) {
  at::set_num_threads(1);  // no number of them changes a bit, and many wait long on a busy machine
  for (const auto dtype : {torch::kFloat, torch::kDouble}) {
    const NamedTensors mine = make_parameters(dtype), reference = clone(mine);
    Optimizer optimizer = ours(mine);
    Theirs oracle = theirs(tensors(reference));
    for (int step = 0; step < 100; ++step) {
      set_gradients(mine, step);
      for (std::size_t i = 0; i < mine.size(); ++i) {
        reference[i].second.mutable_grad() = mine[i].second.grad().clone();
      }
      optimizer.step();
      oracle.step();
    }
    const double bound = dtype == torch::kFloat ? 1e-6 : 1e-13;
    EXPECT_LT(difference(mine, reference), bound) << what << " in " << c10::toString(dtype);
    EXPECT_GT(difference(mine, make_parameters(dtype)), 1e-3) << what << " did not move";
  }
}

TEST(Parity, Sgd) {
  struct Case {
    double momentum, dampening, decay;
    bool nesterov;
  };
  for (const Case& c : {Case{0, 0, 0, false},
                        Case{0, 0, 0.01, false},
                        Case{0.9, 0, 0, false},
                        Case{0.9, 0.3, 0.01, false},
                        Case{0.9, 0, 0.01, true}}) {
    expect_parity<torch::optim::SGD>(
        [&](const NamedTensors& list) {
          return SGD(list,
                     {.lr = 0.01,
                      .momentum = c.momentum,
                      .dampening = c.dampening,
                      .weight_decay = c.decay,
                      .nesterov = c.nesterov});
        },
        [&](const auto& list) {
          return torch::optim::SGD(list,
                                   torch::optim::SGDOptions(0.01)
                                       .momentum(c.momentum)
                                       .dampening(c.dampening)
                                       .weight_decay(c.decay)
                                       .nesterov(c.nesterov));
        },
        fmt::format("momentum {} dampening {} decay {} nesterov {}",
                    c.momentum,
                    c.dampening,
                    c.decay,
                    c.nesterov));
  }
}

TEST(Parity, MomentumIsSgdUnderPaddlesName) {
  for (const bool nesterov : {false, true}) {
    expect_parity<torch::optim::SGD>(
        [&](const NamedTensors& list) {
          return Momentum(
              list,
              {.lr = 0.01, .momentum = 0.8, .nesterov = nesterov, .weight_decay = L2Decay(0.1)});
        },
        [&](const auto& list) {
          return torch::optim::SGD(
              list,
              torch::optim::SGDOptions(0.01).momentum(0.8).weight_decay(0.1).nesterov(nesterov));
        },
        nesterov ? "nesterov" : "plain");
  }
}

TEST(Parity, Adam) {
  for (const bool amsgrad : {false, true}) {
    for (const double decay : {0.0, 0.01}) {
      for (const double beta1 : {0.9, 0.4}) {
        expect_parity<torch::optim::Adam>(
            [&](const NamedTensors& list) {
              return Adam(list,
                          {.lr = 0.01,
                           .betas = {beta1, 0.99},
                           .eps = 1e-7,
                           .weight_decay = decay,
                           .amsgrad = amsgrad});
            },
            [&](const auto& list) {
              return torch::optim::Adam(list,
                                        torch::optim::AdamOptions(0.01)
                                            .betas({beta1, 0.99})
                                            .eps(1e-7)
                                            .weight_decay(decay)
                                            .amsgrad(amsgrad));
            },
            fmt::format("amsgrad {} decay {} beta1 {}", amsgrad, decay, beta1));
      }
    }
  }
}

TEST(Parity, AdamW) {
  for (const bool amsgrad : {false, true}) {
    expect_parity<torch::optim::AdamW>(
        [&](const NamedTensors& list) {
          return AdamW(list, {.lr = 0.01, .weight_decay = 0.1, .amsgrad = amsgrad});
        },
        [&](const auto& list) {
          return torch::optim::AdamW(
              list, torch::optim::AdamWOptions(0.01).weight_decay(0.1).amsgrad(amsgrad));
        },
        amsgrad ? "amsgrad" : "plain");
  }
}

TEST(Parity, RMSProp) {
  for (const bool centered : {false, true}) {
    for (const double momentum : {0.0, 0.9}) {
      for (const double decay : {momentum == 0 ? 0.01 : 0.0}) {
        expect_parity<torch::optim::RMSprop>(
            [&](const NamedTensors& list) {
              return RMSProp(list,
                             {.lr = 0.001,
                              .alpha = 0.95,
                              .eps = 1e-4,
                              .weight_decay = decay,
                              .momentum = momentum,
                              .centered = centered});
            },
            [&](const auto& list) {
              return torch::optim::RMSprop(list,
                                           torch::optim::RMSpropOptions(0.001)
                                               .alpha(0.95)
                                               .eps(1e-4)
                                               .weight_decay(decay)
                                               .momentum(momentum)
                                               .centered(centered));
            },
            fmt::format("centered {} momentum {} decay {}", centered, momentum, decay));
      }
    }
  }
}

TEST(Parity, Adagrad) {
  for (const double lr_decay : {0.0, 0.05}) {
    for (const double decay : {0.0, 0.01}) {
      for (const double start : {lr_decay == 0 ? 0.5 : 0.0}) {
        expect_parity<torch::optim::Adagrad>(
            [&](const NamedTensors& list) {
              return Adagrad(list,
                             {.lr = 0.05,
                              .lr_decay = lr_decay,
                              .weight_decay = decay,
                              .initial_accumulator_value = start});
            },
            [&](const auto& list) {
              return torch::optim::Adagrad(list,
                                           torch::optim::AdagradOptions(0.05)
                                               .lr_decay(lr_decay)
                                               .weight_decay(decay)
                                               .initial_accumulator_value(start));
            },
            fmt::format("lr_decay {} decay {} start {}", lr_decay, decay, start));
      }
    }
  }
}

TEST(Parity, DefaultsArePyTorchs) {
  expect_parity<torch::optim::Adam>([](const NamedTensors& list) { return Adam(list); },
                                    [](const auto& list) { return torch::optim::Adam(list); },
                                    "Adam");
  expect_parity<torch::optim::AdamW>([](const NamedTensors& list) { return AdamW(list); },
                                     [](const auto& list) { return torch::optim::AdamW(list); },
                                     "AdamW");
  expect_parity<torch::optim::RMSprop>([](const NamedTensors& list) { return RMSProp(list); },
                                       [](const auto& list) { return torch::optim::RMSprop(list); },
                                       "RMSProp");
  expect_parity<torch::optim::Adagrad>([](const NamedTensors& list) { return Adagrad(list); },
                                       [](const auto& list) { return torch::optim::Adagrad(list); },
                                       "Adagrad");
}

// The penalty's own gradient by autograd is the oracle for L1Decay, which libtorch lacks.
TEST(Parity, RegularizersAreTheGradientsOfTheirPenalties) {
  for (const bool l1 : {true, false}) {
    const NamedTensors mine = make_parameters(torch::kDouble), reference = clone(mine);
    {
      torch::NoGradGuard no_grad;
      mine[0].second[0].zero_();  // where |w| has no derivative
      reference[0].second[0].zero_();
    }
    const WeightDecay decay = l1 ? WeightDecay(L1Decay(0.05)) : WeightDecay(L2Decay(0.05));
    Adam regularized(mine, {.lr = 0.01, .weight_decay = decay});
    Adam plain(reference, {.lr = 0.01});
    for (int step = 0; step < 100; ++step) {
      set_gradients(mine, step);
      set_gradients(reference, step);
      torch::Tensor penalty = torch::zeros({}, torch::kDouble);
      for (const auto& [name, w] : reference) {
        penalty = penalty + (l1 ? 0.05 * w.abs().sum() : 0.05 / 2 * w.square().sum());
      }
      penalty.backward();
      regularized.step();
      plain.step();
    }
    EXPECT_LT(difference(mine, reference), 1e-13) << (l1 ? "L1" : "L2");
  }
}

}  // namespace
}  // namespace argosy::optim
