#include "argosy/program/command_line.h"

#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/base/strings.h"

#include "tests/support/error_text.h"
#include "tests/support/temp_dir.h"
#include <nlohmann/json.hpp>

namespace argosy::program {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

/// A program with one of each kind of option.
class CommandLine : public testing::Test {
 protected:
  Options options() {
    return {{"data", "", "The file, or its folder", &data_, {.required = true}},
            {"more", "", "Other words", &more_},
            {"--epochs -e",
             "N",
             "Passes over the\ntraining set",
             &epochs_,
             {.least = 1, .most = 10000}},
            {"--recipe", "NAME", "What is done", &recipe_, {.words = "paddle|torch"}},
            {"--lr", "X", "Learning rate", &lr_, {.least = 0}},
            {"--rank", "LIST", "Only these", &ranks_, {.least = 0}, "Others"},
            {"--a_name_that_takes_its_line", "TEXT", kLong, &other_, {}, "Others"},
            {"--inspect", "", "Look into the layers", &inspect_, {}, "Others"}};
  }
  bool parse(const std::vector<std::string>& args) {
    return parse_or_help(about_, options(), args);
  }
  std::string error(const std::vector<std::string>& args) {
    return test::error_text<UsageError>([&] { (void)parse(args); });
  }
  std::string help() {
    testing::internal::CaptureStdout();
    EXPECT_TRUE(parse({"--help"}));
    return testing::internal::GetCapturedStdout();
  }
  std::string json_error(const std::string& text) {
    return test::error_text<UsageError>(
        [&] { program::from_json(options(), nlohmann::ordered_json::parse(text)); });
  }
  /// The exit code, and what was printed on standard error.
  std::pair<int, std::string> run(std::vector<std::string> args,
                                  const std::function<void()>& body) {
    std::vector<char*> argv;
    for (std::string& word : args) {
      argv.push_back(word.data());
    }
    testing::internal::CaptureStderr();
    const int code =
        program::run(about_, options(), static_cast<int>(argv.size()), argv.data(), body);
    return {code, testing::internal::GetCapturedStderr()};
  }

