#include "argosy/program/command_line.h"

#include <stdexcept>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/base/strings.h"

#include "tests/support/error_text.h"
#include "tests/support/temp_dir.h"

namespace argosy::program {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

/// A program with one of each kind of option.
class CommandLine : public testing::Test {
 protected:
  CommandLine() {
    app_.name("train");
    app_.footer("\nExample: train DATA --recipe torch, and so on, in words that need more room");
    app_.add_option("data", data_, "The file, or its folder")->required();
    app_.add_option("more", more_, "Another word");
    app_.add_option("--epochs", epochs_, "Passes over the\ntraining set")
        ->check(CLI::Range(1, 10000))
        ->capture_default_str();
    app_.add_option("--recipe", recipe_, "What is done")
        ->check(CLI::IsMember({"paddle", "torch"}))
        ->capture_default_str();
    app_.add_option(
        "--a_name_that_takes_its_line", other_, std::string(40, 'x') + " and then more");
    app_.add_flag("--inspect", inspect_, "Look into the layers");
  }
  std::string error(const std::vector<std::string>& args) {
    return test::error_text<UsageError>([&] { (void)parse_or_help(app_, args, "program.test"); });
  }
  std::string help() {
    testing::internal::CaptureStdout();
    EXPECT_TRUE(parse_or_help(app_, {"--help"}, "program.test"));
    return testing::internal::GetCapturedStdout();
  }
  /// The exit code, and what was printed on standard error.
  std::pair<int, std::string> run(std::vector<std::string> args,
                                  const std::function<void()>& body) {
    std::vector<char*> argv;
    for (std::string& word : args) {
      argv.push_back(word.data());
    }
    testing::internal::CaptureStderr();
    const int code = program::run(app_, static_cast<int>(argv.size()), argv.data(), body);
    return {code, testing::internal::GetCapturedStderr()};
  }

  CLI::App app_{"Trains a net. " + std::string(60, 'y') + " and what else there is to say"};
  std::string data_{};
  std::string more_{};
  int epochs_ = 10;
  std::string recipe_ = "paddle";
  std::string other_{};
  bool inspect_ = false;
};

TEST_F(CommandLine, OptionsAreTaken) {
  EXPECT_FALSE(parse_or_help(app_, {"d", "--epochs=3", "--recipe", "torch"}, "program.test"));
  EXPECT_EQ(data_, "d");
  EXPECT_EQ(epochs_, 3);
  EXPECT_EQ(recipe_, "torch");
}

TEST_F(CommandLine, ASlipOfThePenNamesWhatWasMeant) {
  EXPECT_THAT(
      error({"d", "--epoch", "3"}),
      HasSubstr("[program.test] unknown option --epoch. Did you mean --epochs? See: train"));
  EXPECT_THAT(error({"d", "--recip=torch"}), HasSubstr("Did you mean --recipe?"));
  EXPECT_THAT(error({"d", "--nothing_like_it"}),
              AllOf(HasSubstr("unknown option --nothing_like_it. See: train --help"),
                    Not(HasSubstr("Did you mean"))));
}

TEST_F(CommandLine, AnUnknownOptionIsToldBeforeWhatIsMissing) {
  EXPECT_THAT(error({"--inspct"}), HasSubstr("Did you mean --inspect?"));
  EXPECT_THAT(error({}), HasSubstr("data is required. See: train --help"));
}

TEST_F(CommandLine, WordsTooManyAndWrongValuesAreTold) {
  EXPECT_THAT(error({"d", "e", "f", "g"}), HasSubstr("one word too many: f"));
  EXPECT_THAT(error({"d", "--epochs", "0"}), HasSubstr("--epochs"));
  EXPECT_THAT(error({"d", "--recipe", "jax"}), HasSubstr("jax"));
}

TEST_F(CommandLine, HelpFitsInto80ColumnsAndSaysValuesInWords) {
  const std::string text = help();
  for (const std::string& line : strings::split(text, '\n')) {
    EXPECT_LE(strings::columns(line), 80U) << line;
  }
  EXPECT_THAT(text,
              HasSubstr("what else there is to say\n\nUsage: train [OPTIONS] data [more]\n\n"));
  EXPECT_THAT(text,
              HasSubstr("  --epochs INT                Passes over the training set (1 to 10000;\n"
                        "                              default: 10)\n"));
  EXPECT_THAT(text, HasSubstr("What is done (paddle | torch; default: paddle)\n"));
  EXPECT_THAT(text, HasSubstr("  --a_name_that_takes_its_line TEXT\n      "));
  EXPECT_THAT(text, HasSubstr("  --inspect                   Look into the layers\n"));
}

TEST_F(CommandLine, AProgramsExitCodes) {
  EXPECT_EQ(run({"train", "d"}, [] {}), (std::pair<int, std::string>(0, "")));
  const auto [wrong, usage] = run({"./train", "d", "--epoch", "1"}, [] { FAIL() << "it ran"; });
  EXPECT_EQ(wrong, 2);
  EXPECT_THAT(usage, AllOf(HasSubstr("[program.arguments]"), HasSubstr("./train --help")));
  const auto [failed, words] = run({"train", "d"}, [] { throw std::runtime_error("no data"); });
  EXPECT_EQ(failed, 1);
  EXPECT_THAT(words, HasSubstr("no data"));
}

TEST(InAFolder, SaysWhyAFileCannotBeWritten) {
  const test::TempDir folder;
  EXPECT_EQ(in_a_folder("new.png"), "");
  EXPECT_EQ(in_a_folder((folder.path() / "new.png").string()), "");
  EXPECT_THAT(in_a_folder((folder.path() / "no/new.png").string()), HasSubstr("no folder"));
  EXPECT_THAT(in_a_folder(folder.path().string()), HasSubstr("is a folder"));
}

}  // namespace
}  // namespace argosy::program
