#include "argosy/fleet/served.h"

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include <ATen/Functions.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/loss.h>

#include "argosy/base/error.h"
#include "argosy/optim/optim.h"
#include "argosy/ps/embedding.h"

#include "tests/support/error_text.h"
#include "tests/support/owned_port.h"
#include "tests/support/run_ranks.h"
#include "tests/support/temp_dir.h"

namespace argosy::fleet {
namespace {

using namespace std::chrono_literals;
using test::error_text;
using testing::HasSubstr;

struct Rows : torch::nn::Module {
  Rows()
      : rows(register_module("rows", ps::Embedding(options()))),
        bias(register_parameter("bias", at::zeros(1))) {}
  static ps::EmbeddingOptions options() {
    return {
        .dim = 2, .rule = ps::naive(), .lr = 1, .statistics = true, .shrink = {.delete_score = 0}};
  }
  ps::Embedding rows;
  at::Tensor bias;
};

/// A step that takes one from each weight of ids 0 and 1.
void train_step(Rows& net, optim::Optimizer& optimizer) {
  (net.rows(at::arange(2, at::kLong)).sum() + net.bias.sum()).backward();
  optimizer.step();
}

at::Tensor first_rows(Rows& net) {
  const at::NoGradGuard no_grad;
  return net.rows(at::arange(2, at::kLong));
}

void use_server(uint16_t port, const ps::TrainingOptions& options) {
  init(UserDefinedRoleMaker{.role = Role::kServer,
                            .server_endpoints = {"127.0.0.1:" + std::to_string(port)}},
       options);
  Rows net;
  const auto optimizer = distributed_optimizer(optim::SGD(net, {.lr = 1}), net);
  EXPECT_TRUE(is_server());
  EXPECT_EQ(server_index(), 0);
  EXPECT_EQ(worker_index(), -1);
  EXPECT_THAT(error_text<UsageError>([] { run_server(); }), HasSubstr("call init_server() first"));
  EXPECT_THAT(error_text<UsageError>([] { init_worker(); }),
              HasSubstr("this process is a server: it is for workers"));
  init_server();
  run_server();
  EXPECT_FALSE(is_initialized());
}

void use_worker(uint16_t port,
                const ps::TrainingOptions& options,
                const std::string& load,
                const std::string& save) {
  init(UserDefinedRoleMaker{.server_endpoints = {"127.0.0.1:" + std::to_string(port)}}, options);
  EXPECT_TRUE(is_worker());
  EXPECT_TRUE(is_first_worker());
  EXPECT_EQ(worker_num() * 10 + server_num(), 11);
  EXPECT_THAT(error_text<UsageError>([] { (void)group(); }),
              HasSubstr("a job with servers has no group of collectives"));
  EXPECT_THAT(error_text<UsageError>([] { init(); }), HasSubstr("called twice"));
  EXPECT_THAT(error_text<UsageError>([] { init_worker(); }),
              HasSubstr("call distributed_optimizer(optimizer, model) first"));
  Rows net;
  optim::Optimizer optimizer = distributed_optimizer(optim::SGD(net, {.lr = 1}), net);
  EXPECT_THAT(error_text<UsageError>([&] { optimizer.step(); }),
              HasSubstr("call init_worker() first"));
  if (!load.empty()) {
    load_model(load);
  }
  init_worker();
  const at::Tensor before = first_rows(net);
  EXPECT_NEAR(before.mean().item<double>(), load.empty() ? 0 : -3, 1e-3);
  for (int step = 0; step < 3; ++step) {
    train_step(net, optimizer);
  }
  EXPECT_TRUE(first_rows(net).allclose(before - 3));
  set_date(1);
  shrink();
  barrier_worker();
  print_table_stat();
  save_persistables(save);
  EXPECT_THAT(error_text<UsageError>([&] { load_model(save); }), HasSubstr("before init_worker()"));
  stop_worker();
  EXPECT_FALSE(is_initialized());
}

TEST(FleetWithServers, SavesWhatAnotherJobBeginsWith) {
  const test::TempDir directory;
  const std::string first = (directory.path() / "first").string();
  // One in kSync, and others that begin with its checkpoint in other modes.
  const std::vector<ps::TrainingOptions> all{
      {},
      {},
      a_sync(),
      a_sync({.k_steps = 2}),
      {.mode = ps::UpdateMode::kHalfAsync, .staleness_scaled = true, .delay_compensation = 1},
      {.dense = ps::DenseUpdates::kCollectives}};
  for (const ps::TrainingOptions& options : all) {
    const bool again = &options != &all.front();
    const std::string load = again ? first + "/step-000000003" : "";
    const std::string save =
        again ? (directory.path() / std::to_string(&options - all.data())).string() : first;
    const test::OwnedPort port;
    test::run_ranks(2,
                    [&](int rank) {
                      rank == 0 ? use_server(port.port(), options)
                                : use_worker(port.port(), options, load, save);
                    },
                    {.mode = test::RankMode::kProcesses, .deadline = 60s});
    EXPECT_TRUE(std::filesystem::exists(save + "/step-000000003"));
  }
}

TEST(FleetWithServers, HasPaddlesWordsForModes) {
  EXPECT_EQ(a_sync().mode, ps::UpdateMode::kAsync);
  EXPECT_EQ(a_sync({.k_steps = 7}).mode, ps::UpdateMode::kGeo);
  EXPECT_EQ(a_sync({.k_steps = 7}).geo_steps, 7);
  EXPECT_THAT(error_text<UsageError>([] { (void)a_sync({.k_steps = -1}); }),
              HasSubstr("k_steps: expected 0 or more, got -1"));
}

TEST(FleetWithServers, RefusesRolesThatCannotBe) {
  EXPECT_THAT(error_text<UsageError>([] { init(UserDefinedRoleMaker{}); }),
              HasSubstr("got 0 servers, 1 workers and current_id 0 of a worker"));
  EXPECT_THAT(error_text<UsageError>([] {
                init(UserDefinedRoleMaker{
                    .current_id = 1, .role = Role::kServer, .server_endpoints = {"a:1"}});
              }),
              HasSubstr("current_id 1 of a server"));
  EXPECT_THAT(error_text<UsageError>([] { init(PaddleCloudRoleMaker{.is_collective = true}); }),
              HasSubstr("call fleet::init() without a role maker"));
  EXPECT_THAT(error_text<ConfigError>([] { init(PaddleCloudRoleMaker()); }),
              HasSubstr("PADDLE_PSERVERS_IP_PORT_LIST is not set"));
  EXPECT_THAT(error_text<UsageError>([] { (void)server_num(); }),
              HasSubstr("this is no job with servers"));
  EXPECT_FALSE(is_initialized());
}

}  // namespace
}  // namespace argosy::fleet
