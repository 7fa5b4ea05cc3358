#include "apps/doctor_torch/devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <optional>
#include <utility>

#include <ATen/ATen.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/Exception.h>

#include "argosy/base/strings.h"
#include "argosy/base/text.h"

namespace argosy::doctor {
namespace {

void wait_for(c10::Device device) {
  const c10::impl::VirtualGuardImpl guard(device.type());
  guard.getStream(device).synchronize();
}

/// Seconds that a piece of work takes, from its beginning until the device has done it.
double seconds_of(c10::Device device, int repeats, const std::function<void()>& work) {
  work();  // kernels are loaded, and memory is found
  wait_for(device);
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < repeats; ++i) {
    work();
  }
  wait_for(device);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  return took.count() / repeats;
}

/// Runs steps, each of which returns what it found or throws, until one fails.
DeviceReport run_steps(
    const std::vector<std::pair<std::string, std::function<std::string()>>>& steps,
    const Tell& tell) {
  DeviceReport report;
  for (const auto& [name, step] : steps) {
    try {
      tell(name);
      report.figures.push_back(step());
    } catch (const c10::Error& error) {
      report.wrong = name + ": " + error.what_without_backtrace();
    } catch (const std::exception& error) {
      report.wrong = name + ": " + error.what();
    }
    if (!report.wrong.empty()) {
      report.wrong.erase(std::min(report.wrong.find('\n'), report.wrong.size()));
      break;
    }
  }
  return report;
}

/// Matrices of zeros and ones, so that float32's result is exact in any order of sums, with TF32
/// too; bfloat16's is rounded. Some of its rows are computed here for comparison.
std::string product(c10::Device device, at::ScalarType type, const DeviceWork& work) {
  const int64_t n = work.matrix;
  const at::Tensor a = at::randint(0, 2, {n, n}, at::kFloat);
  const at::Tensor b = at::randint(0, 2, {n, n}, at::kFloat);
  const at::Tensor a_there = a.to(device, type);
  const at::Tensor b_there = b.to(device, type);
  at::Tensor product_there;
  const double seconds =
      seconds_of(device, work.repeats, [&] { product_there = at::mm(a_there, b_there); });
  const int64_t step = std::max<int64_t>(1, n / 16);
  const at::Tensor rows = product_there.cpu().slice(0, 0, n, step).to(at::kFloat);
  const double tolerance = type == at::kFloat ? 0 : 0.02;
  TORCH_CHECK(at::allclose(rows, at::mm(a.slice(0, 0, n, step), b), tolerance, /*atol=*/0),
              "the result is wrong");
  const auto operations =
      2.0 * static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n);
  return fmt::format("{} {:.3g} TFLOP/s",
                     type == at::kFloat ? "float32" : "bfloat16",
                     operations / seconds / 1e12);
}

std::string speed(int64_t bytes, double seconds) {
  return text::bytes(static_cast<double>(bytes) / seconds) + "/s";
}

/// Numbers that are all different.
at::Tensor numbers(const DeviceWork& work) {
  return at::arange(work.copy_bytes / 4, at::kInt);
}

/// Throws unless memory of a device has the numbers.
void check_numbers(const at::Tensor& there, const at::Tensor& numbers) {
  TORCH_CHECK(there.cpu().equal(numbers), "the copy differs");
}

std::string memory(c10::Device device, const DeviceWork& work) {
  const at::Tensor here = numbers(work);
  const at::Tensor from = here.to(device);
  const at::Tensor to = at::zeros_like(from);
  const double seconds = seconds_of(device, work.repeats, [&] { to.copy_(from); });
  check_numbers(to, here);
  return fmt::format("memory {} (read and written)", speed(2 * work.copy_bytes, seconds));
}

/// nullopt: there is none for this device.
std::optional<at::Tensor> pinned(const at::Tensor& here) {
  try {
    return here.pin_memory();
  } catch (const c10::Error&) {
    return std::nullopt;
  }
}

