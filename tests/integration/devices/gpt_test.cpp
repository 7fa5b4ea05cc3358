/// A Gpt's step on a device, as tests/gpu/run.sh measures it, beside the CPU's.
#include "argosy/text/models/gpt.h"

#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/engine/autocast.h"
#include "argosy/optim/adam.h"

#include "tests/support/on_devices.h"

namespace argosy::text {
namespace {

class GptOnDevices : public test::OnDevices {
 protected:
  /// Of some steps from the same weights.
  static std::vector<double> losses_of(const std::string& model,
                                       const at::Device& where,
                                       bool bf16) {
    const GptOptions options = gpt_options(model + ":vocab_size=50,layers=2,width=32,heads=4");
    Gpt gpt(options);
    gpt->initialize(1);
    gpt->to(where);
    auto optimizer = optim::AdamW(gpt, {.lr = 1e-2});
    const at::Tensor tokens = at::arange(2 * 17, at::kLong).remainder(7).view({2, 17}).to(where);
    std::vector<double> losses;
    for (int step = 0; step < 4; ++step) {
      at::Tensor loss;
      {
        std::optional<engine::Autocast> autocast;
        if (bf16) {
          autocast.emplace(engine::AutocastOptions{.device = where.type(), .dtype = at::kBFloat16});
        }
        loss = gpt->loss(tokens.narrow(1, 0, 16), tokens.narrow(1, 1, 16));
      }
      loss.backward();
      optimizer.step();
      optimizer.zero_grad();
      losses.push_back(loss.item<double>());
    }
    return losses;
  }
};

TEST_P(GptOnDevices, LearnsAsOnTheCpu) {
  for (const std::string model : {"gpt", "llama"}) {
    for (const bool bf16 : {false, is_cuda()}) {  // the stand-in has no autocast
      const std::vector<double> wanted = losses_of(model, at::kCPU, bf16);
      const std::vector<double> got = losses_of(model, device(), bf16);
      for (size_t i = 0; i < wanted.size(); ++i) {
        EXPECT_NEAR(got[i], wanted[i], bf16 ? 0.05 : 1e-3) << model << " step " << i;
      }
      EXPECT_LT(got.back(), got.front() - 0.5) << model;
    }
  }
}

ARGOSY_ON_DEVICES(GptOnDevices);

}  // namespace
}  // namespace argosy::text
