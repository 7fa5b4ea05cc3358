#include "argosy/launch/options.h"

#include <chrono>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"

namespace argosy::launch {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

LaunchOptions parse(const std::vector<std::string>& args) {
  return parse_launch(args).options;
}

std::string refusal(const std::vector<std::string>& args) {
  try {
    (void)parse_launch(args);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(LaunchOptions, DefaultsAreOneRankAndLogsUnderRuns) {
  const LaunchOptions options = parse({"./train"});
  EXPECT_EQ(options.nproc_per_node, "1");
  EXPECT_EQ(options.log_dir, "runs");
  EXPECT_FALSE(options.log_dir_given);
  EXPECT_EQ(options.shutdown_timeout, 5s);
  EXPECT_THAT(options.command, ElementsAre("./train"));
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
  const std::string far = refusal({"--quux", "./train"});
  EXPECT_THAT(far, HasSubstr("unknown option --quux. The program's"));
}

TEST(LaunchOptions, WhatOtherLaunchersKnowIsNoTypingError) {
  EXPECT_EQ(refusal({"--nnodes=2", "./train"}),
            "[launch.options] --nnodes does not work yet: argosy launch starts the ranks of one "
            "node, any program, and restarts nothing. See: argosy launch --help");
  EXPECT_THAT(refusal({"--max-restarts", "3", "x"}), HasSubstr("--max-restarts does not work yet"));
}

TEST(LaunchOptions, BadValuesAndMissingParts) {
  EXPECT_THAT(refusal({}), HasSubstr("no program given"));
  EXPECT_THAT(refusal({"--nproc_per_node", "2"}), HasSubstr("no program given"));
  EXPECT_THAT(refusal({"--nproc_per_node"}), HasSubstr("--nproc_per_node needs a value: N|auto"));
  for (const char* bad : {"soon", "-1", "nan", "1e9", "3s", ""}) {
    EXPECT_EQ(refusal({"--shutdown_timeout", bad, "x"}),
              std::string("[launch.options] --shutdown_timeout: expected seconds from 0 to 86400, "
                          "got \"") +
                  bad + "\"");
  }
}

TEST(LaunchOptions, HelpShowsOptionsAndAnExample) {
  const ParsedLaunch parsed = parse_launch({"--help"});
  ASSERT_TRUE(parsed.help);
  for (const char* part : {"--nproc_per_node", "--log_dir", "--shutdown_timeout", "Example"}) {
    EXPECT_THAT(*parsed.help, HasSubstr(part));
  }
}

}  // namespace
}  // namespace argosy::launch
