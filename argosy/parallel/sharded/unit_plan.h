#pragma once

#include "argosy/parallel/ddp/buckets.h"
#include "argosy/parallel/ddp/options.h"
#include "argosy/parallel/ddp/parameter_table.h"

namespace torch::nn {
class Module;
}

namespace argosy::parallel::sharded {

/// Groups the parameters of a model that are gathered together, as the options say. The last units
/// come first, for that is the order of backward.
/// Errors: UsageError for a name of options.units that no module has.
[[nodiscard]] ddp::BucketPlan plan_units(const torch::nn::Module& module,
                                         const ddp::ParameterTable& table,
                                         const ShardOptions& options);

}  // namespace argosy::parallel::sharded
