/// Which transport init() chooses, as processes. Torch-free.
#include <array>
#include <functional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/comm/backend.h"
#include "argosy/comm/group_state.h"
#include "argosy/comm/init.h"
#include "argosy/comm/test_ranks.h"
#include "argosy/rendezvous/test_store_host.h"

#include "tests/support/error_text.h"
#include "tests/support/temp_dir.h"

namespace argosy::comm {
namespace {

using namespace std::chrono_literals;
using test::set_variable;
using ::testing::HasSubstr;
using transport::DType;
using transport::ReduceOp;
using transport::Transport;

TEST(ChooseBackend, SharedMemoryWhereAllMembersShareAHost) {
  const auto choose = [](int size, const std::vector<int>& members, const std::vector<int>& hosts) {
    const BackendChoice choice = choose_backend(size, members, hosts);
    return choice.backend + ": " + choice.reason;
  };
  EXPECT_EQ(choose(2, {}, {0, 0}), "shm: all 2 ranks are on one host");
  EXPECT_EQ(choose(3, {}, {0, 1, 0}), "hierarchical: its 3 ranks are on 2 hosts");
  EXPECT_EQ(choose(2, {2, 0}, {0, 1, 0}), "shm: all 2 ranks are on one host");
  EXPECT_EQ(choose(2, {0, 1}, {0, 1, 0}), "gloo: its 2 ranks are on 2 hosts");
  EXPECT_EQ(choose(2, {}, {}), "gloo: it is not known which ranks share a host");
  EXPECT_EQ(choose(200, {}, std::vector<int>(200)),
            "gloo: 200 ranks of a host are too many to share memory");
}

TEST(Backends, NameWhatCarriesTheMemoryOfTheHostAndOfDevices) {
  const auto parse = [](const char* name) {
    const Backends backends = Backends::parse(name);
    constexpr std::array kDevices{"through the host", "nccl if there", "nccl"};
    return backends.host + ", " + kDevices.at(static_cast<size_t>(backends.devices));
  };
  EXPECT_EQ(parse("auto"), "auto, nccl if there");
  EXPECT_EQ(parse("gloo"), "gloo, through the host");
  EXPECT_EQ(parse("nccl"), "auto, nccl");
  EXPECT_EQ(parse("rccl"), "auto, nccl");
  EXPECT_EQ(parse("cpu:gloo,cuda:nccl"), "gloo, nccl");
  EXPECT_EQ(parse("cuda:nccl,cpu:shm"), "shm, nccl");
  EXPECT_EQ(parse("hip:rccl"), "auto, nccl");
  EXPECT_EQ(parse("cpu:hierarchical"), "hierarchical, nccl if there");
  EXPECT_EQ(parse("cpu:gloo,cuda:gloo"), "gloo, through the host");
}

TEST(Backends, OfDevicesKnowTheirMode) {
  set_variable("ARGOSY_NCCL_MODE", "Exact");
  EXPECT_TRUE(device_backend(ForDevices::kNccl));
  set_variable("ARGOSY_NCCL_MODE", "fast");
  EXPECT_THAT(test::error_text<ConfigError>([] { (void)connect({.size = 1}); }),
              HasSubstr("expected native or exact, got \"fast\""));
  set_variable("ARGOSY_NCCL_MODE", "");
}

/// What carries the operations of a group, after one.
std::string transport_of(const Group& group) {
  std::string name;
  int64_t value = 1;
  group.state().run({.op = "all_reduce"}, {}, [&](Transport& transport, const Deadline& deadline) {
    transport.all_reduce(&value, 1, DType::kI64, ReduceOp::kSum, deadline.remaining());
    name = transport.name();
  });
  EXPECT_EQ(value, group.size());
  return name;
}

class InitBackend : public ::testing::Test {
 protected:
  /// Three ranks; `body` has the options that make them a job.
  void run(const std::function<void(int, InitOptions)>& body) {
    test::run_ranks(3,
                    [&](int rank) {
                      body(rank,
                           {.init_method = "file://" + (folder_.path() / "store").string(),
                            .timeout = 30s,
                            .rank = rank,
                            .world_size = 3});
                    },
                    {.mode = test::RankMode::kProcesses, .deadline = 50s});
  }
  test::TempDir folder_;
};

TEST_F(InitBackend, OneHostSharesMemoryAndSoDoItsGroups) {
  run([](int rank, const InitOptions& options) {
    const Group world = init(options);
    EXPECT_EQ(transport_of(world), "shm");
    const Group pair = world.new_group({2, 0});
    if (rank != 1) {
      EXPECT_EQ(transport_of(pair), "shm");
    }
  });
}

TEST_F(InitBackend, TheVariableChoosesAndTheOptionGoesBeforeIt) {
  run([](int /*rank*/, InitOptions options) {
    set_variable("ARGOSY_BACKEND", "gloo");
    {
      const Group world = init(options);
      EXPECT_EQ(transport_of(world), "gloo");
      EXPECT_EQ(transport_of(world.new_group({0, 1, 2})), "gloo");
    }
    options.init_method += "2";
    options.backend = "shm";
    EXPECT_EQ(transport_of(init(options)), "shm");
  });
}

TEST_F(InitBackend, DifferentVariablesAreNamed) {
  run([](int rank, const InitOptions& options) {
    set_variable("ARGOSY_BACKEND", rank == 1 ? "gloo" : "shm");
    try {
      (void)init(options);
      ADD_FAILURE() << "the ranks disagree";
    } catch (const ConfigError& error) {
      EXPECT_THAT(error.what(), HasSubstr("rank 1 has backend gloo and checked mode off, rank 0"));
      EXPECT_THAT(error.what(), HasSubstr("ARGOSY_BACKEND"));
    }
  });
}

TEST_F(InitBackend, AWordThatIsNoneIsRefusedBeforeAnybodyWaits) {
  run([](int /*rank*/, const InitOptions& options) {
    set_variable("ARGOSY_BACKEND", "smh");
    try {
      (void)init(options);
      ADD_FAILURE() << "expected an error";
    } catch (const ConfigError& error) {
      EXPECT_THAT(error.what(), HasSubstr("ARGOSY_BACKEND: expected auto, shm"));
    }
  });
}

}  // namespace
}  // namespace argosy::comm
