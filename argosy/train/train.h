#pragma once

/// Everything of the room: the trainer and its callbacks.
#include "argosy/train/amp.h"
#include "argosy/train/callbacks/boards.h"
#include "argosy/train/callbacks/early_stopping.h"
#include "argosy/train/callbacks/gradient_monitor.h"
#include "argosy/train/callbacks/keep_in_checkpoint.h"
#include "argosy/train/callbacks/layer_inspector.h"
#include "argosy/train/callbacks/loggers.h"
#include "argosy/train/callbacks/lr_scheduler.h"
#include "argosy/train/callbacks/model_checkpoint.h"
#include "argosy/train/callbacks/prog_bar_logger.h"
#include "argosy/train/callbacks/reduce_lr_on_plateau.h"
#include "argosy/train/callbacks/timeline_logger.h"
#include "argosy/train/model.h"
