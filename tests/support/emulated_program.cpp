#include "tests/support/emulated_program.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace argosy::test {
namespace {

/// What a compiler of CUDA knows by itself, and kDevicePrelude.
constexpr const char* kBefore = R"(
#include <ucontext.h>
#include <cmath>
#include <functional>
#include <memory>
#include <utility>
#include <vector>
#include "argosy/transport/float16.h"
using argosy::transport::bf16_bits;
using argosy::transport::bf16_value;
using argosy::transport::f16_bits;
using argosy::transport::f16_value;
using std::fmaf;
using std::sqrt;
#define __global__
#define __shared__ static
#define __device__
#define __forceinline__ inline
#define __restrict__
#define __launch_bounds__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))
struct Place { unsigned x, y; };
static Place blockIdx, threadIdx, blockDim, gridDim;
/// A block's threads take turns: each runs until it waits for the others.
struct Thread {
  ucontext_t context;
  std::vector<char> stack = std::vector<char>(256 << 10);
  Place place;
  bool ended = false;
};
static ucontext_t between;
static Thread* running;
static const std::function<void()>* body;
static void __syncthreads() { swapcontext(&running->context, &between); }
static void run_thread() {
  (*body)();
  running->ended = true;
}
static void run_block(const std::function<void()>& kernel) {
  body = &kernel;
  std::vector<std::unique_ptr<Thread>> threads;
  for (unsigned y = 0; y < blockDim.y; ++y)
    for (unsigned x = 0; x < blockDim.x; ++x) {
      threads.push_back(std::make_unique<Thread>());
      Thread& one = *threads.back();
      one.place = {x, y};
      getcontext(&one.context);
      one.context.uc_stack.ss_sp = one.stack.data();
      one.context.uc_stack.ss_size = one.stack.size();
      one.context.uc_link = &between;
      makecontext(&one.context, run_thread, 0);
    }
  for (bool all_ended = false; !all_ended;) {
    all_ended = true;
    for (const auto& one : threads)
      if (!one->ended) {
        running = one.get();
        threadIdx = one->place;
        swapcontext(&between, &one->context);
        all_ended = all_ended && one->ended;
      }
  }
}
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
      run_block([&] { call(kernel, args, std::index_sequence_for<Args...>()); });
}
)";

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

EmulatedProgram::EmulatedProgram(const std::string& source,
                                 const std::vector<std::string>& kernels) {
  const std::string base = (folder_.path() / "program").string();
  std::ofstream file(base + ".cpp");
  file << kBefore << source;
  for (const std::string& name : kernels) {
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
