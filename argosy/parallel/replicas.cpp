#include "argosy/parallel/replicas.h"

#include <algorithm>
#include <exception>
#include <future>
#include <mutex>
#include <string>
#include <utility>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ThreadLocalState.h>
#include <ATen/ops/cat.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/util/Exception.h>
#include <torch/csrc/autograd/grad_mode.h>
#include <torch/csrc/autograd/variable.h>

#include "argosy/base/check.h"
#include "argosy/base/text.h"
#include "argosy/engine/autocast.h"
#include "argosy/engine/device.h"
#include "argosy/engine/synced_norm.h"

namespace argosy::parallel {
namespace {

constexpr int64_t kMostReplicas = 1024;

/// Making a clone initialises its weights first: the program's random numbers stay where they were.
class KeptGenerator final {
 public:
  KeptGenerator() : generator_(at::detail::getDefaultCPUGenerator()) {
    const std::lock_guard<std::mutex> lock(generator_.mutex());
    state_ = generator_.get_state();
  }
  ~KeptGenerator() {
    const std::lock_guard<std::mutex> lock(generator_.mutex());
    generator_.set_state(state_);
  }
  KeptGenerator(const KeptGenerator&) = delete;
  KeptGenerator& operator=(const KeptGenerator&) = delete;

 private:
  at::Generator generator_;
  at::Tensor state_;
};

std::vector<at::Device> devices_for(const torch::nn::Module& module,
                                    const DataParallelOptions& options) {
  ARGOSY_CHECK(options.replicas >= 0 && options.replicas <= kMostReplicas,
               "parallel.DataParallel",
               "replicas must be 0 to {}, got {}",
               kMostReplicas,
               options.replicas);
  ARGOSY_CHECK(options.devices.empty() || options.replicas == 0,
               "parallel.DataParallel",
               "give devices or replicas, not both: there is one replica for each device");
  const at::Device own = engine::device_of(module);
  std::vector<at::Device> devices = options.devices;
  if (devices.empty() && options.replicas == 0 && !own.is_cpu()) {
    devices.push_back(own);
    const at::DeviceIndex count = c10::impl::getDeviceGuardImpl(own.type())->deviceCount();
    for (at::DeviceIndex i = 0; i < count; ++i) {
      if (const at::Device other(own.type(), i); other != own) {
        devices.push_back(other);
      }
    }
  }
  if (devices.empty()) {
    devices.assign(static_cast<size_t>(std::max<int64_t>(options.replicas, 1)), own);
  }
  for (const auto& parameter : module.named_parameters()) {
    ARGOSY_CHECK(parameter.value().device() == devices[0],
                 "parallel.DataParallel",
                 "parameter \"{}\" is on {}, the first device is {}: module->to(device) first",
                 parameter.key(),
                 parameter.value().device().str(),
                 devices[0].str());
  }
  return devices;
}

void check_norms(const torch::nn::Module& module) {
  for (const auto& part : module.named_modules()) {
    const auto* norm = dynamic_cast<const engine::SyncedNorm*>(part.value().get());
    ARGOSY_CHECK(norm == nullptr || norm->peers() == nullptr,
                 "parallel.DataParallel",
                 "\"{}\" takes its statistics over ranks (convert_sync_batchnorm): the replicas of "
                 "a process would wait for each other. Use DistributedDataParallel alone",
                 part.key());
  }
}

std::shared_ptr<torch::nn::Module> clone_of(const torch::nn::Module& module, at::Device device) {
  std::shared_ptr<torch::nn::Module> clone;
  try {
    clone = module.clone(device);
  } catch (const c10::Error& error) {
    const std::string said = error.what_without_backtrace();
    throw UsageError("parallel.DataParallel",
                     fmt::format("the module {} cannot be cloned: {}. Derive from "
                                 "torch::nn::Cloneable and register everything in reset()",
                                 module.name(),
                                 said.substr(0, said.find('\n'))));
  }
  ARGOSY_CHECK(
      clone->named_parameters().keys() == module.named_parameters().keys() &&
          clone->named_buffers().keys() == module.named_buffers().keys() &&
          clone->modules().size() == module.modules().size(),
      "parallel.DataParallel",
      "a clone of {} has other parameters, buffers or submodules than the module: register "
      "everything in reset()",
      module.name());
  return clone;
}

/// Makes `own` stand for `original` on its device: the same values, and gradients that flow there.
void point_at(const at::Tensor& own, const at::Tensor& original, at::Device device) {
  const at::Tensor moved = original.to(device);  // a node of the graph, or the original itself
  torch::autograd::impl::set_gradient_edge(own, {});
  own.set_requires_grad(original.requires_grad());
  at::Tensor(own).set_data(moved.detach());
  if (moved.requires_grad()) {
    torch::autograd::impl::set_gradient_edge(own, torch::autograd::impl::gradient_edge(moved));
  }
}

/// This thread's current streams on the devices of a batch and of the replicas, each once.
std::vector<c10::Stream> streams_of(const at::Tensor& input,
                                    const std::vector<at::Device>& devices) {
  std::vector<at::Device> all = devices;
  all.push_back(input.device());
  std::vector<c10::Stream> streams;
  for (const at::Device& device : all) {
    if (device.is_cpu()) {
      continue;
    }
    const c10::Stream stream = c10::impl::getDeviceGuardImpl(device.type())->getStream(device);
    if (std::ranges::find(streams, stream) == streams.end()) {
      streams.push_back(stream);
    }
  }
  return streams;
}

}  // namespace

Replicas::Replicas(std::shared_ptr<torch::nn::Module> module, const DataParallelOptions& options) {
  ARGOSY_CHECK(module != nullptr, "parallel.DataParallel", "the module is empty");
  devices_ = devices_for(*module, options);
  check_norms(*module);
  const KeptGenerator kept;
  modules_.push_back(std::move(module));
  while (modules_.size() < devices_.size()) {
    modules_.push_back(clone_of(*modules_[0], devices_[modules_.size()]));
  }
  if (modules_.size() > 1) {
    threads_ = std::make_unique<ThreadPool>(modules_.size() - 1, "replica");
  }
}

void Replicas::point_at_originals(size_t replica) {
  const torch::nn::Module& original = *modules_[0];
  torch::nn::Module& own = *modules_[replica];
  const auto modules = original.modules();
  const auto own_modules = own.modules();
  for (size_t i = 0; i < modules.size(); ++i) {  // parents come first
    if (own_modules[i]->is_training() != modules[i]->is_training()) {
      own_modules[i]->train(modules[i]->is_training());
    }
  }
  const auto parameters = original.named_parameters();
  for (const auto& parameter : own.named_parameters()) {
    point_at(parameter.value(), parameters[parameter.key()], devices_[replica]);
  }
  const torch::NoGradGuard no_grad;
  const auto buffers = original.named_buffers();
  for (const auto& buffer : own.named_buffers()) {
    buffer.value().copy_(buffers[buffer.key()]);
  }
}

at::Tensor Replicas::checked_forward(size_t replica,
                                     const std::vector<at::Tensor>& parts,
                                     const Forward& forward) const {
  int64_t first = 0;
  for (size_t i = 0; i < replica; ++i) {
    first += parts[i].size(0);
  }
  auto named = [&](const std::string& what) {
    return fmt::format("replica {} of {} on {} (samples {} to {}): {}",
                       replica,
                       parts.size(),
                       devices_[replica].str(),
                       first,
                       first + parts[replica].size(0) - 1,
                       what);
  };
  at::Tensor output;
  try {
    output = forward(replica, parts[replica].to(devices_[replica]));
  } catch (const UsageError& error) {
    throw UsageError("parallel.DataParallel", named(error.what()));
  } catch (const c10::Error& error) {
    throw Error("parallel.DataParallel", named(error.what_without_backtrace()));
  } catch (const std::exception& error) {
    throw Error("parallel.DataParallel", named(error.what()));
  }
  ARGOSY_CHECK(output.defined() && output.dim() > 0 && output.size(0) == parts[replica].size(0),
               "parallel.DataParallel",
               "{}",
               named(fmt::format("expected an output with {} rows, one for each sample, got {}",
                                 parts[replica].size(0),
                                 text::shape(output))));
  return output;
}

at::Tensor Replicas::run(const at::Tensor& input, const Forward& forward) {
  ARGOSY_CHECK(input.defined() && input.dim() > 0,
               "parallel.DataParallel",
               "expected a batch, whose first size is the samples, got {}",
               input.defined() ? "a tensor without dimensions" : "an undefined tensor");
  const std::vector<at::Tensor> parts = input.chunk(static_cast<int64_t>(size()));
  for (size_t i = 1; i < parts.size(); ++i) {
    point_at_originals(i);
  }
  const at::ThreadLocalState state;  // gradients on or off
  const engine::AutocastState precision;
  const std::vector<c10::Stream> streams = streams_of(input, devices_);
  std::vector<std::future<at::Tensor>> others;
  for (size_t i = 1; i < parts.size(); ++i) {
    others.push_back(threads_->submit([&, i] {
      const at::ThreadLocalStateGuard guard(state);
      const engine::AutocastStateGuard same_precision(precision);
      const c10::MultiStreamGuard same_order(streams);
      const c10::DeviceGuard there(devices_[i]);
      return checked_forward(i, parts, forward);
    }));
  }
  std::vector<at::Tensor> outputs(parts.size());
  std::exception_ptr failure;
  for (size_t i = 0; i < parts.size(); ++i) {  // all must have ended before anything is thrown
    try {
      outputs[i] = i == 0 ? checked_forward(0, parts, forward) : others[i - 1].get();
      outputs[i] = outputs[i].to(devices_[0]);
    } catch (...) {
      failure = failure != nullptr ? failure : std::current_exception();
    }
  }
  if (failure != nullptr) {
    std::rethrow_exception(failure);
  }
  return outputs.size() == 1 ? outputs[0] : at::cat(outputs, 0);
}

}  // namespace argosy::parallel
