#pragma once

#include <array>
#include <string>
#include <vector>

#include "argosy/engine/device_program.h"

#include "tests/support/temp_dir.h"

namespace argosy::test {

/// The source of an engine::DeviceProgram as functions of the CPU, compiled when the test runs. The
/// threads of a block run one after the other, each until it waits for the others (__syncthreads).
/// So what a kernel computes is tested without a GPU; how fast, and races, are not.
///
///     EmulatedProgram program(source, {"twice"});
///     program.launch("twice", {2, 64}, data.data(), 100LL);
class EmulatedProgram final {
 public:
  using Grid = engine::DeviceProgram::Grid;

  /// Errors: std::runtime_error with what the compiler says.
  EmulatedProgram(const std::string& source, const std::vector<std::string>& kernels);

  /// `args` as DeviceProgram::launch() takes them.
  template <typename... Args>
  void launch(const std::string& kernel, const Grid& grid, Args... args) const {
    std::array<void*, sizeof...(Args)> addresses{&args...};
    run(kernel, grid, addresses.data());
  }

 private:
  void run(const std::string& kernel, const Grid& grid, void** args) const;

  TempDir folder_;
  void* library_ = nullptr;
};

}  // namespace argosy::test
