#pragma once

/// Everything of the room: data-parallel training, meshes, recomputation, less traffic.
#include "argosy/parallel/any_rank.h"
#include "argosy/parallel/data_parallel.h"
#include "argosy/parallel/ddp/comm_hook.h"
#include "argosy/parallel/ddp/distributed_data_parallel.h"
#include "argosy/parallel/ddp/join.h"
#include "argosy/parallel/ddp/options.h"
#include "argosy/parallel/ddp/stats.h"
#include "argosy/parallel/estimate.h"
#include "argosy/parallel/mesh.h"
#include "argosy/parallel/recompute.h"
#include "argosy/parallel/recompute_blocks.h"
#include "argosy/parallel/sharded/fully_shard.h"
#include "argosy/parallel/sharded/group_sharded.h"
#include "argosy/parallel/sync_batch_norm.h"
#include "argosy/parallel/traffic/compress.h"
#include "argosy/parallel/traffic/train_apart.h"