  static constexpr const char* kLong =
      "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx and then more";
  const HelpText about_{
      .what =
          "Trains a net. yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy and what "
          "else there is to say",
      .name = "train",
      .end = "Example: train DATA --recipe torch, and so on, in words that need much more room"};
  std::string data_{};
  std::vector<std::string> more_{};
  int epochs_ = 10;
  std::string recipe_ = "paddle";
  std::optional<double> lr_{};
  std::vector<int> ranks_{7};
  std::string other_{};
  bool inspect_ = false;
};

TEST_F(CommandLine, OptionsAreTaken) {
  EXPECT_FALSE(parse({"d", "--epochs=3", "--recipe", "torch", "--rank", "0,3", "--rank=5"}));
  EXPECT_EQ(data_, "d");
  EXPECT_EQ(epochs_, 3);
  EXPECT_EQ(recipe_, "torch");
  EXPECT_EQ(ranks_, (std::vector{0, 3, 5})) << "and no default beside what is given";
  EXPECT_EQ(lr_, std::nullopt);
  EXPECT_FALSE(parse({"-e5", "--lr", "1e-3", "--inspect", "d", "--", "--epochs", "-1"}));
  EXPECT_EQ(epochs_, 5);
  EXPECT_EQ(lr_, 1e-3);
  EXPECT_EQ(more_, (std::vector<std::string>{"--epochs", "-1"}));
  EXPECT_TRUE(inspect_);
  EXPECT_FALSE(parse({"d", "--inspect=no", "--a-name-that-takes-its-line", "-"}));
  EXPECT_FALSE(inspect_);
  EXPECT_EQ(other_, "-") << "dashes in a name are underscores";
}

TEST_F(CommandLine, ASlipOfThePenNamesWhatWasMeant) {
  EXPECT_THAT(
      error({"d", "--epoch", "3"}),
      HasSubstr("[program.arguments] unknown option --epoch. Did you mean --epochs? See: train"));
  EXPECT_THAT(error({"d", "--recip=torch"}), HasSubstr("Did you mean --recipe?"));
  EXPECT_THAT(error({"d", "--insp"}), HasSubstr("Did you mean --inspect?"))
      << "the beginning of it";
  EXPECT_THAT(error({"d", "--nothing_like_it"}),
              AllOf(HasSubstr("unknown option --nothing_like_it. See: train --help"),
                    Not(HasSubstr("Did you mean"))));
}

TEST_F(CommandLine, AnUnknownOptionIsToldBeforeWhatIsMissing) {
  EXPECT_THAT(error({"--inspct"}), HasSubstr("Did you mean --inspect?"));
  EXPECT_THAT(error({}), HasSubstr("data is required. See: train --help"));
}

TEST_F(CommandLine, WordsTooManyAndWrongValuesAreTold) {
  std::string one;
  const Options options{{"one", "", "", &one}};
  EXPECT_THAT(test::error_text<UsageError>([&] {
                (void)parse_or_help(about_, options, {"d", "e", "f"});
              }),
              HasSubstr("one word too many: e. See: train --help"));
  EXPECT_THAT(error({"d", "--epochs", "0"}), HasSubstr("--epochs: expected 1 to 10000, got \"0\""));
  EXPECT_THAT(error({"d", "-e", "9999999999"}), HasSubstr("-e: expected a whole number, got"));
  EXPECT_THAT(error({"d", "--epochs", "3x"}), HasSubstr("expected a whole number, got \"3x\""));
  EXPECT_THAT(error({"d", "--lr", "-1"}), HasSubstr("--lr: expected 0 or more, got \"-1\""));
  EXPECT_THAT(error({"d", "--lr", "nan"}), HasSubstr("--lr: expected a number, got \"nan\""));
  EXPECT_THAT(error({"d", "--recipe", "jax"}),
              HasSubstr("--recipe: expected one of paddle, torch, got \"jax\""));
  EXPECT_THAT(error({"d", "--inspect=maybe"}), HasSubstr("--inspect: expected yes or no"));
  EXPECT_THAT(error({"d", "--lr", "1", "--lr=2"}), HasSubstr("--lr is given twice"));
  EXPECT_THAT(error({"d", "--epochs"}), HasSubstr("--epochs needs a value: N"));
  EXPECT_THAT(error({"d", "--recipe", "--inspect"}), HasSubstr("--recipe needs a value: NAME"));
}

TEST_F(CommandLine, ACheckSaysWhatIsWrongWithAText) {
  std::string path;
  const Options options{{"--sheet", "FILE", "", &path, {.check = in_a_folder}}};
  EXPECT_THAT(test::error_text<UsageError>([&] {
                (void)parse_or_help(about_, options, {"--sheet", "/no/such/x.png"});
              }),
              HasSubstr("--sheet: there is no folder /no/such"));
}

TEST_F(CommandLine, HelpFitsInto80ColumnsAndSaysValuesInWords) {
  const std::string text = help();
  for (const std::string& line : strings::split(text, '\n')) {
    EXPECT_LE(strings::columns(line), 80U) << line;
  }
  EXPECT_THAT(text,
              HasSubstr("what else there is to say\n\nUsage: train [options] data [more]\n\n"
                        "Arguments:\n  data                        The file"));
  EXPECT_THAT(text,
              HasSubstr("  --epochs, -e N              Passes over the training set (1 to 10000;\n"
                        "                              default: 10)\n"));
  EXPECT_THAT(text, HasSubstr("What is done (paddle | torch; default: paddle)\n"));
  EXPECT_THAT(text, HasSubstr("Only these (default: 7)\n"));
  EXPECT_THAT(text,
              AllOf(HasSubstr("  --lr X                      Learning rate\n\nExample:"),
                    HasSubstr("\n\nOthers:\n")));
  EXPECT_THAT(text, HasSubstr("  --a_name_that_takes_its_line TEXT\n      "));
  EXPECT_THAT(text, HasSubstr("  --inspect                   Look into the layers\n"));
}

TEST_F(CommandLine, SettingsGoThroughJson) {
  ASSERT_FALSE(parse({"d", "--epochs", "3", "--inspect"}));
  const nlohmann::ordered_json stored = to_json(options());
  EXPECT_EQ(stored.dump(),
            R"({"data":"d","more":[],"epochs":3,"recipe":"paddle","lr":null,"rank":[7],)"
            R"("a_name_that_takes_its_line":"","inspect":true})");
  from_json(
      options(),
      nlohmann::ordered_json::parse(R"({"epochs":4,"lr":0.5,"recipe":"torch","inspect":false})"));
  EXPECT_EQ(epochs_, 4);
  EXPECT_EQ(lr_, 0.5);
  EXPECT_EQ(recipe_, "torch");
  EXPECT_FALSE(inspect_);
  from_json(options(), nlohmann::ordered_json::parse(R"({"lr":null})"));
  EXPECT_EQ(lr_, std::nullopt);
  EXPECT_THAT(json_error(R"({"epoch":4})"),
              HasSubstr("unknown option --epoch: nearest is --epochs"));
  EXPECT_THAT(json_error(R"({"epochs":"4"})"), HasSubstr("--epochs: expected a whole number"));
  EXPECT_THAT(json_error(R"({"epochs":0})"), HasSubstr("--epochs: expected 1 to 10000, got \"0\""));
  EXPECT_THAT(json_error(R"({"epochs":null})"), HasSubstr("--epochs: expected a whole number"));
  EXPECT_THAT(json_error(R"({"recipe":"jax"})"), HasSubstr("expected one of paddle, torch"));
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

TEST(TakeOption, TakesOneOutOfTheArguments) {
  const auto take = [](std::vector<std::string> words, const std::vector<std::string>& rest) {
    std::vector<char*> argv;
    for (std::string& word : words) {
      argv.push_back(word.data());
    }
    auto argc = static_cast<int>(argv.size());
    std::string value = take_option(argc, argv.data(), "--device");
    EXPECT_EQ(std::vector<std::string>(argv.begin(), argv.begin() + argc), rest);
    return value;
  };
  EXPECT_EQ(take({"train", "data"}, {"train", "data"}), "auto");
  EXPECT_EQ(take({"train", "--device", "cuda:1", "data"}, {"train", "data"}), "cuda:1");
  EXPECT_EQ(take({"train", "data", "--device=cpu"}, {"train", "data"}), "cpu");
  EXPECT_EQ(take({"train", "--device=cpu", "--device", "gpu"}, {"train"}), "gpu");
  EXPECT_THAT(test::error_text<UsageError>([&] {
                take({"train", "--device"}, {});
              }),
              HasSubstr("--device needs a value"));
}

}  // namespace
}  // namespace argosy::program
