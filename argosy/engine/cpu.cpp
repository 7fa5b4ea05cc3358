#include "argosy/engine/cpu.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <set>

#include <ATen/Parallel.h>
#include <ATen/Version.h>

#include "argosy/base/env.h"
#include "argosy/base/error.h"
#include "argosy/base/log.h"
#include "argosy/base/strings.h"
#include "argosy/os/cpu.h"

namespace argosy::engine {
namespace {

// The file that the process-wide sgemm_ comes from: the one that libtorch is bound to as well.
std::string loaded_blas() {
  Dl_info info{};
  void* const sgemm = ::dlsym(RTLD_DEFAULT, "sgemm_");
  if (sgemm == nullptr || ::dladdr(sgemm, &info) == 0 || info.dli_fname == nullptr) {
    return "";
  }
  char* const real = ::realpath(info.dli_fname, nullptr);
  std::string path = real != nullptr ? real : info.dli_fname;
  std::free(real);
  return path;
}

/// OpenBLAS's own word; empty: it has none.
std::string openblas_kernels() {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): what dlsym is for
  auto* const name =
      reinterpret_cast<const char* (*)()>(::dlsym(RTLD_DEFAULT, "openblas_get_corename"));
  return name == nullptr ? "" : name();
}

Blas blas_in_use() {
  static const Blas blas = classify_blas(loaded_blas());
  return blas;
}

/// Whether the environment leaves oneDNN the instructions that a name of its settings contains.
bool onednn_may_use(std::string_view instructions) {
  for (const char* name : {"DNNL_MAX_CPU_ISA", "ONEDNN_MAX_CPU_ISA"}) {
    const std::string most = strings::to_lower(env::get(name).value_or("default"));
    if (most != "default" && most != "all" && most.find(instructions) == std::string::npos) {
      return false;
    }
  }
  return true;
}

FastProducts find_fast_products() {
  const os::Cpu cpu = os::usable_cpu();
  const std::string most = strings::to_lower(env::get("ATEN_CPU_CAPABILITY").value_or("avx512"));
  return {.f32 = cpu.avx512 && most == "avx512" && onednn_may_use("avx512") &&
                 blas_in_use() != Blas::kReference && !openblas_chooses_by_model(),
          .bf16 = os::has_cpu_flag("amx_bf16") && onednn_may_use("amx")};
}

bool keep_memory() {
  const std::string mode = strings::to_lower(env::get("ARGOSY_MALLOC").value_or("keep"));
  if (mode != "keep" && mode != "huge" && mode != "default") {
    throw ConfigError(
        "engine.setup_cpu",
        fmt::format("ARGOSY_MALLOC: expected \"keep\", \"huge\" or \"default\", got \"{}\"", mode));
  }
  if (mode == "default") {
    return false;
  }
  const std::string tunables = env::get("GLIBC_TUNABLES").value_or("");
  if (mode == "huge" && tunables.find("glibc.malloc.hugetlb=1") == std::string::npos) {
    log::warn(
        "[engine.setup_cpu] ARGOSY_MALLOC=huge has no effect: GLIBC_TUNABLES is \"{}\". glibc "
        "looks "
        "there for glibc.malloc.hugetlb=1 when a program starts; `argosy launch` sets it where the "
        "variable is empty.",
        tunables);
  }
  // 32 MiB is the most that glibc takes. M_MMAP_MAX = 0 would keep larger blocks as well, but
  // aligned allocation leaves holes beside each (glibc before 2.38): 192 MB of live tensors grew
  // to 1.1 GB.
  // NOLINTNEXTLINE(concurrency-mt-unsafe): glibc's takes its own lock
  return ::mallopt(M_MMAP_THRESHOLD, 32 << 20) == 1 && ::mallopt(M_TRIM_THRESHOLD, INT_MAX) == 1;
}

CpuSetup set_up(const CpuOptions& options) {
  CpuSetup setup;
  const std::optional<int> given = omp_num_threads(env::get("OMP_NUM_THREADS").value_or(""));
  setup.threads_given =
      given.has_value() && env::get("OMP_NUM_THREADS") != env::get("ARGOSY_OMP_NUM_THREADS");
  const int share = std::max(1, os::usable_cpu().cores / std::max(1, options.local_world_size));
  setup.intra_op_threads = given ? *given : std::min(at::get_num_threads(), share);
  at::set_num_threads(setup.intra_op_threads);
  setup.memory_kept = keep_memory();
  setup.blas_library = loaded_blas();
  setup.blas = blas_in_use();
  if (openblas_chooses_by_model()) {
    setup.guessed_kernels = openblas_kernels();
  }
  const std::string advice = blas_advice(setup);
  if (!advice.empty() && options.local_rank == 0) {
    log::warn("{}", advice);
  }
  return setup;
}

}  // namespace