std::string host_copies(c10::Device device, const DeviceWork& work) {
  const at::Tensor here = numbers(work);
  const at::Tensor there = at::zeros_like(here, at::TensorOptions().device(device));
  const at::Tensor back = at::zeros_like(here);
  const auto both_ways = [&](const at::Tensor& out, const at::Tensor& in) {
    const bool late = out.is_pinned();
    const double to = seconds_of(device, work.repeats, [&] { there.copy_(out, late); });
    const double from = seconds_of(device, work.repeats, [&] { in.copy_(there, late); });
    TORCH_CHECK(in.equal(here), "the copy differs");
    return fmt::format(
        "{} to the device, {} from it", speed(work.copy_bytes, to), speed(work.copy_bytes, from));
  };
  std::string text = "the host's memory " + both_ways(here, back);
  if (const auto out = pinned(here)) {
    there.zero_();
    text += ", pinned " + both_ways(*out, pinned(back.zero_()).value_or(back));
  }
  return text;
}

}  // namespace

DeviceReport measure_device(c10::Device device, const Tell& tell, const DeviceWork& work) {
  return run_steps({{"product in float32", [&] { return product(device, at::kFloat, work); }},
                    {"product in bfloat16", [&] { return product(device, at::kBFloat16, work); }},
                    {"copies in its memory", [&] { return memory(device, work); }},
                    {"copies to it and back", [&] { return host_copies(device, work); }}},
                   [&](const std::string& step) {
                     tell(step);
                     c10::impl::VirtualGuardImpl(device.type()).setDevice(device);
                   });
}

DeviceReport measure_pairs(const std::vector<c10::Device>& devices,
                           const Tell& tell,
                           const DeviceWork& work) {
  struct Pair {
    std::string name{};
    double seconds = 0;
  };
  std::vector<Pair> pairs;
  std::vector<std::pair<std::string, std::function<std::string()>>> steps;
  const at::Tensor here = numbers(work);
  for (const c10::Device from : devices) {
    for (const c10::Device to : devices) {
      if (from == to) {
        continue;
      }
      const std::string name = fmt::format("{} to {}", from.str(), to.str());
      steps.emplace_back(name, [&, from, to, name] {
        const at::Tensor there = here.to(from);
        const at::Tensor other = at::zeros_like(here, at::TensorOptions().device(to));
        wait_for(to);
        pairs.push_back({name, seconds_of(from, work.repeats, [&] {
                           other.copy_(there);
                           wait_for(to);
                         })});
        check_numbers(other, here);
        return "";
      });
    }
  }
  DeviceReport report = run_steps(steps, tell);
  report.figures.clear();
  if (report.wrong.empty() && !pairs.empty()) {
    const auto [fast, slow] = std::ranges::minmax_element(pairs, {}, &Pair::seconds);
    report.figures.push_back(fmt::format("{} copies, the fastest {} ({}), the slowest {} ({})",
                                         pairs.size(),
                                         speed(work.copy_bytes, fast->seconds),
                                         fast->name,
                                         speed(work.copy_bytes, slow->seconds),
                                         slow->name));
  }
  return report;
}

DeviceBuild read_build(const std::string& config) {
  DeviceBuild build;
  for (const std::string& line : strings::split(config, '\n')) {
    for (const std::string name : {"CUDA", "HIP"}) {
      const std::string begin = "- " + name + " Runtime ";
      if (const size_t at = line.find(begin); at != std::string::npos) {
        build.runtime = name + " " + line.substr(at + begin.size());
      }
    }
    if (line.find("NVCC architecture flags") == std::string::npos) {
      continue;
    }
    constexpr std::string_view kCode = "code=";
    for (const std::string& flag : strings::split(line, ';')) {
      if (const size_t at = flag.find(kCode); at != std::string::npos) {
        build.architectures.push_back(flag.substr(at + kCode.size()));
      }
    }
  }
  return build;
}

}  // namespace argosy::doctor
