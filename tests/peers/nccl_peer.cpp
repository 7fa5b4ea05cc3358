/// What a real libnccl.so.2 says where there is no GPU, as far as our declarations of it can be
/// wrong: its functions, version, words for errors, what it makes of our Config. Prints a line for
/// each library; exit code 1: one is not as expected.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "argosy/base/error.h"
#include "argosy/transport/nccl/library.h"

namespace argosy::transport::nccl {
namespace {

int wrong = 0;

void expect(bool holds, const std::string& library, const std::string& what) {
  if (!holds) {
    fmt::print("{}: {}\n", library, what);
    ++wrong;
  }
}

void check(const std::string& path) {
  const auto library = Library::load(path);
  const Api& api = library->api();
  const std::string& name = library->description();
  const auto words = [&](Result result) { return std::string(api.get_error_string(result)); };
  for (const auto& [result, beginning] : {std::pair(Result::kSuccess, "no error"),
                                          {Result::kUnhandledCudaError, "unhandled cuda error"},
                                          {Result::kSystemError, "unhandled system error"},
                                          {Result::kInternalError, "internal error"},
                                          {Result::kInvalidArgument, "invalid argument"},
                                          {Result::kInvalidUsage, "invalid usage"},
                                          {Result::kRemoteError, "remote process exited"}}) {
    expect(words(result).starts_with(beginning), name, "an error is called " + words(result));
  }
  UniqueId id{};
  expect(api.get_unique_id(&id) == Result::kSuccess, name, "makes no id");
  expect(
      std::ranges::any_of(id.internal, [](char byte) { return byte != 0; }), name, "an empty id");
  float value = 0;
  const Result reduced =
      api.all_reduce(&value, &value, 1, DataType::kFloat32, RedOp::kSum, nullptr, nullptr);
  expect(reduced != Result::kSuccess, name, "takes an all_reduce without a communicator");
  bool looked = false;
  Comm comm = nullptr;
  const Result made = api.comm_init_rank(&comm, 1, id, 0);
  if (library->is_non_blocking()) {
    Config good, bad;
    bad.magic = 1;
    const Result with_good = api.comm_init_rank_config(&comm, 1, id, 0, &good);
    const Result with_bad = api.comm_init_rank_config(&comm, 1, id, 0, &bad);
    expect(with_good == made, name, "makes something else of our Config than of none");
    // Without a GPU they may say so before they look at a Config: that then shows nothing.
    looked = with_bad != made;
    expect(!looked || with_bad == Result::kInvalidArgument, name, "takes a bad Config");
    expect(with_good != Result::kInvalidArgument, name, "does not take our Config");
    expect(words(Result::kInProgress) == "NCCL operation in progress", name, "has no progress");
  }
  fmt::print("{}: {}, without a GPU: {}; {} our Config\n",
             name,
             library->is_non_blocking() ? "does not block" : "blocks",
             words(made),
             looked ? "takes" : "did not look at");
}

}  // namespace
}  // namespace argosy::transport::nccl

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    try {
      argosy::transport::nccl::check(argv[i]);
    } catch (const argosy::Error& error) {
      fmt::print("{}: {}\n", argv[i], error.what());
      ++argosy::transport::nccl::wrong;
    }
  }
  return argosy::transport::nccl::wrong == 0 ? 0 : 1;
}
