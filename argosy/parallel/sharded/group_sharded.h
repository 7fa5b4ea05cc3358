#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "argosy/base/check.h"
#include "argosy/comm/group.h"
#include "argosy/optim/grad_scaler.h"
#include "argosy/optim/optimizer.h"
#include "argosy/parallel/ddp/distributed_data_parallel.h"

namespace argosy::parallel {

/// Names and defaults are Paddle's.
struct GroupShardedOptions {
  std::optional<optim::GradScaler> scaler{};
  /// Copy rank 0's buffers to all ranks before each forward in training: see
  /// DdpOptions::broadcast_buffers.
  bool sync_buffers = false;
  int64_t buffer_max_size = int64_t{1} << 23;  ///< bytes of gradients that are reduced together
  /// Bytes of parameters that are gathered together at least, of "p_g_os": see
  /// ShardOptions::unit_bytes.
  int64_t segment_size = int64_t{1} << 20;
  /// Of "p_g_os": a folder in whose files the optimizer's state lies. Paddle's is a bool.
  std::optional<Offload> offload{};
};

/// What group_sharded_parallel() returns: the model, optimizer and scaler to train with.
template <typename M>
struct GroupSharded {
  DistributedDataParallel<M> model;
  optim::Optimizer optimizer;
  std::optional<optim::GradScaler> scaler;
};

/// Wraps a model so that ranks divide what it takes to train it (ZeRO), in Paddle's words.
///
///     auto [model, optimizer, scaler] =
///         parallel::group_sharded_parallel(net, optim::AdamW(net, {.lr = 3e-4}), "p_g_os", world);
///
/// | level    | divided                        | by                             |
/// | "os"     | the optimizer's state (1)      | DivideOptions::divide_state    |
/// | "os_g"   | and gradients (2)              | DivideOptions::scatter_gradients |
/// | "p_g_os" | and parameters (3)             | fully_shard()                  |
///
/// All levels have the bits of DistributedDataParallel. On the CPUs of one host, "os" and "os_g"
/// divide steps in shared memory: the state exists once, and gradients are averaged in place.
/// Paddle's "os" is "os_g".
/// Collective. Errors: UsageError for another level, and as DistributedDataParallel, divide_step()
/// and fully_shard().
/// Source: paddle.distributed.sharding.group_sharded_parallel, 3.3.
template <typename M>
[[nodiscard]] GroupSharded<M> group_sharded_parallel(M model,
                                                     const optim::Optimizer& optimizer,
                                                     const std::string& level,
                                                     const comm::Group& group,
                                                     const GroupShardedOptions& options = {}) {
  constexpr const char* kGroupSharded = "parallel.group_sharded_parallel";
  ARGOSY_CHECK(level == "os" || level == "os_g" || level == "p_g_os",
               kGroupSharded,
               R"(level: expected "os", "os_g" or "p_g_os", got "{}")",
               level);
  const bool divides_parameters = level == "p_g_os";
  ARGOSY_CHECK(!options.offload.has_value() || divides_parameters,
               kGroupSharded,
               "offload is for the level \"p_g_os\", got \"{}\"",
               level);
  DdpOptions wrapping{.bucket_cap_bytes = options.buffer_max_size,
                      .broadcast_buffers = options.sync_buffers};
  if (divides_parameters) {
    wrapping.shard = ShardOptions{.unit_bytes = options.segment_size, .offload = options.offload};
  }
  GroupSharded<M> sharded{
      DistributedDataParallel<M>(std::move(model), group, wrapping), optimizer, options.scaler};
  (void)sharded.model.divide_step(
      optimizer, {.divide_state = level == "os", .scatter_gradients = level == "os_g"});
  return sharded;
}

}  // namespace argosy::parallel
