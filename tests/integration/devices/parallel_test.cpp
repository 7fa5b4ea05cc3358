/// Training on devices beside the CPU, by ranks that are threads with a device each and by
/// replicas: what comes out is what the CPU computes.
#include <array>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/engine/autocast.h"
#include "argosy/engine/memory_format.h"
#include "argosy/optim/adam.h"
#include "argosy/optim/grad_scaler.h"
#include "argosy/optim/sgd.h"
#include "argosy/parallel/ddp/ddp_test_support.h"
#include "argosy/vision/models/mnist_cnn.h"

#include "tests/support/on_devices.h"

namespace argosy::parallel {
namespace {

using testing::error_of;
using ::testing::HasSubstr;
using testing::on_ranks;
using testing::values;
using Results = std::vector<at::Tensor>;

/// A convolution, a norm over ranks and a number for each sample and class.
struct NormedImpl : torch::nn::Cloneable<NormedImpl> {
  NormedImpl() { reset(); }
  void reset() override {
    conv = register_module("conv", torch::nn::Conv2d(2, 3, 3));
    norm = register_module("norm", SyncBatchNorm2d(3));
    fc = register_module("fc", torch::nn::Linear(3, 4));
    testing::fill(*this, 1);
  }
  at::Tensor forward(const at::Tensor& x) { return fc(norm(conv(x)).relu().mean({2, 3})); }
  torch::nn::Conv2d conv{nullptr};
  SyncBatchNorm2d norm{nullptr};
  torch::nn::Linear fc{nullptr};
};
TORCH_MODULE(Normed);

at::Tensor images(int64_t n, double seed = 3) {
  return values({n, 2, 6, 5}, seed, at::kFloat) * 2 + 10;
}

/// Parameters, their gradients and buffers.
template <typename M>
void add_all(const M& module, Results& results) {
  for (const at::Tensor& p : module.parameters()) {
    results.push_back(p.detach().clone());
    results.push_back(p.grad().defined() ? p.grad().clone() : at::zeros({}));
  }
  for (const at::Tensor& b : module.buffers()) {
    results.push_back(b.clone());
  }
}

class ParallelOnDevices : public test::OnDevices {
 protected:
  /// `fn` on ranks of the CPU and then on ranks with a device each: the same results.
  void expect_as_on_cpu(int ranks,
                        const std::function<Results(comm::Group&, at::Device)>& fn) const {
    on_ranks(ranks, [&](comm::Group& group) {
      const Results wanted = fn(group, at::kCPU);
      const Results got = fn(group, device(group.rank()));
      compare(got, wanted);
    });
  }
  void compare(const Results& got, const Results& wanted) const {
    ASSERT_EQ(got.size(), wanted.size());
    for (size_t i = 0; i < got.size(); ++i) {
      expect_equal(got[i], wanted[i], "result " + std::to_string(i));
    }
  }
};

/// Draws a number in each forward, in evaluation mode too.
struct DrawingImpl : torch::nn::Cloneable<DrawingImpl> {
  DrawingImpl() { reset(); }
  void reset() override { conv = register_module("conv", torch::nn::Conv2d(2, 3, 3)); }
  at::Tensor forward(const at::Tensor& x) {
    drawn.push_back(at::rand({1}, x.options()).item<float>());
    return conv(x).mean({2, 3});
  }
  torch::nn::Conv2d conv{nullptr};
  std::vector<float> drawn;
};
TORCH_MODULE(Drawing);

/// The trial of a memory format, which only CUDA has here, runs forwards, and nothing tells.
TEST_P(ParallelOnDevices, ATrialLeavesTheGenerators) {
  at::globalContext().setAllowTF32CuDNN(true);
  const auto drawn_by = [&](engine::MemoryFormat format) {
    std::vector<float> drawn;
    on_ranks(1, [&](comm::Group& group) {
      Drawing net;
      net->to(device());
      DistributedDataParallel model(net, group, {.memory_format = format});
      torch::manual_seed(4);
      for (int step = 0; step < 2; ++step) {
        (void)model(images(2).to(device()));
        drawn.push_back(net->drawn.back());
      }
      EXPECT_EQ(net->drawn.size(), format == engine::MemoryFormat::kAuto && is_cuda() ? 4U : 2U);
    });
    return drawn;
  };
  EXPECT_EQ(drawn_by(engine::MemoryFormat::kAuto), drawn_by(engine::MemoryFormat::kAsIs));
}

// --- Norms over ranks ---------------------------------------------------------------------------

/// Uneven batches; forward, gradients of everything, statistics, then evaluation.
Results synced_norm(comm::Group& group, at::Device device, std::vector<int64_t> samples) {
  Normed net;
  net->to(device);
  convert_sync_batchnorm(net, group);
  const int64_t own = samples[static_cast<size_t>(group.rank())];
  Results results;
  for (int step = 0; step < 2; ++step) {
    const at::Tensor x = images(own, step + group.rank()).to(device).requires_grad_();
    const at::Tensor out = net(x);
    out.pow(2).sum().backward();
    results.insert(results.end(), {out.detach(), x.grad()});
  }
  add_all(*net, results);
  net->eval();
  results.push_back(net(images(3).to(device)).detach());
  return results;
}

TEST_P(ParallelOnDevices, SyncBatchNorm) {
  ARGOSY_NEED_DEVICES(3);
  expect_as_on_cpu(3, [](comm::Group& group, at::Device device) {
    return synced_norm(group, device, {2, 1, 4});
  });
}

TEST_P(ParallelOnDevices, SyncBatchNormOfAnEmptyBatch) {
  ARGOSY_NEED_DEVICES(2);
  expect_as_on_cpu(2, [](comm::Group& group, at::Device device) {
    return synced_norm(group, device, {0, 4});
  });
}

/// What cannot be read there is not held against a rank: how often a parameter was written.
TEST_P(ParallelOnDevices, RanksMayHaveWrittenTheirParametersMoreOften) {
  ARGOSY_NEED_DEVICES(2);
  on_ranks(2, [&](comm::Group& group) {
    torch::nn::Linear net(3, 2);
    testing::fill(*net, 1);
    net->to(device(group.rank()));
    if (group.rank() == 1) {
      const torch::NoGradGuard no_grad;
      net->weight.mul_(1.0);
    }
    DistributedDataParallel model(net, group);
    optim::SGD optimizer(model, {.lr = 0.1});
    for (int step = 0; step < 3; ++step) {
      model(values({4, 3}, step + group.rank(), at::kFloat).to(device(group.rank())))
          .sum()
          .backward();
      optimizer.step();
    }
  });
}

TEST_P(ParallelOnDevices, AModelWithSyncedNormsUnderTheWrapper) {
  ARGOSY_NEED_DEVICES(2);
  expect_as_on_cpu(2, [](comm::Group& group, at::Device device) {
    vision::MnistCnn net;
    net->to(device,
            at::kDouble);  // in f32 the CPU has kernels of ours, which round in another order
    testing::fill(*net, 2);
    convert_sync_batchnorm(net, group);
    DistributedDataParallel model(net, group);
    const at::Tensor x = values({3, 1, 28, 28}, 1 + group.rank()).to(device);
    const at::Tensor labels = (at::arange(3) + group.rank()).remainder(4).to(device);
    torch::nn::functional::cross_entropy(model(x), labels).backward();
    Results results;
    add_all(*net, results);
    return results;
  });
}

// --- DistributedDataParallel --------------------------------------------------------------------

/// Some steps with an optimizer, one of them over two passes.
Results train(comm::Group& group, at::Device device, const DdpOptions& options, bool compressed) {
  torch::nn::Sequential net(torch::nn::Linear(3, 8),
                            torch::nn::BatchNorm1d(8),
                            torch::nn::Tanh(),
                            torch::nn::Linear(8, 2));
  testing::fill(*net, 1 + group.rank());  // rank 0's are everybody's
  net->to(device);
  DistributedDataParallel model(net, group, options);
  if (compressed) {
    model.register_comm_hook(fp16_compress(), "fp16");
  }
  optim::Adam optimizer(model, {.lr = 0.1});
  Results results;
  for (int step = 0; step < 4; ++step) {
    const at::Tensor x = values({4, 3}, step * 7 + group.rank(), at::kFloat).to(device);
    if (step == 2) {
      const auto local = model.no_sync();
      model(x + 1).pow(2).sum().backward();
    }
    model(x).pow(2).sum().backward();
    add_all(*net, results);
    optimizer.step();
    optimizer.zero_grad();
  }
  for (const at::Tensor& p : net->parameters()) {
    EXPECT_EQ(p.device(), device);
    results.push_back(p.detach());
  }
  return results;
}

TEST_P(ParallelOnDevices, DistributedDataParallelTrains) {
  ARGOSY_NEED_DEVICES(3);
  for (const bool unused : {false, true}) {
    expect_as_on_cpu(3, [&](comm::Group& group, at::Device device) {
      return train(
          group,
          device,
          {.first_bucket_bytes = 8, .bucket_cap_bytes = 64, .find_unused_parameters = unused},
          false);
    });
  }
}

TEST_P(ParallelOnDevices, DistributedDataParallelWithAHookOfItsOwn) {
  ARGOSY_NEED_DEVICES(2);
  expect_as_on_cpu(
      2, [&](comm::Group& group, at::Device device) { return train(group, device, {}, true); });
}

TEST_P(ParallelOnDevices, UnusedParametersAndUnevenInputs) {
  ARGOSY_NEED_DEVICES(2);
  expect_as_on_cpu(2, [](comm::Group& group, at::Device device) {
    testing::TwoHeads net;
    net->to(device);
    DistributedDataParallel model(net, group, {.find_unused_parameters = true});
    Results results;
    {
      Join join = model.join();
      for (int step = 0; step < 2 + group.rank(); ++step) {
        const at::Tensor x = values({2, 3}, step + 2 * group.rank()).to(device);
        const auto [left, right] = model(x, group.rank() == 0, step == 1);
        (left.sum() + right.sum()).backward();
        add_all(*net, results);
        net->zero_grad();
      }
      join.finish();
    }
    add_all(*net, results);
    return results;
  });
}

/// A rank updates its part, with its part of the state, and the others get the new values.
TEST_P(ParallelOnDevices, StepsAreSharded) {
  ARGOSY_NEED_DEVICES(3);
  expect_as_on_cpu(3, [](comm::Group& group, at::Device device) {
    testing::TwoLayers net(0.5, 37);
    net->to(device);
    DistributedDataParallel model(
        net, group, {.first_bucket_bytes = 64, .bucket_cap_bytes = 256, .shared_memory = false});
    optim::AdamW optimizer(
        model, {.lr = 0.03, .amsgrad = true, .grad_clip = optim::ClipGradByValue(0.05)});
    if (!device.is_cpu()) {
      EXPECT_TRUE(model.divide_step(optimizer, {.scatter_gradients = true}));
    }
    optim::GradScaler scaler({.init_scale = 64});
    Results results;
    for (int step = 0; step < 4; ++step) {
      at::Tensor loss = model(values({4, 3}, group.rank() + 10 * step).to(device)).square().sum();
      if (step == 1) {  // which one rank alone sees
        loss = loss + net->first->bias[4] * std::numeric_limits<double>::infinity();
      }
      scaler.scale(loss).backward();
      EXPECT_EQ(scaler.step(optimizer), step != 1);
      scaler.update();
      optimizer.zero_grad();
      add_all(*net, results);
      results.push_back(net->first->weight.detach().clone());
    }
    for (const auto& [name, entry] : optimizer.state_dict().clone().parameters) {
      for (const auto& [key, value] : entry) {
        results.push_back(value.to(key == "step" ? at::Device(at::kCPU) : device));
      }
    }
    return results;
  });
}

/// The scale of the loss is known in the thread of autograd in which a device's gradients arrive.
TEST_P(ParallelOnDevices, AScalersInfinityIsNoReasonToStop) {
  ARGOSY_NEED_DEVICES(2);
  on_ranks(2, [&](comm::Group& group) {
    torch::nn::Linear net(3, 2);
    net->to(device(group.rank()));
    DistributedDataParallel model(net, group, {.on_nonfinite = NonfiniteGradient::kStop});
    optim::SGD optimizer(model, {.lr = 0.1});
    optim::GradScaler scaler;
    const at::Tensor x = at::full({4, 3}, std::numeric_limits<float>::infinity());
    scaler.scale(model(x.to(device(group.rank()))).sum()).backward();
    EXPECT_FALSE(scaler.step(optimizer));
    scaler.update();
    optimizer.zero_grad();
    EXPECT_ANY_THROW(model(x.to(device(group.rank()))).sum().backward()) << "it was not scaled";
  });
}

TEST_P(ParallelOnDevices, WhatIsForTheCpuAloneIsSaid) {
  ARGOSY_NEED_DEVICES(2);
  on_ranks(2, [&](comm::Group& group) {
    testing::TwoLayers net;
    net->to(device(group.rank()));
    DistributedDataParallel model(net, group);
    optim::SGD optimizer(model, {.lr = 0.1});
    EXPECT_FALSE(model.divide_step(optimizer));
    EXPECT_THAT(error_of([&] { model.divide_step(optimizer, {.overlap_update = true}); }),
                HasSubstr("overlap_update is for parameters on the CPU"));
    testing::TwoLayers apart;
    apart->first->to(device(0));
    apart->second->to(device(1));
    EXPECT_THAT(error_of([&] { DistributedDataParallel wrapped(apart, group); }),
                HasSubstr("the trainable parameters of one wrapper lie on one device"));
  });
}

TEST_P(ParallelOnDevices, RanksOnDifferentTypesOfDeviceAreRefused) {
  on_ranks(2, [&](comm::Group& group) {
    testing::TwoLayers net;
    net->to(group.rank() == 0 ? at::Device(at::kCPU) : device());
    EXPECT_THAT(error_of([&] { DistributedDataParallel wrapped(net, group); }),
                HasSubstr("first.weight f64 [5, 3] on "));
  });
}

// --- DataParallel -------------------------------------------------------------------------------

Results replicated(const std::vector<at::Device>& devices) {
  Normed net;
  net->to(devices[0]);
  DataParallel model(net, {.devices = devices});
  EXPECT_EQ(model.replicas(), devices.size());
  optim::SGD optimizer(model, {.lr = 0.1, .momentum = 0.9});
  Results results;
  for (int step = 0; step < 3; ++step) {
    const at::Tensor x = images(5, step).to(devices[0]).requires_grad_();
    const at::Tensor out = model(x);
    EXPECT_EQ(out.device(), devices[0]);
    out.pow(2).mean().backward();
    results.insert(results.end(), {out.detach(), x.grad()});
    add_all(*net, results);
    optimizer.step();
    optimizer.zero_grad();
  }
  model.eval();
  results.push_back(model(images(4).to(devices[0])).detach());
  return results;
}

TEST_P(ParallelOnDevices, DataParallel) {
  const Results wanted = replicated({at::kCPU, at::kCPU});
  compare(replicated({device(0), device(1)}), wanted);
  ARGOSY_NEED_DEVICES(2);
  compare(replicated({device(1), device(0)}), wanted);
}

TEST_P(ParallelOnDevices, AGradientThatIsNotFiniteStopsWhoAsksForIt) {
  ARGOSY_NEED_DEVICES(2);
  on_ranks(2, [&](comm::Group& group) {
    torch::nn::Linear net(3, 2);
    net->to(device(group.rank()));
    DistributedDataParallel model(net, group, {.on_nonfinite = NonfiniteGradient::kStop});
    at::Tensor x = at::ones({4, 3}).to(device(group.rank()));
    model(x).sum().backward();  // all is well
    if (group.rank() == 1) {
      x[2][1].fill_(std::numeric_limits<float>::infinity());
      EXPECT_THAT(error_of<DataError>([&] { model(x).sum().backward(); }),
                  HasSubstr("the gradient of weight[0, 1] is inf on rank 1"));
    } else {
      EXPECT_ANY_THROW(model(x).sum().backward());
    }
  });
}

TEST_P(ParallelOnDevices, DataParallelTakesAllDevicesAndBatchesFromElsewhere) {
  Normed net;
  net->to(device(0));
  net->eval();
  const at::Tensor wanted = net(images(7).to(device(0)));
  parallel::DataParallel model(net);
  EXPECT_EQ(model.replicas(), static_cast<size_t>(number_of_devices()));
  for (const at::Tensor& batch : {images(7), images(7).to(device(1))}) {  // the first on the CPU
    // A part of the batch: processors have other products for matrices of other heights.
    EXPECT_TRUE(model(batch).cpu().allclose(wanted.cpu(), /*rtol=*/1e-5, /*atol=*/1e-6));
  }
}

TEST_P(ParallelOnDevices, ReplicasWorkInTheCallersStreams) {
  if (is_cuda()) {
    GTEST_SKIP() << "only the second device tells in which stream it was written";
  }
  Normed net;
  net->to(device(0));
  parallel::DataParallel model(net, {.devices = {device(0), device(1)}});
  const std::array<c10::Stream, 2> sides{test::side_stream(device(0)),
                                         test::side_stream(device(1))};
  // Streams know nothing of each other, and the network's memory belongs to the default ones.
  const auto wait_for_all = [&sides] {
    for (const c10::Stream& side : sides) {
      const c10::impl::VirtualGuardImpl card(side.device_type());
      card.synchronizeStream(side);
      card.synchronizeStream(card.getDefaultStream(side.device()));
    }
  };
  wait_for_all();
  {
    const c10::StreamGuard first(sides[0]);
    const c10::StreamGuard second(sides[1]);
    (void)model(images(4).to(device(0)));
  }
  wait_for_all();
  EXPECT_EQ(test::stream_of_last_copy_to(device(1)), test::side_stream(device(1)));
  (void)model(images(4).to(device(0)));
  EXPECT_NE(test::stream_of_last_copy_to(device(1)), test::side_stream(device(1)));
}

TEST_P(ParallelOnDevices, ReplicasInMixedPrecisionSeeNewWeights) {
  const torch::NoGradGuard no_grad;
  torch::nn::Linear net(3, 2);
  net->to(device(0));
  parallel::DataParallel model(net, {.devices = {device(0), at::kCPU}});
  for (const double value : {1.0, 2.0}) {
    net->weight.fill_(value);
    net->bias.zero_();
    const engine::Autocast autocast;  // of the CPU, where the second replica is
    const at::Tensor out = model(at::ones({2, 3}).to(device(0))).to(at::kCPU, at::kFloat);
    EXPECT_TRUE(out.equal(at::full({2, 2}, 3 * value))) << out;
  }
}

ARGOSY_ON_DEVICES(ParallelOnDevices);

}  // namespace
}  // namespace argosy::parallel
