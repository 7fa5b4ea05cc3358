#include <argosy/argosy.h>
#include <fmt/ranges.h>

#include <chrono>
#include <cstdio>
#include <vector>

#include <ATen/Version.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/torch.h>

#include "argosy/base/catalogue.h"
#include "argosy/base/error.h"
#include "argosy/comm/device_queues.h"
#include "argosy/engine/cpu.h"
#include "argosy/engine/device.h"
#include "argosy/engine/version.h"
#include "argosy/transport/nccl/library.h"

#include "apps/doctor_torch/devices.h"
#include "apps/torch_commands.h"
#include <nlohmann/json.hpp>

namespace argosy::apps {
namespace {

/// A line for `argosy doctor`, at once: it may have to say how far this process came.
void say(const nlohmann::json& what) {
  fmt::print("doctor {}\n", what.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  std::fflush(stdout);
}

nlohmann::json finding(const std::string& subject,
                       const std::string& verdict,
                       const std::string& text,
                       const std::string& advice = {}) {
  return {{"subject", subject}, {"verdict", verdict}, {"text", text}, {"advice", advice}};
}

doctor::Tell tell_of(const std::string& subject) {
  return [subject](const std::string& step) {
    fmt::print("doctor tries {}: {}\n", subject, step);
    std::fflush(stdout);
  };
}

/// True if all is well.
bool say_report(const std::string& subject,
                const doctor::DeviceReport& report,
                const std::string& advice) {
  const bool well = report.wrong.empty();
  const std::string figures = fmt::format("{}", fmt::join(report.figures, ", "));
  say(finding(subject, well ? "fine" : "bad", well ? figures : report.wrong, well ? "" : advice));
  return well;
}

/// With the places of the devices, in the order of their numbers here, which may not be that of the
/// driver.
void say_libtorch(const std::vector<c10::Device>& devices) {
  const doctor::DeviceBuild build = doctor::read_build(at::show_config());
  // show_config() leaves CUDA out where it sees no GPU.
  const bool has_gpus = !build.runtime.empty() || c10::impl::hasDeviceGuardImpl(c10::kCUDA);
  const std::string text = fmt::format("{}, {}{}{}{}",
                                       engine::torch_version(),
                                       !build.runtime.empty() ? build.runtime
                                       : has_gpus             ? "with CUDA or ROCm"
                                                              : "without CUDA or ROCm",
                                       build.architectures.empty() ? "" : " for ",
                                       fmt::join(build.architectures, ", "),
                                       devices.empty() ? "; it sees no GPU" : "");
  nlohmann::json said =
      !devices.empty() ? finding("libtorch", "fine", text)
      : has_gpus
          ? finding("libtorch",
                    "bad",
                    text,
                    "is the driver too old for it? argosy-torch doctor-devices")
          : finding("libtorch",
                    "note",
                    text,
                    "training takes the CPU; see " + docs_page("docs/guides/accelerators.md"));
  if (has_gpus) {
    said["addresses"] = nlohmann::json::array();
  }
  for (const c10::Device device : devices) {
    said["addresses"].push_back(comm::queues_of(device)->address());
  }
  say(said);
}

void say_nccl() {
  tell_of("NCCL")("loading it");
  try {
    say(finding("NCCL", "fine", transport::nccl::Library::load()->description()));
  } catch (const ConfigError& error) {
    say(finding("NCCL",
                "note",
                error.what(),
                "without it what GPUs exchange goes through the host's memory: install libnccl2 or "
                "RCCL, or set ARGOSY_NCCL_LIBRARY"));
  }
}

bool weights_agree(torch::nn::Module& model, const comm::Group& world) {
  for (const torch::Tensor& weight : model.parameters()) {
    const torch::Tensor low = weight.detach().clone();
    const torch::Tensor high = weight.detach().clone();
    comm::all_reduce(low, world, {.op = transport::ReduceOp::kMin});
    comm::all_reduce(high, world, {.op = transport::ReduceOp::kMax});
    if (!torch::equal(low, high)) {
      return false;
    }
  }
  return true;
}

}  // namespace

int doctor_training(const program::Words& /*args*/) {
  constexpr int kSteps = 30;
  const auto start = std::chrono::steady_clock::now();
  comm::Group world = comm::init();
  torch::manual_seed(world.rank());  // the ranks begin with different weights: DDP has work to do
  auto net = torch::nn::Sequential(torch::nn::Conv2d(torch::nn::Conv2dOptions(1, 8, 3).padding(1)),
                                   torch::nn::ReLU(),
                                   torch::nn::Flatten(),
                                   torch::nn::Linear(8 * 8 * 8, 10));
  parallel::DistributedDataParallel model(net, world);
  optim::Adam optimizer(model, {.lr = 1e-2});
  const torch::Tensor images = torch::randn({32, 1, 8, 8});
  const torch::Tensor labels = images.flatten(1).slice(1, 0, 10).argmax(1);
  double first = 0;
  double last = 0;
  for (int step = 0; step < kSteps; ++step) {
    const torch::Tensor loss = torch::nn::functional::cross_entropy(model(images), labels);
    loss.backward();
    optimizer.step();
    optimizer.zero_grad();
    (step == 0 ? first : last) = loss.item<double>();
  }
  const bool agree = weights_agree(*net, world);
  const engine::CpuSetup& cpu = engine::setup_cpu();
  if (world.rank() == 0) {
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    const nlohmann::json said{{"ranks", world.size()},
                              {"steps", kSteps},
                              {"seconds", took.count()},
                              {"first_loss", first},
                              {"last_loss", last},
                              {"agree", agree},
                              {"libtorch", engine::torch_version()},
                              {"blas", engine::to_string(cpu.blas)},
                              {"blas_advice", engine::blas_advice(cpu)},
                              {"threads", cpu.intra_op_threads}};
    say(said);
  }
  return agree ? 0 : 1;
}

int doctor_devices(const program::Words& /*args*/) {
  tell_of("libtorch")("looking for GPUs");
  const auto type = engine::accelerator();
  std::vector<c10::Device> devices;
  for (int index = 0; type && index < engine::device_count(*type); ++index) {
    devices.emplace_back(*type, static_cast<c10::DeviceIndex>(index));
  }
  say_libtorch(devices);
  std::vector<c10::Device> well;
  for (const c10::Device device : devices) {
    const std::string subject = fmt::format("GPU {}", device.index());
    if (say_report(subject,
                   doctor::measure_device(device, tell_of(subject)),
                   "leave it out by CUDA_VISIBLE_DEVICES (HIP_VISIBLE_DEVICES), or see who uses "
                   "it; dmesg and the vendor's tool say more")) {
      well.push_back(device);
    }
  }
  if (well.size() > 1) {
    const std::string subject = "between GPUs";
    say_report(subject,
               doctor::measure_pairs(well, tell_of(subject)),
               "an IOMMU or ACS that is on is the usual cause; NCCL_P2P_DISABLE=1 avoids these "
               "copies");
  }
  if (!devices.empty()) {
    say_nccl();
  }
  return 0;
}

}  // namespace argosy::apps
