#include "argosy/transport/nccl/library.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <vector>

#include "argosy/base/env.h"
#include "argosy/base/error.h"

namespace argosy::transport::nccl {
namespace {

constexpr const char* kNvidias = "libnccl.so.2";
constexpr const char* kAmds = "librccl.so.1";
constexpr int kOldest = 21000;
/// Versions 2.14 to 2.26 promise it too. But from 2.19 on a communicator in progress points into
/// the memory of the thread that called, which may have ended.
constexpr int kFirstNonBlocking = 22700;
/// NCCL counts up to 2.8 in another way.
constexpr int kFirstOfFiveDigits = 20900;

/// Reads `symbol` into a pointer of a table; leaves null what is not there.
template <typename F>
void find(void* handle, const char* symbol, F*& function) {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): what dlsym is for
  function = reinterpret_cast<F*>(dlsym(handle, symbol));
}

Api functions_of(void* handle) {
  Api api;
  find(handle, "ncclGetVersion", api.get_version);
  find(handle, "ncclGetUniqueId", api.get_unique_id);
  find(handle, "ncclGetErrorString", api.get_error_string);
  find(handle, "ncclGetLastError", api.get_last_error);
  find(handle, "ncclCommInitRank", api.comm_init_rank);
  find(handle, "ncclCommInitRankConfig", api.comm_init_rank_config);
  find(handle, "ncclCommFinalize", api.comm_finalize);
  find(handle, "ncclCommDestroy", api.comm_destroy);
  find(handle, "ncclCommAbort", api.comm_abort);
  find(handle, "ncclCommGetAsyncError", api.comm_get_async_error);
  find(handle, "ncclAllReduce", api.all_reduce);
  find(handle, "ncclReduce", api.reduce);
  find(handle, "ncclReduceScatter", api.reduce_scatter);
  find(handle, "ncclBroadcast", api.broadcast);
  find(handle, "ncclAllGather", api.all_gather);
  find(handle, "ncclSend", api.send);
  find(handle, "ncclRecv", api.recv);
  find(handle, "ncclGroupStart", api.group_start);
  find(handle, "ncclGroupEnd", api.group_end);
  return api;
}

/// Those that every version has.
bool is_complete(const Api& api) {
  return api.get_version != nullptr && api.get_unique_id != nullptr &&
         api.get_error_string != nullptr && api.comm_init_rank != nullptr &&
         api.comm_destroy != nullptr && api.comm_abort != nullptr &&
         api.comm_get_async_error != nullptr && api.all_reduce != nullptr &&
         api.reduce != nullptr && api.reduce_scatter != nullptr && api.broadcast != nullptr &&
         api.all_gather != nullptr && api.send != nullptr && api.recv != nullptr &&
         api.group_start != nullptr && api.group_end != nullptr;
}

std::string path_of(const Api& api, const std::string& name) {
  Dl_info info{};
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): as dladdr wants it
  const bool known = dladdr(reinterpret_cast<const void*>(api.get_version), &info) != 0;
  return known && info.dli_fname != nullptr ? info.dli_fname : name;
}

}  // namespace

std::string version_text(int version) {
  const int major = version / 10000;
  return fmt::format("{}.{}.{}", major, version / 100 % 100, version % 100);
}

std::vector<std::string> Library::missing() const {
  std::vector<std::string> lacks;
  if (!is_non_blocking()) {
    lacks.emplace_back(
        "calls wait for the other ranks the first time (not since 2.27, unless NCCL_COMM_BLOCKING "
        "is "
        "set)");
  }
  if (api_.get_last_error == nullptr) {
    lacks.emplace_back("errors come without details (since 2.13)");
  }
  return lacks;
}

std::shared_ptr<const Library> Library::load(const std::string& name) {
  std::vector<std::string> names;
  const std::string given = name.empty() ? env::get("ARGOSY_NCCL_LIBRARY").value_or("") : name;
  if (!given.empty()) {
    names = {given};
  } else {
    // A machine for AMD's GPUs may have NVIDIA's library too, of some package.
    const bool hip = dlsym(RTLD_DEFAULT, "hipGetDeviceCount") != nullptr;
    names =
        hip ? std::vector<std::string>{kAmds, kNvidias} : std::vector<std::string>{kNvidias, kAmds};
  }
  std::vector<std::string> tried;
  // First what is in the process, which libtorch uses; two of them would not know of each other.
  for (const int mode : {RTLD_NOW | RTLD_NOLOAD, RTLD_NOW | RTLD_LOCAL}) {
    for (const std::string& candidate : names) {
      void* const handle = dlopen(candidate.c_str(), mode);
      if (handle == nullptr) {
        if ((mode & RTLD_NOLOAD) == 0) {
          // NOLINTNEXTLINE(concurrency-mt-unsafe): glibc's is per thread
          const char* const why = dlerror();
          tried.push_back(why != nullptr ? why : candidate);
        }
        continue;
      }
      std::shared_ptr<Library> library(new Library());
      library->api_ = functions_of(handle);
      if (!is_complete(library->api_)) {
        tried.push_back(candidate + " lacks functions of NCCL");
        continue;
      }
      if (library->api_.get_version(&library->version_) != Result::kSuccess ||
          (library->version_ < kOldest)) {
        tried.push_back(
            fmt::format("{} is of version {}{}, older than 2.10",
                        candidate,
                        library->version_,
                        library->version_ < kFirstOfFiveDigits ? " (as it counts)" : ""));
        continue;
      }
      const bool blocks = env::get("NCCL_COMM_BLOCKING") == "1";
      if (library->version_ < kFirstNonBlocking || blocks) {  // whatever its symbols are
        library->api_.comm_init_rank_config = nullptr;
        library->api_.comm_finalize = nullptr;
      }
      library->description_ = fmt::format(
          "NCCL {} ({})", version_text(library->version_), path_of(library->api_, candidate));
      return library;
    }
  }
  throw ConfigError("transport.nccl",
                    fmt::format("no library of NCCL or RCCL was found ({}). Install libnccl2, or "
                                "set ARGOSY_NCCL_LIBRARY to the file, such as "
                                "site-packages/nvidia/nccl/lib/libnccl.so.2.",
                                fmt::join(tried, "; ")));
}

}  // namespace argosy::transport::nccl
