#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "argosy/launch/log_layout.h"
#include "argosy/launch/options/given_options.h"
#include "argosy/os/topology.h"

/// Reads the values that users write for options.
/// Errors of all: UsageError that names the option or variable as it was written, what was
/// expected, and what was given.
namespace argosy::launch::values {

[[noreturn]] void bad(const Given& given, std::string_view expected);

[[nodiscard]] int64_t integer(const Given& given, int64_t low, int64_t high);
/// Reads "0,2" or "0, 2".
[[nodiscard]] std::vector<int> numbers(const Given& given);
/// Reads "apple,orange". ",," stands for a comma.
[[nodiscard]] std::vector<std::string> texts(const Given& given);
/// Reads "3" or "0:3,1:1".
[[nodiscard]] StreamChoice streams(const Given& given);
[[nodiscard]] bool truth(const Given& given);
/// True if a switch was given and not switched off.
[[nodiscard]] bool is_on(const GivenOptions& given, std::string_view key);
[[nodiscard]] std::chrono::milliseconds seconds(const Given& given);
/// Reads "NAME=VALUE".
[[nodiscard]] std::pair<std::string, std::string> assignment(const Given& given);
/// Reads "2" or "2:2". A real range is refused, because it is for jobs that grow and shrink.
[[nodiscard]] int node_count(const Given& given);

struct HostPort {
  std::string host{};
  uint16_t port = 0;  ///< 0: not given
};
/// Reads "host", "host:29500" or "[::1]:29500".
[[nodiscard]] HostPort endpoint(const Given& given);
/// Reads "a:1,b:2,b:3".
[[nodiscard]] std::vector<HostPort> endpoints(const Given& given);
/// Reads "a,b". Each host may stand there once.
[[nodiscard]] std::vector<std::string> hosts(const Given& given);
/// Reads our words, and those of torchrun's --numa_binding.
[[nodiscard]] os::CpuBinding cpu_binding(const Given& given);
/// Reads "default", "avx2" or "avx512".
[[nodiscard]] std::string cpu_capability(const Given& given);

}  // namespace argosy::launch::values
