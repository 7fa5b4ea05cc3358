#pragma once

/// Everything that a training program uses. Link argosy::argosy.
#include "argosy/comm/comm.h"
#include "argosy/data/data.h"
#include "argosy/engine/seed.h"
#include "argosy/engine/summary.h"
#include "argosy/engine/torch_file.h"
#include "argosy/events/jsonl_writer.h"
#include "argosy/events/progress_bar.h"
#include "argosy/events/table.h"
#include "argosy/fleet/fleet.h"
#include "argosy/fleet/progress.h"
#include "argosy/loss/loss.h"
#include "argosy/metrics/metrics.h"
#include "argosy/optim/optim.h"
#include "argosy/parallel/parallel.h"
#include "argosy/vision/vision.h"