std::optional<int> omp_num_threads(std::string_view value) {
  if (value.empty()) {
    return std::nullopt;
  }
  // OpenMP allows a list, a number for each level of nesting; the first is the outermost.
  const std::string_view first = value.substr(0, value.find(','));
  const std::optional<int64_t> threads = strings::parse_int(std::string(strings::trim(first)));
  if (!threads || *threads < 1 || *threads > 4096) {
    throw ConfigError(
        "engine.setup_cpu",
        fmt::format("OMP_NUM_THREADS: expected a number of threads from 1 to 4096, got "
                    "\"{}\". Correct or unset it.",
                    value));
  }
  return static_cast<int>(*threads);
}

void use_threads(int threads) {
  static std::atomic<int> ours{0};  // what an earlier call has set
  const CpuSetup& setup = setup_cpu();
  const int now = at::get_num_threads();
  if (!setup.threads_given && (now == setup.intra_op_threads || now == ours)) {
    ours = threads > 0 ? threads : setup.intra_op_threads;
    at::set_num_threads(ours);
  }
}

std::string kernels_in_use() {
  const std::string config = at::show_config();
  constexpr std::string_view kTitle = "CPU capability usage: ";
  const size_t found = config.find(kTitle);
  const size_t begin = found == std::string::npos ? config.size() : found + kTitle.size();
  std::string kernels = fmt::format("{} thread{}, {}",
                                    at::get_num_threads(),
                                    at::get_num_threads() == 1 ? "" : "s",
                                    config.substr(begin, config.find('\n', begin) - begin));
  if (fast_products().f32 || fast_products().bf16) {
    kernels += fmt::format(", products in{}{}",
                           fast_products().f32 ? " AVX-512" : "",
                           fast_products().bf16 ? " AMX" : "");
  }
  for (const char* name : {"DNNL_MAX_CPU_ISA", "OPENBLAS_CORETYPE"}) {
    if (const std::optional<std::string> set = env::get(name)) {
      kernels += fmt::format(", {}={}", name, *set);
    }
  }
  return kernels;
}

const FastProducts& fast_products() {
  static const FastProducts found = find_fast_products();
  return found;
}

bool bf16_products_need_room() {
  static const bool needed = os::usable_cpu().avx512 && onednn_may_use("avx512") &&
                             !os::has_cpu_flag("avx512_bf16") && !os::has_cpu_flag("amx_bf16");
  return needed;
}

bool bf16_products_lose_bits() {
  static const bool lost = !os::usable_cpu().avx512 || !onednn_may_use("avx512");
  return lost;
}

bool openblas_chooses_by_model() {
  return blas_in_use() == Blas::kOpenBlas && os::usable_cpu().avx512 &&
         !env::get("OPENBLAS_CORETYPE").has_value();
}

void release_free_memory() {
  if (setup_cpu().memory_kept) {
    ::malloc_trim(0);
  }
}

std::string_view to_string(Blas blas) {
  switch (blas) {
    case Blas::kReference:
      return "reference";
    case Blas::kOpenBlas:
      return "OpenBLAS";
    case Blas::kMkl:
      return "MKL";
    case Blas::kBlis:
      return "BLIS";
    case Blas::kAtlas:
      return "ATLAS";
    case Blas::kUnknown:
      break;
  }
  return "unknown";
}

Blas classify_blas(std::string_view path) {
  const std::string text = strings::to_lower(path);
  const auto has = [&](std::string_view part) { return text.find(part) != std::string::npos; };
  if (has("openblas")) {
    return Blas::kOpenBlas;
  }
  if (has("mkl")) {
    return Blas::kMkl;
  }
  if (has("blis")) {
    return Blas::kBlis;
  }
  if (has("atlas")) {
    return Blas::kAtlas;
  }
  // Debian: /usr/lib/<triplet>/blas/libblas.so.3.11.0. libtorch_cpu with a BLAS inside is unknown.
  return has("/libblas.so") ? Blas::kReference : Blas::kUnknown;
}

std::string blas_advice(const CpuSetup& setup) {
  if (setup.blas == Blas::kReference) {
    return fmt::format(
        "matrix products run on the reference BLAS ({}), 10 to 40 times slower than OpenBLAS. "
        "Run: apt-get install libopenblas0-openmp",
        setup.blas_library);
  }
  const std::set<std::string_view> fitting{"", "SkylakeX", "Cooperlake", "SapphireRapids"};
  if (!fitting.contains(setup.guessed_kernels)) {
    return fmt::format(
        "matrix products may take a multiple of their time: OpenBLAS computes as for {}, and this "
        "processor has AVX-512. Start the program by argosy launch, one process too, or with "
        "OPENBLAS_CORETYPE=SKYLAKEX",
        setup.guessed_kernels);
  }
  return "";
}

const CpuSetup& setup_cpu(const CpuOptions& options) {
  static std::mutex mutex;
  static std::unique_ptr<const CpuSetup> done;
  const std::lock_guard lock(mutex);
  if (done == nullptr) {
    done = std::make_unique<const CpuSetup>(set_up(options));
  }
  return *done;
}

}  // namespace argosy::engine
