#include "argosy/program/commands.h"

#include <stdexcept>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/base/strings.h"

#include "tests/support/error_text.h"

namespace argosy::program {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const Commands& table() {
  static const Commands commands{
      .name = "tool",
      .purpose = "Does things.",
      .usage = "<command> [options]",
      .all = {{"count",
               "Returns how many words there are",
               [](const Words& args) { return static_cast<int>(args.size()); }},
              {"long-name",
               "A line that is longer than 80 columns and has to be wrapped, I fear",
               [](const Words&) { return 0; }},
              {"hidden", "", [](const Words&) { return 7; }},
              {.name = "other", .what = "Is a program", .becomes = "no-such-program first"}},
      .more = "The end.\n",
      .version = "1.2",
      .unknown = [](const std::string& word) {
        if (word == "a.out") {
          throw UsageError("tool", "a file");
        }
      }};
  return commands;
}

std::string refusal(const Words& args) {
  return test::error_text<UsageError>([&] { (void)dispatch(table(), args); });
}

std::string printed(const Words& args) {
  testing::internal::CaptureStdout();
  EXPECT_EQ(dispatch(table(), args), 0);
  return testing::internal::GetCapturedStdout();
}

TEST(Commands, TheNamedOneGetsTheWordsAfterItsName) {
  EXPECT_EQ(dispatch(table(), {"count", "a", "--help"}), 2);
  EXPECT_EQ(dispatch(table(), {"hidden"}), 7);
}

TEST(Commands, HelpListsThemIn80Columns) {
  const std::string help = printed({"--help"});
  EXPECT_THAT(help,
              AllOf(HasSubstr("Does things.\n\nUsage: tool <command> [options]\n\nCommands:\n"),
                    HasSubstr("  count      Returns how many words there are\n"),
                    HasSubstr("\nOptions:\n"),
                    HasSubstr("\nThe end.\n"),
                    Not(HasSubstr("hidden"))));
  for (const std::string& line : strings::split(help, '\n')) {
    EXPECT_LE(strings::columns(line), 80U) << line;
  }
  EXPECT_EQ(printed({"help"}), help);
  EXPECT_THAT(help,
              AllOf(HasSubstr("\nNot installed here: other\n"), Not(HasSubstr("Is a program"))));
  EXPECT_EQ(printed({"--version"}), "tool 1.2\n");
}

TEST(Commands, NoWordIsAWrongUsage) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(dispatch(table(), {}), kUsage);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("Usage: tool"));
}

TEST(Commands, ASlipOfThePenNamesWhatWasMeant) {
  EXPECT_THAT(refusal({"cuont"}),
              HasSubstr("[program.arguments] unknown command tool cuont. Did you mean tool count? "
                        "See: tool --help"));
  EXPECT_THAT(refusal({"--verison"}), HasSubstr("Did you mean tool --version?"));
  EXPECT_THAT(refusal({"xyz"}), HasSubstr("unknown command tool xyz. See: tool --help"));
  EXPECT_THAT(refusal({"a.out"}), HasSubstr("[tool] a file"));
}

TEST(Commands, AProgramThatIsNotThereIsNamed) {
  EXPECT_THAT(test::error_text<Error>([] { (void)dispatch(table(), {"other"}); }),
              AllOf(HasSubstr("/no-such-program: No such file"), HasSubstr("make build")));
}

TEST(Commands, ErrorsBecomeExitCodes) {
  std::string name = "tool";
  char* argv[] = {name.data()};
  const auto code_of = [&](const std::function<int(const Words&)>& run) {
    testing::internal::CaptureStderr();
    const int code = run_main(1, argv, run);
    return std::pair(code, testing::internal::GetCapturedStderr());
  };
  EXPECT_EQ(code_of([](const Words& args) { return static_cast<int>(args.size()) + 3; }),
            (std::pair<int, std::string>(3, "")));
  const auto [usage, words] =
      code_of([](const Words&) -> int { throw UsageError("launch.json", "no."); });
  EXPECT_EQ(usage, kUsage);
  EXPECT_THAT(words, HasSubstr("[launch.json] no. See "));
  EXPECT_EQ(code_of([](const Words&) -> int { throw ConfigError("a.b", "no"); }).first, kUsage);
  EXPECT_EQ(code_of([](const Words&) -> int { throw std::runtime_error("no"); }),
            (std::pair<int, std::string>(kFailed, "no\n")));
}

}  // namespace
}  // namespace argosy::program
