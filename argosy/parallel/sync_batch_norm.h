#pragma once

#include "argosy/engine/synced_norm.h"
#include "argosy/parallel/convert_sync_batchnorm.h"

// Batch norm over the batches of all ranks together, for small batches per rank.
namespace argosy::parallel {

/// torch::nn::BatchNorm1d, 2d and 3d whose statistics can be those of all ranks, after
/// convert_sync_batchnorm(). Write them where your network has libtorch's. Parameters, buffers and
/// their names are the same.
using SyncBatchNorm1d = engine::BatchNorm1d;
using SyncBatchNorm2d = engine::BatchNorm2d;
using SyncBatchNorm3d = engine::BatchNorm3d;

}  // namespace argosy::parallel
