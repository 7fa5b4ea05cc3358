#pragma once

/// Everything of the room: data-parallel training.
#include "argosy/parallel/any_rank.h"
#include "argosy/parallel/data_parallel.h"
#include "argosy/parallel/ddp/comm_hook.h"
#include "argosy/parallel/ddp/distributed_data_parallel.h"
#include "argosy/parallel/ddp/join.h"
#include "argosy/parallel/ddp/options.h"
#include "argosy/parallel/ddp/stats.h"
#include "argosy/parallel/sync_batch_norm.h"
