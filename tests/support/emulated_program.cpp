#include "tests/support/emulated_program.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <stdexcept>

namespace argosy::test {
namespace {

/// What a compiler of CUDA knows by itself, and kDevicePrelude.
constexpr const char* kBefore = R"(
#include <cmath>
#include <tuple>
#include <utility>
#include "argosy/transport/float16.h"
using argosy::transport::bf16_bits;
using argosy::transport::bf16_value;
using argosy::transport::f16_bits;
using argosy::transport::f16_value;
#define __global__
#define __device__
#define __forceinline__ inline
#define __restrict__
#define __launch_bounds__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))
struct Place { unsigned x, y; };
static Place blockIdx, threadIdx, blockDim, gridDim;
template <typename... Args, std::size_t... I>
void call(void (*kernel)(Args...), void** args, std::index_sequence<I...>) {
  kernel(*static_cast<Args*>(args[I])...);
}
template <typename... Args>
void run_all(void (*kernel)(Args...), const unsigned* grid, void** args) {
  gridDim = {grid[0], grid[2]};
  blockDim = {grid[1], grid[3]};
  for (blockIdx.y = 0; blockIdx.y < gridDim.y; ++blockIdx.y)
    for (blockIdx.x = 0; blockIdx.x < gridDim.x; ++blockIdx.x)
      for (threadIdx.y = 0; threadIdx.y < blockDim.y; ++threadIdx.y)
        for (threadIdx.x = 0; threadIdx.x < blockDim.x; ++threadIdx.x)
          call(kernel, args, std::index_sequence_for<Args...>());
}
)";

std::set<std::string> kernels_in(const std::string& source) {
  static const std::regex kernel(R"(__global__\s+void\s+(\w+)\s*\()");
  std::set<std::string> names;
  for (auto i = std::sregex_iterator(source.begin(), source.end(), kernel);
       i != std::sregex_iterator();
       ++i) {
    names.insert((*i)[1]);
  }
  return names;
}

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

EmulatedProgram::EmulatedProgram(const std::string& source) {
  const std::string base = (folder_.path() / "program").string();
  std::ofstream file(base + ".cpp");
  file << kBefore << source;
  for (const std::string& name : kernels_in(source)) {
    file << fmt::format(
        "extern \"C\" void emulated_{0}(const unsigned* grid, void** args) {{ run_all({0}, grid, "
        "args); }}\n",
        name);
  }
  file.close();
  const std::string command = fmt::format(
      "{0} -std=c++17 -O0 -ffp-contract=off -w -shared -fPIC -I{1} -o {2}.so {2}.cpp 2> {2}.log",
      ARGOSY_TEST_COMPILER,
      ARGOSY_TEST_ROOT,
      base);
  // NOLINTNEXTLINE(cert-env33-c,concurrency-mt-unsafe): the compiler, on text of our own
  const bool compiled = std::system(command.c_str()) == 0;
  library_ = compiled ? ::dlopen((base + ".so").c_str(), RTLD_NOW | RTLD_LOCAL) : nullptr;
  if (library_ == nullptr) {
    throw std::runtime_error(command + "\n" + text_of(base + ".log"));
  }
}

void EmulatedProgram::run(const std::string& kernel, const Grid& grid, void** args) const {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): what dlsym is for
  const auto function = reinterpret_cast<void (*)(const unsigned*, void**)>(
      ::dlsym(library_, ("emulated_" + kernel).c_str()));
  if (function == nullptr) {
    throw std::runtime_error("no kernel is called " + kernel);
  }
  const std::array<unsigned, 4> sizes{grid.blocks, grid.threads, grid.blocks_y, grid.threads_y};
  function(sizes.data(), args);
}

}  // namespace argosy::test
