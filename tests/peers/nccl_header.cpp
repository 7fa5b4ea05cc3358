// Compiled where NVIDIA's header is found: our declarations against it.
#include <nccl.h>

#include <cstddef>
#include <type_traits>

#include "argosy/transport/nccl/nccl_api.h"

namespace ours = argosy::transport::nccl;

template <typename Ours, typename Theirs>
constexpr bool same(Ours mine, Theirs other) {
  return static_cast<long>(mine) == static_cast<long>(other);
}

static_assert(same(ours::Result::kUnhandledCudaError, ncclUnhandledCudaError));
static_assert(same(ours::Result::kSystemError, ncclSystemError));
static_assert(same(ours::Result::kInternalError, ncclInternalError));
static_assert(same(ours::Result::kInvalidArgument, ncclInvalidArgument));
static_assert(same(ours::Result::kInvalidUsage, ncclInvalidUsage));
static_assert(same(ours::Result::kRemoteError, ncclRemoteError));
static_assert(same(ours::Result::kInProgress, ncclInProgress));
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 30, 0)
static_assert(same(ours::Result::kTimeout, ncclTimeout));
#endif
static_assert(sizeof(ours::Result) == sizeof(ncclResult_t));

static_assert(same(ours::DataType::kInt8, ncclInt8) && same(ours::DataType::kUint8, ncclUint8));
static_assert(same(ours::DataType::kInt32, ncclInt32) && same(ours::DataType::kInt64, ncclInt64));
static_assert(same(ours::DataType::kFloat16, ncclFloat16));
static_assert(same(ours::DataType::kFloat32, ncclFloat32));
static_assert(same(ours::DataType::kFloat64, ncclFloat64));
static_assert(same(ours::DataType::kBfloat16, ncclBfloat16));
static_assert(same(ours::RedOp::kSum, ncclSum) && same(ours::RedOp::kProd, ncclProd));
static_assert(same(ours::RedOp::kMax, ncclMax) && same(ours::RedOp::kMin, ncclMin));
static_assert(same(ours::RedOp::kAvg, ncclAvg));
static_assert(sizeof(ours::DataType) == sizeof(ncclDataType_t));
static_assert(sizeof(ours::RedOp) == sizeof(ncclRedOp_t));

static_assert(sizeof(ours::UniqueId) == sizeof(ncclUniqueId));
static_assert(std::is_standard_layout_v<ours::Config>);
static_assert(offsetof(ours::Config, size) == offsetof(ncclConfig_t, size));
static_assert(offsetof(ours::Config, magic) == offsetof(ncclConfig_t, magic));
static_assert(offsetof(ours::Config, version) == offsetof(ncclConfig_t, version));
static_assert(offsetof(ours::Config, blocking) == offsetof(ncclConfig_t, blocking));
constexpr ncclConfig_t kTheirs = NCCL_CONFIG_INITIALIZER;
static_assert(ours::Config().magic == kTheirs.magic);

// Each function of the table: theirs, with our types in place of theirs.
template <typename Ours, typename Theirs>
constexpr bool is_like = std::is_same_v<Ours, Theirs>;
template <>
constexpr bool is_like<ours::Result, ncclResult_t> = true;
template <>
constexpr bool is_like<ours::DataType, ncclDataType_t> = true;
template <>
constexpr bool is_like<ours::RedOp, ncclRedOp_t> = true;
template <>
constexpr bool is_like<ours::UniqueId, ncclUniqueId> = true;
template <>
constexpr bool is_like<ours::Config, ncclConfig_t> = true;
template <>
constexpr bool is_like<ours::Comm, ncclComm_t> = true;
template <>
constexpr bool is_like<ours::Stream, cudaStream_t> = true;
template <typename Ours, typename Theirs>
constexpr bool is_like<Ours*, Theirs*> = is_like<Ours, Theirs>;
template <typename Ours, typename... OurArguments, typename Theirs, typename... TheirArguments>
constexpr bool is_like<Ours(OurArguments...), Theirs(TheirArguments...)> =
    is_like<Ours, Theirs> && (is_like<OurArguments, TheirArguments> && ...);

// NOLINTNEXTLINE(cppcoreguidelines-macro-usage): names both and their difference
#define IS_LIKE(member, function) is_like<decltype(ours::Api::member), decltype(&(function))>
static_assert(IS_LIKE(get_version, ncclGetVersion));
static_assert(IS_LIKE(get_unique_id, ncclGetUniqueId));
static_assert(IS_LIKE(get_error_string, ncclGetErrorString));
static_assert(IS_LIKE(get_last_error, ncclGetLastError));
static_assert(IS_LIKE(comm_init_rank, ncclCommInitRank));
static_assert(IS_LIKE(comm_init_rank_config, ncclCommInitRankConfig));
static_assert(IS_LIKE(comm_finalize, ncclCommFinalize));
static_assert(IS_LIKE(comm_destroy, ncclCommDestroy));
static_assert(IS_LIKE(comm_abort, ncclCommAbort));
static_assert(IS_LIKE(comm_get_async_error, ncclCommGetAsyncError));
static_assert(IS_LIKE(all_reduce, ncclAllReduce));
static_assert(IS_LIKE(reduce, ncclReduce));
static_assert(IS_LIKE(reduce_scatter, ncclReduceScatter));
static_assert(IS_LIKE(broadcast, ncclBroadcast));
static_assert(IS_LIKE(all_gather, ncclAllGather));
static_assert(IS_LIKE(send, ncclSend));
static_assert(IS_LIKE(recv, ncclRecv));
static_assert(IS_LIKE(group_start, ncclGroupStart));
static_assert(IS_LIKE(group_end, ncclGroupEnd));
static_assert(sizeof(ours::Api) == 19 * sizeof(void*));  // and no others
