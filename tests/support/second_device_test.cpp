/// The device that other tests lean on: that it computes as the CPU does, and catches what a GPU
/// would.
#include "tests/support/second_device.h"

#include <cmath>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>

#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/engine/version.h"

#include "tests/support/error_text.h"
#include "tests/support/stream_order.h"

namespace argosy::test {
namespace {

/// Convolution, pooling, norm, dropout, loss, and gradients of all.
std::vector<at::Tensor> train_once(at::Device device) {
  torch::manual_seed(3);
  torch::nn::Sequential net(torch::nn::Conv2d(2, 4, 3),
                            torch::nn::BatchNorm2d(4),
                            torch::nn::ReLU(),
                            torch::nn::MaxPool2d(2),
                            torch::nn::Dropout(0.3),
                            torch::nn::Flatten(),
                            torch::nn::Linear(4 * 3 * 3, 5));
  const at::Tensor x = torch::randn({6, 2, 8, 8});
  net->to(device);
  const at::Tensor out = net->forward(x.to(device));
  const at::Tensor labels = torch::arange(6, at::kLong).remainder(5).to(device);
  torch::nn::functional::cross_entropy(out, labels).backward();
  std::vector<at::Tensor> all{out.detach().cpu()};
  for (const at::Tensor& p : net->parameters()) {
    EXPECT_EQ(p.grad().device(), p.device());
    all.push_back(p.grad().cpu());
  }
  for (const at::Tensor& b : net->buffers()) {
    all.push_back(b.cpu());
  }
  return all;
}

TEST(SecondDevice, TrainsAsTheCpuToTheBit) {
  const auto there = train_once(second_device(1));
  const auto here = train_once(at::kCPU);
  ASSERT_EQ(there.size(), here.size());
  for (size_t i = 0; i < here.size(); ++i) {
    EXPECT_TRUE(there[i].equal(here[i])) << i;
  }
}

TEST(SecondDevice, ViewsInPlaceScalarsListsAndResizing) {
  const at::Device there = second_device();
  at::Tensor t = at::arange(6, at::TensorOptions(at::kFloat).device(there)).view({2, 3});
  t.select(0, 1).mul_(2);
  t.t().select(0, 0).add_(at::tensor(10.F).to(there));
  EXPECT_TRUE(t.cpu().equal(at::tensor({10.F, 1.F, 2.F, 16.F, 8.F, 10.F}).view({2, 3})));
  const at::Tensor twice = at::mul(at::scalar_tensor(2), t);
  EXPECT_EQ(twice.device(), there);
  EXPECT_EQ(twice.sum().item<float>(), 94);
  EXPECT_TRUE(at::cat({t, twice}).cpu().equal(at::cat({t.cpu(), twice.cpu()})));
  EXPECT_TRUE(t.index({torch::tensor({1, 0})}).cpu().equal(t.cpu().flip(0)));
  at::Tensor out = at::empty({0}, t.options());
  at::add_out(out, t, t);
  EXPECT_TRUE(out.equal(twice));
  EXPECT_TRUE(out.resize_({3, 8}).flatten().narrow(0, 0, 6).equal(twice.flatten()));
  std::vector<at::Tensor> list{t, twice};
  at::_foreach_add_(list, 1);
  EXPECT_EQ(t[0][0].item<float>(), 11);
  EXPECT_TRUE(at::isnan(at::empty({4}, t.options())).all().item<bool>()) << "never zero by luck";
}

TEST(SecondDevice, RootsAreRoundedToTheNearest) {
  for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
    const at::Tensor squares = torch::rand({40, 50}, type).t();
    const at::Tensor roots = squares.to(second_device()).sqrt().cpu();
    for (int64_t i = 0; i < squares.numel(); ++i) {
      const at::Tensor square = squares.flatten()[i];
      const double wanted =
          type == at::kFloat ? std::sqrt(square.item<float>()) : std::sqrt(square.item<double>());
      ASSERT_EQ(roots.flatten()[i].item<double>(), wanted) << type << " " << square;
    }
  }
  const at::Tensor four = at::full({2}, 4, second_device());
  EXPECT_TRUE(four.sqrt().cpu().equal(at::full({2}, 2.F))) << "of integers too";
  EXPECT_TRUE(four.to(at::kFloat).sqrt_().cpu().equal(at::full({2}, 2.F)));
}

TEST(SecondDevice, DevicesDoNotMix) {
  const at::Tensor a = at::ones({2}, second_device(0));
  EXPECT_THROW((void)(a + at::ones({2}, second_device(1))), c10::Error);
  EXPECT_THROW((void)(a + at::ones({2})), c10::Error);
  EXPECT_TRUE(a.to(second_device(1)).cpu().equal(at::ones({2})));
  EXPECT_THROW((void)at::ones({2}, second_device(kSecondDevices)), c10::Error);
}

// --- Late work ---------------------------------------------------------------------------------

constexpr int kRounds = 200;  // the seed decides which of them are late

/// How many rounds of `each`, which gets a number that is another in each round, return true.
int count_of(const std::function<bool(double)>& each) {
  int rounds = 0;
  for (int round = 1; round <= kRounds; ++round) {
    rounds += each(round) ? 1 : 0;
  }
  return rounds;
}

TEST(SecondDevice, WorkIsQueuedAndEndsWhenItIsWaitedFor) {
  const c10::Stream stream =
      c10::impl::VirtualGuardImpl(second_device().type()).getDefaultStream(second_device());
  const at::Tensor t = at::zeros({3}, second_device());
  EXPECT_GT(count_of([&](double value) {
              t.fill_(value);
              const bool is_late = !stream.query();
              stream.synchronize();
              EXPECT_TRUE(stream.query());
              EXPECT_EQ(t.cpu()[2].item<float>(), value);
              return is_late;
            }),
            kRounds / 4);
}

TEST(SecondDevice, AnotherStreamHasToWait) {
  for (const bool waits : {false, true}) {
    std::optional<StreamOrder::Allowed> races;
    if (!waits) {
      races.emplace();
    }
    const at::Tensor t = at::zeros({3}, second_device());
    const int wrong = count_of([&](double value) {
      const c10::Stream here =
          c10::impl::VirtualGuardImpl(second_device().type()).getStream(second_device());
      t.fill_(value);
      c10::Event filled(second_device().type());
      filled.record(here);
      const c10::StreamGuard guard(side_stream(second_device()));
      if (waits) {
        filled.block(guard.current_stream());
      }
      return t.cpu()[0].item<float>() != value;
    });
    EXPECT_TRUE(waits ? wrong == 0 : wrong > kRounds / 10) << wrong;
  }
}

TEST(SecondDevice, FreedMemoryIsTheNextTensorsUnlessItsStreamsAreRecorded) {
  for (const bool recorded : {false, true}) {
    std::optional<StreamOrder::Allowed> races;
    if (!recorded) {
      races.emplace();
    }
    const int wrong = count_of([&](double value) {
      at::Tensor t = at::full({3}, value, second_device());
      (void)t.cpu();  // so that the side need not wait
      at::Tensor copy;
      {
        const c10::StreamGuard guard(side_stream(second_device()));
        copy = t.clone();
        if (recorded) {
          t.record_stream(guard.current_stream());
        }
      }
      t = at::Tensor();
      const at::Tensor next = at::zeros({3}, second_device());
      (void)next.cpu();
      const c10::StreamGuard guard(side_stream(second_device()));
      return copy.cpu()[0].item<float>() != value;
    });
    EXPECT_TRUE(recorded ? wrong == 0 : wrong > kRounds / 10) << wrong;
  }
}

TEST(SecondDevice, CopiesFromPinnedMemoryReadItLate) {
#if ARGOSY_TORCH_AT_LEAST(2, 0)
  const c10::optional<at::Device> there;  // it is the program's only kind
  (void)second_device();
#else
  const c10::optional<at::Device> there = second_device();
#endif
  const at::Tensor pinned = at::zeros({3}).pin_memory(there);
  EXPECT_TRUE(pinned.is_pinned(there));
  EXPECT_TRUE(pinned[2].is_pinned(there));
  EXPECT_FALSE(at::zeros({3}).is_pinned(there));
  for (const at::Tensor& host : {pinned, at::zeros({3})}) {
    for (const bool non_blocking : {false, true}) {
      const int wrong = count_of([&](double value) {
        host.fill_(value);
        const at::Tensor copy = host.to(at::TensorOptions(second_device()), non_blocking);
        host.fill_(0);
        return copy.cpu()[0].item<float>() != value;
      });
      const bool late = host.is_same(pinned) && non_blocking;
      EXPECT_TRUE(late ? wrong > kRounds / 10 : wrong == 0) << wrong;
    }
  }
}

/// What the device says of work in the default stream, then on the side, then in the default one.
std::string told_of(const std::function<void()>& first,
                    const std::function<void()>& on_the_side,
                    const std::function<void()>& last) {
  const c10::impl::VirtualGuardImpl card(second_device().type());
  const auto synchronize = [&] {
    card.synchronizeStream(side_stream(second_device()));
    card.synchronizeStream(card.getDefaultStream(second_device()));
  };
  synchronize();
  return error_text<std::runtime_error>([&] {
    first();
    {
      const c10::StreamGuard guard(side_stream(second_device()));
      on_the_side();
    }
    last();
    synchronize();
  });
}

// Whichever of them the seed makes late.
TEST(SecondDevice, WorkThatShouldHaveWaitedIsAnErrorInEveryRun) {
  const at::Tensor t = at::zeros({3}, second_device());
  at::Tensor copy = at::zeros({3}, second_device());
  at::Tensor freed;
  const auto nothing = [] {};
  const auto write = [&] { t.fill_(1); };
  const auto read = [&] { copy.copy_(t); };
  c10::Event event(second_device().type());
  const auto current = [] {
    return c10::impl::VirtualGuardImpl(second_device().type()).getStream(second_device());
  };
  const auto then_record = [&](const auto& work) {
    return [&, work] {
      work();
      event.record(current());
    };
  };
  const auto after_the_event = [&](const auto& work) {
    return [&, work] {
      event.block(current());
      work();
    };
  };
  const std::string side = "stream 1 of card 0";
  const std::string main = "stream 0 of card 0";
  const std::string unsynced = ", and does not wait for it";
  const std::string no_error = "nothing was thrown";
  EXPECT_EQ(told_of(write, read, nothing), side + " reads what " + main + " writes" + unsynced);
  EXPECT_EQ(told_of(nothing, read, write), main + " writes what " + side + " reads" + unsynced);
  EXPECT_EQ(told_of(write, write, nothing), side + " writes what " + main + " writes" + unsynced);
  EXPECT_EQ(told_of(then_record(write), after_the_event(read), nothing), no_error);
  EXPECT_EQ(told_of(nothing, then_record(read), after_the_event(write)), no_error);
  // An event that is too early.
  EXPECT_EQ(told_of(nothing, after_the_event(read), write),
            main + " writes what " + side + " reads" + unsynced);
  // What another thread asks is no wait of this one's.
  const auto ask = [&] {
    std::jthread([&] {
      while (!event.query()) {
        std::this_thread::yield();
      }
    }).join();
    read();
  };
  EXPECT_EQ(told_of(nothing, then_record(write), ask),
            main + " reads what " + side + " writes" + unsynced);
  for (const bool recorded : {false, true}) {
    const std::string told = told_of(
        [&] {
          freed = at::ones({3}, second_device());
          event.record(current());
        },
        after_the_event([&] {
          copy.copy_(freed);
          if (recorded) {
            freed.record_stream(current());
          }
        }),
        [&] {
          freed = at::Tensor();
          freed = at::ones({3}, second_device());
        });
    EXPECT_EQ(told, recorded ? no_error : main + " writes what " + side + " reads" + unsynced);
  }
}

#if ARGOSY_TORCH_AT_LEAST(2, 0)  // 1.13 does so for CUDA alone
TEST(SecondDevice, BackwardWorksInTheStreamOfForward) {
  const at::Tensor weight = at::full({3}, 2., second_device()).requires_grad_();
  (void)weight.cpu();  // so that the side need not wait
  const int wrong = count_of([&](double value) {
    weight.mutable_grad() = at::Tensor();
    at::Tensor loss;
    {
      const c10::StreamGuard guard(side_stream(second_device()));
      loss = (weight * value).square().sum();
    }
    loss.backward();
    return weight.grad().cpu()[0].item<float>() != 4 * value * value;
  });
  EXPECT_EQ(wrong, 0);
}
#endif

TEST(SecondDevice, ErrorsOfKernelsComeToWhoWaits) {
  const at::Tensor t = at::zeros({3}, second_device());
  const at::Tensor far = at::full({1}, 7, at::TensorOptions(at::kLong).device(second_device()));
  const at::Tensor got = t.index_select(0, far);
  EXPECT_THROW((void)got.cpu(), c10::Error);
  EXPECT_EQ(t.sum().item<float>(), 0) << "the device goes on";
}

TEST(SecondDevice, ItsMemoryIsNotTheHosts) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  const at::Tensor t = at::ones({2}, second_device());
  EXPECT_DEATH((void)(*static_cast<volatile float*>(t.data_ptr())), "");
}

}  // namespace
}  // namespace argosy::test
