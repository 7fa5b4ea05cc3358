#include "argosy/launch/options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/env.h"
#include "argosy/base/error.h"
#include "argosy/launch/options/option_rows.h"
#include "argosy/program/command_line.h"

#include "tests/support/error_text.h"
#include "tests/support/temp_dir.h"

namespace argosy::launch {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

using Variables = std::map<std::string, std::string>;

LaunchOptions parse(const std::vector<std::string>& args,
                    const Variables& variables = {},
                    Dialect dialect = Dialect::kArgosy) {
  return parse_launch(
             args,
             [&](const char* name) {
               const auto found = variables.find(name);
               return found == variables.end() ? std::nullopt : std::optional(found->second);
             },
             dialect)
      .options;
}

std::string refusal(const std::vector<std::string>& args, const Variables& variables = {}) {
  return test::error_text<UsageError>([&] { (void)parse(args, variables); });
}

TEST(LaunchOptions, DefaultsAreOneRankAndLogsUnderRuns) {
  const LaunchOptions options = parse({"./train"});
  EXPECT_EQ(options.nproc_per_node, "");
  EXPECT_EQ(options.log_dir, "runs");
  EXPECT_EQ(options.line_prefix, "[rank ${rank}] ");
  EXPECT_FALSE(options.log_dir_given);
  EXPECT_EQ(options.shutdown_timeout, 5s);
  EXPECT_THAT(options.command, ElementsAre("./train"));
}

TEST(LaunchOptions, CoresAreBoundByOurWordsAndTorchruns) {
  EXPECT_EQ(parse({"x"}).cpu_bind, os::CpuBinding::kNone);
  EXPECT_EQ(parse({"--cpu_bind=cores", "x"}).cpu_bind, os::CpuBinding::kCores);
  EXPECT_EQ(parse({"--bind=numa", "x"}).cpu_bind, os::CpuBinding::kNuma);
  EXPECT_THAT(refusal({"--bind=0.0.0.0", "x"}), HasSubstr("--listen"));
  EXPECT_EQ(parse({"--numa_binding=node", "x"}).cpu_bind, os::CpuBinding::kNuma);
  EXPECT_EQ(parse({"x"}, {{"PET_NUMA_BINDING", "socket"}}).cpu_bind, os::CpuBinding::kSocket);
  EXPECT_THAT(refusal({"--numa_binding=core-complex", "x"}), HasSubstr("none, cores"));
}

TEST(LaunchOptions, TheInstructionSetIsOneOfThree) {
  EXPECT_EQ(parse({"x"}).cpu_capability, "");
  EXPECT_EQ(parse({"--cpu_capability=AVX2", "x"}).cpu_capability, "avx2");
  EXPECT_THAT(refusal({"--cpu_capability=sse", "x"}), HasSubstr("default, avx2 or avx512"));
}

TEST(LaunchOptions, AHostFileAndOtherWordsOnNodesAgree) {
  const test::TempDir folder;
  const std::string file = "--hostfile=" + (folder.path() / "hosts").string();
  std::ofstream(folder.path() / "hosts") << "127.0.0.1 slots=2\n127.0.0.2\n";
  EXPECT_EQ(parse({file, "--ssh", "--nnodes=2", "x"}).nodes.nodes, 1);  // here, nothing but ssh
  EXPECT_EQ(parse({file, "--nnodes=2", "x"}).nodes.nodes, 2);
  for (const char* ssh : {"--ssh=true", "--ssh=false"}) {
    EXPECT_THAT(refusal({file, ssh, "--nnodes=3", "x"}),
                HasSubstr("names 2 nodes, --nnodes says 3"));
    EXPECT_THAT(refusal({file, ssh, "--ips=a,b", "x"}), HasSubstr("both name the nodes"));
  }
  EXPECT_THAT(refusal({file, "--ssh", "--standalone", "x"}), HasSubstr("--standalone is for one"));
}

TEST(LaunchOptions, DashesUnderscoresAndEqualsAreTheSame) {
  for (const std::vector<std::string>& args :
       {std::vector<std::string>{"--nproc_per_node", "4", "x"},
        {"--nproc-per-node", "4", "x"},
        {"--nproc-per_node=4", "x"}}) {
    EXPECT_EQ(parse(args).nproc_per_node, "4");
  }
  EXPECT_EQ(parse({"--log-dir", "my-dir_x", "x"}).log_dir, "my-dir_x");
  EXPECT_EQ(parse({"--log_dir", "", "--nproc_per_node", "2", "x"}).log_dir, "");
  EXPECT_EQ(parse({"--log_dir", "", "--nproc_per_node", "2", "x"}).nproc_per_node, "2");
  EXPECT_EQ(parse({"--log_dir=", "--nproc_per_node", "2", "x"}).nproc_per_node, "2");
  EXPECT_EQ(parse({"--shutdown-timeout=0.25", "x"}).shutdown_timeout, 250ms);
}

TEST(LaunchOptions, TheProgramsOwnOptionsAreNeverTouched) {
  EXPECT_THAT(
      parse({"--nproc_per_node", "2", "./train", "--nproc-per-node", "9", "--", "--help"}).command,
      ElementsAre("./train", "--nproc-per-node", "9", "--", "--help"));
  EXPECT_THAT(parse({"--", "--odd-name", "-h"}).command, ElementsAre("--odd-name", "-h"));
  EXPECT_THAT(parse({"./train", ""}).command, ElementsAre("./train", ""));
}

TEST(LaunchOptions, UnknownOptionNamesTheNearest) {
  EXPECT_EQ(refusal({"--nproc-per-nod", "2", "./train"}),
            "[launch.options] unknown option --nproc-per-nod. Did you mean --nproc_per_node? The "
            "program's own options come after its name. See: argosy launch --help");
  EXPECT_THAT(refusal({"--logdir=x", "./train"}), HasSubstr("Did you mean --log_dir?"));
  EXPECT_THAT(refusal({"--nproc=2", "x"}), HasSubstr("Did you mean --nproc_per_node?"));
  EXPECT_EQ(parse({"-n", "3", "x"}).nproc_per_node, "3");
  EXPECT_EQ(parse({"-n2", "x"}).nproc_per_node, "2");
  EXPECT_THAT(refusal({"-x2", "x"}), HasSubstr("unknown option -x2"));
  const std::string far = refusal({"--quux", "./train"});
  EXPECT_THAT(far, HasSubstr("unknown option --quux. The program's"));
}

TEST(LaunchOptions, ServersAreTheFirstRanks) {
  const auto read = [](std::vector<std::string> words) {
    words.push_back("./train");
    const LaunchOptions options =
        parse_launch(words, [](const char*) { return std::nullopt; }).options;
    return fmt::format("{} of {}{}",
                       options.servers.value_or(-1),
                       options.nproc_per_node,
                       options.nodes.ips.empty() ? "" : ", first at " + options.nodes.ips.front());
  };
  EXPECT_EQ(read({"--run_mode", "ps"}), "1 of 2");
  EXPECT_EQ(read({"--server_num=2", "--worker_num=3"}), "2 of 5");
  EXPECT_EQ(read({"--trainer_num", "3"}), "1 of 4");
  EXPECT_EQ(read({"--server_num=2", "--run_mode", "PS"}), "2 of 3");
  EXPECT_EQ(read({}), "-1 of ");
  EXPECT_THAT(refusal({"--server_num=0", "x"}), HasSubstr("--server_num"));
  EXPECT_THAT(refusal({"--server_num=1", "-n", "4", "x"}), HasSubstr("contradict each other"));
}

TEST(LaunchOptions, ServersMayLieOnOneNodeAndWorkersOnAnother) {
  const auto read = [](std::vector<std::string> words) {
    words.push_back("./train");
    const LaunchOptions options =
        parse_launch(words, [](const char*) { return std::nullopt; }).options;
    return fmt::format("{} of {} on {} nodes: {}",
                       options.servers.value_or(-1),
                       options.nproc_per_node,
                       options.nodes.nodes,
                       fmt::join(options.nodes.ips, " "));
  };
  const std::vector<std::string> two{"--nnodes=2", "--master=a:1"};
  const auto of_two = [&](std::vector<std::string> words) {
    words.insert(words.begin(), two.begin(), two.end());
    return words;
  };
  EXPECT_EQ(read(of_two({"--server_num=0", "--worker_num=3"})), "0 of 3 on 2 nodes: ");
  EXPECT_EQ(read(of_two({"--server_num=2", "--worker_num=0"})), "2 of 2 on 2 nodes: ");
  EXPECT_THAT(refusal(of_two({"--server_num=0", "--worker_num=0", "x"})),
              HasSubstr("no server and no worker"));
  // Paddle's lists: 127.0.0.1 is this node, 192.0.2.1 nobody's.
  EXPECT_EQ(read({"--servers=127.0.0.1:1,192.0.2.1:1", "--workers=127.0.0.1:2,127.0.0.1:3"}),
            "1 of 3 on 2 nodes: 127.0.0.1 192.0.2.1");
  EXPECT_EQ(read({"--servers=192.0.2.1:1", "--trainers=127.0.0.1:2,127.0.0.1:3"}),
            "0 of 2 on 2 nodes: 192.0.2.1 127.0.0.1");
  EXPECT_EQ(read({"--servers=127.0.0.1:1", "--workers=127.0.0.1:2"}), "1 of 2 on 1 nodes: ");
  EXPECT_EQ(refusal({"--servers=a:1", "x"}),
            "[launch.options] --servers a:1: expected --servers and --workers, with HOST:PORT of "
            "each");
  EXPECT_THAT(refusal({"--servers=a:1", "--workers=a:2", "--server_num=1", "x"}),
              HasSubstr("--servers and --server_num both say what starts where"));
  EXPECT_THAT(refusal({"--servers=:1", "--workers=a:2", "x"}), HasSubstr("expected host:port"));
}

TEST(LaunchOptions, WhatOtherLaunchersKnowIsNoTypingError) {
  EXPECT_THAT(refusal({"--run_mode=ps-heter", "x"}), HasSubstr("are part of Paddle"));
  EXPECT_THAT(refusal({"--run_mode=pss", "x"}), HasSubstr("expected collective, ps or rpc"));
  EXPECT_THAT(refusal({"--heter_worker_num=1", "x"}), HasSubstr("are part of Paddle"));
  EXPECT_THAT(refusal({"--coordinator_num=1", "x"}), HasSubstr("coordinators of federated"));
  EXPECT_EQ(refusal({"--run_mode=rpc", "x"}), "nothing was thrown");
  EXPECT_THAT(refusal({"--rdzv_backend=etcd-v2", "x"}), HasSubstr("etcd does not work yet"));
  EXPECT_THAT(refusal({"--sort_ip=1", "x"}), HasSubstr("as they come"));
  EXPECT_THAT(refusal({"--legacy=True", "x"}), HasSubstr("no former launcher"));
  EXPECT_EQ(refusal({"--legacy=False", "x"}), "nothing was thrown");
}

TEST(LaunchOptions, PatienceIsTakenFromTorchrunsSettingsToo) {
  const auto nodes = [](std::vector<std::string> more, const Variables& variables = {}) {
    more.insert(more.begin(), {"--nnodes=2", "--master=h:1"});
    more.emplace_back("x");
    return parse(more, variables).nodes;
  };
  const std::string conf = "--rdzv_conf=join_timeout=7, keep_alive_interval=2,read_timeout=1";
  EXPECT_EQ(nodes({conf}).timeout, 7s);
  EXPECT_EQ(nodes({conf}).keep_alive.interval, 2s);
  EXPECT_EQ(nodes({conf}).keep_alive.limit(), 10s);
  EXPECT_EQ(nodes({conf, "--timeout=9"}).timeout, 9s);
  EXPECT_EQ(nodes({conf}, {{"PADDLE_ELASTIC_TIMEOUT", "3"}}).timeout, 7s);
  EXPECT_EQ(nodes({"--keep_alive_interval=0.1", "--keep-alive-max-attempt=2"}).keep_alive.limit(),
            200ms);
  // torchrun's own defaults: as long as a connection lasts.
  EXPECT_EQ(
      nodes({"--rdzv_conf=keep_alive_interval=5,keep_alive_max_attempt=3"}).keep_alive.limit(),
      10s);
  const auto refused = [](const std::string& option) {
    return refusal({"--nnodes=2", "--master=h:1", option, "x"});
  };
  EXPECT_THAT(refused("--keep_alive_max_attempt=100"), HasSubstr("expected 10 s at most"));
  EXPECT_THAT(refused("--rdzv_conf=keep_alive_interval=soon"),
              HasSubstr("--rdzv_conf: keep_alive_interval: expected seconds"));
  EXPECT_THAT(refused("--keep_alive_interval=0"), HasSubstr("0.01 seconds or more"));
  EXPECT_EQ(refusal({"--rdzv_conf=keep_alive_interval=soon", "x"}), "nothing was thrown");
}

TEST(LaunchOptions, TlsIsSwitchedOnOrComesWithItsFiles) {
  EXPECT_FALSE(parse({"x"}).tls.on);
  EXPECT_TRUE(parse({"--tls", "x"}).tls.on);
  EXPECT_TRUE(parse({"x"}, {{"ARGOSY_TLS", "1"}}).tls.on);
  EXPECT_FALSE(parse({"--tls=0", "x"}, {{"ARGOSY_TLS", "1"}}).tls.on);
  const std::vector<std::string> files{
      "--tls_cert=c", "--tls_key=k", "--tls_ca=a", "--tls_name=n", "x"};
  const rendezvous::TlsChoice tls = parse(files).tls;
  EXPECT_TRUE(tls.on);
  EXPECT_EQ(tls.certificate_file + tls.key_file + tls.authority_file + tls.name, "ckan");
  EXPECT_THAT(test::error_text<ConfigError>([] {
                (void)parse({"--tls_cert=c", "x"});
              }),
              HasSubstr("expected all three or none"));
}

TEST(LaunchOptions, FiltersAreTextsWithCommasBetweenThem) {
  EXPECT_THAT(parse({"--duplicate_stdout_filters=a b,c,,d,", "x"}).out_filters,
              ElementsAre("a b", "c,d"));
  EXPECT_THAT(parse({"--duplicate-stderr-filters=", "x"}).err_filters, ElementsAre());
}

TEST(LaunchOptions, TorchrunsEverydayLine) {
  const LaunchOptions options = parse({"--standalone",
                                       "--nnodes=1",
                                       "--nproc-per-node=2",
                                       "--max-restarts=0",
                                       "--rdzv-backend=c10d",
                                       "--monitor-interval",
                                       "5",
                                       "train.py",
                                       "--lr",
                                       "0.1"});
  EXPECT_EQ(options.nproc_per_node, "2");
  EXPECT_THAT(options.command, ElementsAre("train.py", "--lr", "0.1"));
  EXPECT_EQ(parse({"--max_restart=3", "x"}).max_restarts, 3);
  const LaunchOptions one =
      parse({"--nnodes=1", "--node_rank=0", "--master_addr=h", "--master_port=29500", "x"});
  EXPECT_EQ(one.master_port, 29500);
  EXPECT_EQ(one.nodes.nodes, 1);
}

TEST(LaunchOptions, WhereSeveralNodesMeet) {
  NodeOptions nodes =
      parse({"--nnodes=2:2", "--node-rank=1", "--master-addr=h", "--master-port=7", "x"}).nodes;
  EXPECT_EQ(nodes.nodes, 2);
  EXPECT_EQ(nodes.node_rank, 1);
  EXPECT_EQ(nodes.meet_host, "h");
  EXPECT_EQ(nodes.meet_port, 7);
  EXPECT_EQ(parse({"--nnodes=2", "--master_addr=h", "x"}).nodes.meet_port, 29500);
  EXPECT_EQ(parse({"--nnodes=2", "--rdzv_endpoint=h", "x"}).nodes.meet_port, 29400);
  nodes = parse({"--nnodes=3", "--rdzv_endpoint=[fd00::1]:5", "--timeout=12", "x"}).nodes;
  EXPECT_EQ(nodes.meet_host, "fd00::1");
  EXPECT_EQ(nodes.meet_port, 5);
  EXPECT_EQ(nodes.timeout, 12s);
  nodes = parse({"--master=h:9", "--nnodes=2", "--rank=-1", "--host=10.0.0.7", "x"}).nodes;
  EXPECT_EQ(nodes.meet_port, 9);
  EXPECT_EQ(nodes.node_rank, -1);
  EXPECT_EQ(nodes.address, "10.0.0.7");
  nodes = parse({"--ips", "a, b,c", "--start_port=8000", "x"}).nodes;
  EXPECT_EQ(nodes.nodes, 3);
  EXPECT_THAT(nodes.ips, ElementsAre("a", "b", "c"));
  EXPECT_EQ(nodes.meet_host, "a");
  EXPECT_EQ(nodes.meet_port, 7999);
  EXPECT_EQ(parse({"--standalone", "--nnodes=1", "--node_rank=0", "x"}).nodes.nodes, 1);
  EXPECT_EQ(parse({"--standalone", "x"}, {{"PET_NNODES", "4"}}).nodes.nodes, 1);
  EXPECT_EQ(parse({"--nnodes=4", "--master=h:1", "x"}, {{"PET_STANDALONE", "0"}}).nodes.nodes, 4);
}

TEST(LaunchOptions, ContradictionsAboutNodes) {
  EXPECT_THAT(refusal({"--ips=a,b,c", "--nnodes=2", "x"}),
              HasSubstr("--ips a,b,c names 3 nodes, --nnodes says 2"));
  EXPECT_THAT(refusal({"--nnodes=2", "x"}), HasSubstr("2 nodes need a place to meet"));
  EXPECT_THAT(refusal({"--standalone", "--nnodes=2", "x"}),
              HasSubstr("--standalone is for one node, --nnodes 2 for several"));
  EXPECT_THAT(refusal({"--standalone", "--node_rank=1", "x"}), HasSubstr("--node_rank 1 for"));
  EXPECT_THAT(refusal({"--standalone", "--ips=a,b", "x"}), HasSubstr("--ips a,b for several"));
  EXPECT_THAT(refusal({"--timeout=abc", "x"}), HasSubstr("--timeout"));
  EXPECT_THAT(refusal({"--env=RANK=0", "x"}), HasSubstr("each rank has its own RANK"));
  EXPECT_THAT(refusal({"--nnodes=2", "--node_rank=2", "--master_addr=h", "x"}),
              HasSubstr("--node_rank 2 needs --nnodes 3 or more; node ranks count from 0"));
  EXPECT_THAT(refusal({"--node_rank", "1", "x"}), HasSubstr("--node_rank 1 needs --nnodes 2"));
  EXPECT_THAT(refusal({"--ips", "a,,b", "x"}), HasSubstr("different addresses"));
  EXPECT_THAT(refusal({"--ips", "a,a", "x"}), HasSubstr("different addresses"));
  EXPECT_THAT(refusal({"--nnodes=2", "--master=h", "x"}),
              HasSubstr("--master: expected host:port"));
  EXPECT_THAT(refusal({"--nnodes=2", "--master=etcd://h:1", "x"}), HasSubstr("etcd"));
  EXPECT_THAT(refusal({"--nnodes", "1:4", "x"}), HasSubstr("grows and shrinks"));
  EXPECT_THAT(refusal({"--nnodes", "two", "x"}), HasSubstr("--nnodes: expected a number from 1"));
}

TEST(LaunchOptions, PaddlesEverydayLine) {
  const LaunchOptions options =
      parse({"--gpus", "0, 2", "--log_dir", "log", "--job_id", "night", "train.py"});
  EXPECT_THAT(options.gpus, ElementsAre(0, 2));
  EXPECT_EQ(options.job_id, "night");
  EXPECT_THAT(parse({"--devices=3", "x"}).gpus, ElementsAre(3));
  EXPECT_THAT(refusal({"--selected_gpus=0,0", "x"}),
              HasSubstr("--selected_gpus: expected different numbers"));
}

TEST(LaunchOptions, RepeatsPrefixesAndSwitches) {
  const LaunchOptions options = parse({"--env",
                                       "A=1",
                                       "--env",
                                       "B=x=y",
                                       "--local-ranks-filter=0,3",
                                       "--log-line-prefix-template",
                                       "${role_name}:${rank}| ",
                                       "--role",
                                       "trainer",
                                       "--dry-run",
                                       "-m",
                                       "pkg.train"});
  EXPECT_THAT(options.env, ElementsAre(std::pair("A", "1"), std::pair("B", "x=y")));
  EXPECT_THAT(options.local_ranks_filter, ElementsAre(0, 3));
  EXPECT_EQ(options.line_prefix, "${role_name}:${rank}| ");
  EXPECT_TRUE(options.dry_run && options.module);
  EXPECT_THAT(refusal({"--env", "=1", "x"}), HasSubstr("--env: expected NAME=VALUE, got \"=1\""));
  EXPECT_THAT(refusal({"-m", "--no_python", "x"}), HasSubstr("contradict"));
}

TEST(LaunchOptions, RedirectsAndTeeBringTorchrunsFiles) {
  const LaunchOptions options = parse({"-r", "3", "--tee=0:1, 2:3", "x"});
  EXPECT_EQ(options.layout, LogLayout::kTorchrun);
  EXPECT_EQ(options.redirects.of(7), 3);
  EXPECT_EQ(options.tee.of(0), 1);
  EXPECT_EQ(options.tee.of(1), 0);
  EXPECT_EQ(options.tee.of(2), 3);
  EXPECT_EQ(parse({"-r", "0", "x"}).layout, LogLayout::kArgosy);
  for (const char* bad : {"4", "0:", ":1", "a:1", "0:3,", "-1", ""}) {
    EXPECT_THAT(refusal({"-t", bad, "x"}), HasSubstr("-t: expected")) << bad;
  }
}

TEST(LaunchOptions, VariablesStandForOptionsThatAreNotGiven) {
  const Variables variables{{"PET_NPROC_PER_NODE", "4"}, {"PADDLE_JOB_ID", "night"}};
  EXPECT_EQ(parse({"x"}, variables).nproc_per_node, "4");
  EXPECT_EQ(parse({"--nproc_per_node", "2", "x"}, variables).nproc_per_node, "2");
  EXPECT_EQ(parse({"x"}, variables).job_id, "night");
  EXPECT_EQ(parse({"x"}, {{"PADDLE_MAX_RESTART", "2"}}).max_restarts, 2);
  EXPECT_EQ(parse({"--job_id=day", "x"}, {{"PET_RDZV_ID", "night"}}).job_id, "day");
  EXPECT_EQ(parse({"--host=a", "x"}, {{"PET_LOCAL_ADDR", "b"}}).nodes.address, "a");
  EXPECT_EQ(
      parse({"--nnodes=2", "--master=a:1", "x"}, {{"PET_RDZV_ENDPOINT", "b:2"}}).nodes.meet_host,
      "a");
  EXPECT_THAT(refusal({"x"}, {{"PET_MASTER_PORT", "many"}}),
              HasSubstr("PET_MASTER_PORT: expected a number from 1 to 65535, got \"many\""));
  // What does not work here and was not asked for in this call is left alone.
  EXPECT_EQ(refusal({"x"}, {{"PADDLE_SERVER_NUM", "1"}, {"PADDLE_MASTER", "h:1"}}),
            "nothing was thrown");
}

TEST(LaunchOptions, StandsInForTheOthersCommands) {
  const LaunchOptions paddle = parse({"train.py"}, {}, Dialect::kPaddle);
  EXPECT_EQ(paddle.log_dir, "log");
  EXPECT_EQ(paddle.layout, LogLayout::kPaddle);
  EXPECT_TRUE(paddle.rank_per_gpu);
  EXPECT_TRUE(parse({"x"}, {}, Dialect::kTorchLaunch).pass_local_rank);
  EXPECT_FALSE(parse({"--use_env", "x"}, {}, Dialect::kTorchLaunch).pass_local_rank);
  EXPECT_FALSE(parse({"x"}, {}, Dialect::kTorchrun).pass_local_rank);
}

TEST(LaunchOptions, EachNameAndKeyStandsOnce) {
  std::set<std::string> seen;
  for (const program::Option& row : option_rows()) {
    for (const std::string& name : row.all_names()) {
      EXPECT_TRUE(seen.insert(name).second) << name;
      EXPECT_EQ(program::find_option(option_rows(), name), &row);
    }
    EXPECT_FALSE(row.help.empty()) << row.names;
  }
}

TEST(LaunchOptions, BadValuesAndMissingParts) {
  EXPECT_THAT(refusal({}), HasSubstr("no program given"));
  EXPECT_THAT(refusal({"--nproc_per_node", "a.py"}),
              AllOf(HasSubstr("no program given"),
                    HasSubstr("\"a.py\" was taken as the value of --nproc_per_node.")));
  EXPECT_THAT(refusal({"--nproc_per_node"}), HasSubstr("--nproc_per_node needs a value: N|auto"));
  for (const char* bad : {"soon", "-1", "nan", "1e9", "3s", ""}) {
    EXPECT_EQ(refusal({"--shutdown_timeout", bad, "x"}),
              std::string("[launch.options] --shutdown_timeout: expected seconds from 0 to 86400, "
                          "got \"") +
                  bad + "\"");
  }
}

TEST(LaunchOptions, HelpShowsOptionsAndAnExample) {
  const ParsedLaunch parsed = parse_launch({"--help"}, env::get);
  ASSERT_TRUE(parsed.help);
  for (const char* part : {"--nproc_per_node", "--log_dir", "--shutdown_timeout", "Example"}) {
    EXPECT_THAT(*parsed.help, HasSubstr(part));
  }
}

}  // namespace
}  // namespace argosy::launch
