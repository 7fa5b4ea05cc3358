#include "argosy/comm/backend.h"

#include "argosy/base/error.h"
#include "argosy/transport/gloo/gloo.h"
#include "argosy/transport/in_process.h"

namespace argosy::comm {
namespace {

std::unique_ptr<transport::Transport> in_process(const TransportRequest& request) {
  return transport::make_in_process(request.store,
                                    request.rank,
                                    request.size,
                                    {.group = request.group,
                                     .world_ranks = request.world_ranks,
                                     .job = request.job,
                                     .timeout = request.timeout});
}

std::unique_ptr<transport::Transport> gloo(const TransportRequest& request) {
  return transport::make_gloo(request.store,
                              request.rank,
                              request.size,
                              {.group = request.group,
                               .world_ranks = request.world_ranks,
                               .job = request.job,
                               .timeout = request.timeout});
}

}  // namespace

TransportFactory find_backend(const std::string& name) {
  if (name == "auto" || name == "gloo") {
    return gloo;
  }
  if (name == "in_process") {
    return in_process;
  }
  throw UsageError("comm.init",
                   "backend \"" + name + "\" does not exist: expected auto, gloo or in_process" +
                       (name == "nccl" ? " (nccl is not built yet)." : "."));
}

}  // namespace argosy::comm
