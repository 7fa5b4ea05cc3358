#pragma once

/// Everything of the room: measures that are exact over ranks.
#include "argosy/metrics/accuracy.h"
#include "argosy/metrics/any_metric.h"
#include "argosy/metrics/auc.h"
#include "argosy/metrics/class_measure.h"
#include "argosy/metrics/confusion_matrix.h"
#include "argosy/metrics/evaluate.h"
#include "argosy/metrics/mean_error.h"
#include "argosy/metrics/mean_loss.h"
#include "argosy/metrics/perplexity.h"
#include "argosy/metrics/throughput.h"
