#pragma once

#include <cstddef>

// Internal to the room.
namespace argosy::transport::nccl {

// The part of NCCL's interface that is used here, as its versions 2.10 and later have it, and RCCL,
// which takes over its names. Compared with NVIDIA's by tests/peers/nccl_*.cpp.

using Comm = struct Communicator_*;

enum class Result : int {
  kSuccess = 0,
  kUnhandledCudaError = 1,
  kSystemError = 2,
  kInternalError = 3,
  kInvalidArgument = 4,
  kInvalidUsage = 5,
  kRemoteError = 6,  ///< since 2.13
  kInProgress = 7,   ///< since 2.14
  kTimeout = 8,      ///< since 2.30
};
enum class DataType : int {
  kInt8 = 0,
  kUint8 = 1,
  kInt32 = 2,
  kInt64 = 4,
  kFloat16 = 6,
  kFloat32 = 7,
  kFloat64 = 8,
  kBfloat16 = 9,
};
enum class RedOp : int { kSum = 0, kProd = 1, kMax = 2, kMin = 3, kAvg = 4 };

struct UniqueId {
  char internal[128];
};

/// What a communicator is to be. NCCL takes its own default for all that a version before its own
/// could not say, so this one, of 2.14, suits all later ones.
struct Config {
  size_t size = sizeof(Config);
  unsigned int magic = 0xcafebeef;
  unsigned int version = 21400;
  int blocking = 0;
};

using Stream = void*;  ///< cudaStream_t or hipStream_t

/// The functions of a library. Those that a version may lack are null there.
struct Api {
  Result (*get_version)(int* version) = nullptr;
  Result (*get_unique_id)(UniqueId* id) = nullptr;
  const char* (*get_error_string)(Result result) = nullptr;
  const char* (*get_last_error)(Comm comm) = nullptr;  ///< since 2.13
  Result (*comm_init_rank)(Comm* comm, int ranks, UniqueId id, int rank) = nullptr;
  Result (*comm_init_rank_config)(Comm* comm, int ranks, UniqueId id, int rank, Config* config) =
      nullptr;                                   ///< since 2.14
  Result (*comm_finalize)(Comm comm) = nullptr;  ///< since 2.14
  Result (*comm_destroy)(Comm comm) = nullptr;
  Result (*comm_abort)(Comm comm) = nullptr;
  Result (*comm_get_async_error)(Comm comm, Result* error) = nullptr;
  Result (*all_reduce)(const void* from, void* to, size_t count, DataType, RedOp, Comm, Stream) =
      nullptr;
  Result (*reduce)(
      const void* from, void* to, size_t count, DataType, RedOp, int root, Comm, Stream) = nullptr;
  Result (*reduce_scatter)(
      const void* from, void* to, size_t count, DataType, RedOp, Comm, Stream) = nullptr;
  Result (*broadcast)(const void* from, void* to, size_t count, DataType, int root, Comm, Stream) =
      nullptr;
  Result (*all_gather)(const void* from, void* to, size_t count, DataType, Comm, Stream) = nullptr;
  Result (*send)(const void* from, size_t count, DataType, int peer, Comm, Stream) = nullptr;
  Result (*recv)(void* to, size_t count, DataType, int peer, Comm, Stream) = nullptr;
  Result (*group_start)() = nullptr;
  Result (*group_end)() = nullptr;
};

}  // namespace argosy::transport::nccl
