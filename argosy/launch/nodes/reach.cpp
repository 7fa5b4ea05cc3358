#include "argosy/launch/nodes/reach.h"

#include <fmt/format.h>

#include <chrono>
#include <string_view>

#include "argosy/base/deadline.h"
#include "argosy/base/strings.h"
#include "argosy/os/addresses.h"
#include "argosy/os/socket.h"

namespace argosy::launch {
namespace {

using namespace std::chrono_literals;

/// Hosts that do not answer at all cost as much each; the rest is not tried when it is used up.
constexpr auto kOne = 1s;
constexpr auto kAll = 3s;

/// A port that the node holds, without anybody listening there: it answers all the same.
uint16_t held_port(const JobPlan& plan, const JobPlan::Node& node) {
  const std::string& endpoint = plan.endpoints.at(static_cast<size_t>(node.first_rank));
  const size_t colon = endpoint.rfind(':');
  return static_cast<uint16_t>(
      strings::parse_int(std::string_view(endpoint).substr(colon + 1)).value_or(0));
}

}  // namespace

std::vector<std::string> find_unreachable(const JobPlan& plan,
                                          int self,
                                          const std::function<bool()>& go_on) {
  std::vector<std::string> lines;
  const Deadline all = Deadline::after(kAll);
  const size_t last = self == 0 ? plan.nodes.size() : 1;
  for (size_t number = self == 0 ? 1 : 0; number < last && !all.expired() && go_on(); ++number) {
    const JobPlan::Node& node = plan.nodes[number];
    if (!os::is_address(node.address)) {
      continue;  // a name server may take its time, and ranks may know other names
    }
    const Status reached =
        os::reach_tcp(node.address, held_port(plan, node), all.sooner(Deadline::after(kOne)));
    if (!reached.ok()) {
      lines.push_back(fmt::format(
          "node {} ({}) says that it is at {}, which cannot be reached from node {}: {}. "
          "The ranks will meet the same: see --host and --ifname there, and firewalls",
          number,
          node.host,
          node.address,
          self,
          reached.failure().what));
    }
  }
  return lines;
}

}  // namespace argosy::launch
