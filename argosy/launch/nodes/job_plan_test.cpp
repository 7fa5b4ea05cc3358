#include "argosy/launch/nodes/job_plan.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"

namespace argosy::launch {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

NodeInfo node(int number, int ranks = 2) {
  NodeInfo info{.host = "h" + std::to_string(number),
                .address = "10.0.0." + std::to_string(number),
                .pid = 100 + number,
                .ranks = ranks,
                .nodes = 3,
                .master_port = static_cast<uint16_t>(4000 + number),
                .version = "1"};
  for (int i = 0; i < ranks; ++i) {
    info.endpoint_ports.push_back(static_cast<uint16_t>(5000 + 10 * number + i));
  }
  return info;
}

JobPlan plan_of(const std::vector<NodeInfo>& nodes) {
  return make_plan({nodes.begin(), nodes.end()}, "r");
}

TEST(JobPlan, NodesAreNumberedAsTheyComeAndMayDifferInSize) {
  const JobPlan plan = make_plan({node(3, 1), node(1, 3), node(2, 2)}, "run-1");
  ASSERT_EQ(plan.refusal, "");
  EXPECT_EQ(plan.world_size(), 6);
  EXPECT_EQ(plan.master_host, "10.0.0.3");
  EXPECT_EQ(plan.master_port, 4003);
  EXPECT_EQ(plan.nodes[1].first_rank, 1);
  EXPECT_EQ(plan.nodes[2].first_rank, 4);
  EXPECT_THAT(plan.endpoints,
              ElementsAre("10.0.0.3:5030",
                          "10.0.0.1:5010",
                          "10.0.0.1:5011",
                          "10.0.0.1:5012",
                          "10.0.0.2:5020",
                          "10.0.0.2:5021"));
  for (const auto& [rank, expected] :
       std::vector<std::pair<int, int>>{{0, 0}, {1, 1}, {3, 1}, {4, 2}}) {
    EXPECT_EQ(plan.node_of(rank), expected) << rank;
  }
}

TEST(JobPlan, WhoAsksForARankGetsItTheOthersWhatIsLeft) {
  std::vector<NodeInfo> nodes{node(1), node(2), node(3)};
  nodes[0].wanted_rank = 2;
  nodes[2].wanted_rank = 0;
  const JobPlan plan = plan_of(nodes);
  EXPECT_EQ(plan.nodes[0].host, "h3");
  EXPECT_EQ(plan.nodes[1].host, "h2");
  EXPECT_EQ(plan.nodes[2].host, "h1");
  EXPECT_THAT(plan.node_of_arrival, ElementsAre(2, 1, 0));
}

TEST(JobPlan, AnAgreedListOfAddressesNumbersTheNodes) {
  std::vector<NodeInfo> nodes{node(1), node(2), node(3)};
  for (NodeInfo& info : nodes) {
    info.ips = {"10.0.0.2", "10.0.0.3", "10.0.0.1"};
  }
  EXPECT_EQ(plan_of(nodes).nodes[0].host, "h2");
  EXPECT_EQ(plan_of(nodes).nodes[2].host, "h1");
}

TEST(JobPlan, ContradictionsAreNamed) {
  std::vector<NodeInfo> nodes{node(1), node(2), node(3)};
  nodes[1].nodes = 2;
  EXPECT_EQ(plan_of(nodes).refusal,
            "h1 (10.0.0.1, pid 101) was told of 3 nodes, h2 (10.0.0.2, pid 102) of 2");
  nodes[1].nodes = 3;
  nodes[0].ips = {"10.0.0.1", "10.0.0.2", "10.0.0.3"};
  nodes[1].ips = {"10.0.0.2", "10.0.0.1", "10.0.0.3"};
  EXPECT_THAT(
      plan_of(nodes).refusal,
      HasSubstr("was given --ips 10.0.0.1,10.0.0.2,10.0.0.3, h2 (10.0.0.2, pid 102) was "
                "given --ips 10.0.0.2,10.0.0.1,10.0.0.3: the same list, in the same order"));
  nodes[0].ips = nodes[1].ips = {};
  nodes[0].ranks = 3;
  EXPECT_EQ(plan_of(nodes).refusal, "");  // ours may differ
  nodes[2].same_ranks = true;
  EXPECT_THAT(plan_of(nodes).refusal,
              HasSubstr("h1 (10.0.0.1, pid 101) starts 3 ranks, h3 (10.0.0.3, pid 103) starts 2: "
                        "torchrun's programs expect the same number"));
  nodes[0].ranks = 1;
  nodes[2].same_ranks = false;
  nodes[0].wanted_rank = nodes[2].wanted_rank = 1;
  EXPECT_EQ(plan_of(nodes).refusal,
            "node rank 1 is asked for twice: by h1 (10.0.0.1, pid 101) and by h3 (10.0.0.3, pid "
            "103)");
  nodes[2].wanted_rank = 3;
  EXPECT_THAT(plan_of(nodes).refusal, HasSubstr("node rank 3 of a job of 3 nodes"));
  nodes[2].wanted_rank = -1;
  nodes[2].job_id = "night";
  EXPECT_THAT(plan_of(nodes).refusal,
              HasSubstr("belongs to job \"\", h3 (10.0.0.3, pid 103) to \"night\""));
  nodes[2].job_id = "";
  nodes[2].version = "2";
  EXPECT_THAT(plan_of(nodes).refusal, HasSubstr("install the same version"));
}

TEST(JobPlan, AJobWithServersHasServersAndWorkersSomewhere) {
  const auto plan = [](int servers_of_first, int servers_of_second) {
    std::vector<NodeInfo> nodes{node(1), node(2)};
    nodes[0].servers = servers_of_first;
    nodes[1].servers = servers_of_second;
    return plan_of(nodes);
  };
  EXPECT_EQ(plan(2, 0).refusal, "");
  EXPECT_EQ(plan(2, 0).nodes[0].servers, 2);
  EXPECT_EQ(plan(-1, -1).refusal, "");
  EXPECT_EQ(plan(0, 0).refusal, "none of 2 nodes starts a server: see --server_num");
  EXPECT_EQ(plan(2, 2).refusal, "none of 2 nodes starts a worker: see --worker_num");
  EXPECT_THAT(plan(1, -1).refusal, HasSubstr("give --run_mode ps to all nodes or to none"));
}

TEST(JobPlan, WhoWentAgainHasNoPartInIt) {
  NodeInfo far = node(4, 1);
  far.address = "fd00::4";
  far.grace_ms = 700;
  const JobPlan plan = make_plan({node(2, 1), std::nullopt, far}, "r");
  EXPECT_THAT(plan.node_of_arrival, ElementsAre(0, -1, 1));
  EXPECT_THAT(plan.endpoints, ElementsAre("10.0.0.2:5020", "[fd00::4]:5040"));
  EXPECT_EQ(plan.grace_ms, 700);
}

TEST(JobPlan, TravelsAsText) {
  const JobPlan plan = make_plan({node(3, 1), node(1, 3), node(2)}, "run \"1\"");
  const JobPlan back = JobPlan::from_json(plan.to_json());
  EXPECT_EQ(back.to_json(), plan.to_json());
  EXPECT_EQ(back.run_id, "run \"1\"");
  const NodeInfo info = NodeInfo::from_json(node(2).to_json());
  EXPECT_EQ(info.endpoint_ports, node(2).endpoint_ports);
  EXPECT_THROW((void)JobPlan::from_json("{}"), RendezvousError);
  EXPECT_THROW((void)NodeInfo::from_json("no json"), RendezvousError);
}

}  // namespace
}  // namespace argosy::launch
