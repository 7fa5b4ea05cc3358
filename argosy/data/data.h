#pragma once

/// Everything of room data: samplers, data sets, collate, DataLoader.
#include "argosy/data/batch_sampler.h"
#include "argosy/data/bucket_batch_sampler.h"
#include "argosy/data/cache.h"
#include "argosy/data/collate.h"
#include "argosy/data/concat.h"
#include "argosy/data/data_loader.h"
#include "argosy/data/dataset.h"
#include "argosy/data/iterable_dataset.h"
#include "argosy/data/map.h"
#include "argosy/data/random.h"
#include "argosy/data/sampler.h"
#include "argosy/data/subset.h"
#include "argosy/data/tensor_dataset.h"
#include "argosy/data/zip.h"
