#include "argosy/checkpoint/together.h"

#include <fmt/format.h>

#include <exception>
#include <vector>

#include "argosy/base/error.h"
#include "argosy/comm/collectives.h"

namespace argosy::checkpoint {

void together(const comm::Group& group,
              const char* where,
              const std::string& path,
              const std::function<void()>& work,
              Who who) {
  if (!group.valid() || group.size() == 1) {
    work();
    return;
  }
  std::string failure;
  if (who == Who::kAll || group.rank() == 0) {
    try {
      work();
    } catch (const std::exception& error) {  // of any kind: the others wait below
      failure = error.what();
      if (failure.empty()) {
        failure = "an exception without a text";
      }
    }
  }
  const std::vector<std::string> all = comm::all_gather_object(failure, group);
  for (size_t rank = 0; rank < all.size(); ++rank) {
    if (!all[rank].empty()) {
      throw CheckpointError(where, fmt::format("rank {} failed: {}", rank, all[rank]), {path});
    }
  }
}

}  // namespace argosy::checkpoint
