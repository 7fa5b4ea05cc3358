#include "argosy/launch/error_file.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "tests/support/temp_dir.h"

namespace argosy::launch {
namespace {

class ErrorFile : public testing::Test {
 protected:
  std::optional<ErrorNote> read(const std::string& text) {
    std::ofstream(path_) << text;
    return read_error_file(path_);
  }
  test::TempDir dir_;
  std::string path_ = dir_.path() / "error.json";
};

TEST_F(ErrorFile, HasMessageAndStack) {
  const auto note = read(R"({"message": {"message": "ValueError: no", "extraInfo": {
      "py_callstack": "Traceback\n  line 3", "timestamp": "1700000000"}}})");
  ASSERT_TRUE(note);
  EXPECT_EQ(note->message, "ValueError: no");
  EXPECT_EQ(note->stack, "Traceback\n  line 3");
  EXPECT_EQ(note->path, path_);
}

TEST_F(ErrorFile, MayBePlainText) {
  EXPECT_EQ(read(R"({"message": "out of memory", "timestamp": 3})")->message, "out of memory");
}

TEST_F(ErrorFile, AnythingElseSaysNothing) {
  EXPECT_FALSE(read_error_file(path_));
  EXPECT_FALSE(read_error_file(""));
  for (const char* text : {"",
                           "no json",
                           "[]",
                           "{}",
                           R"({"message": 3})",
                           R"({"message": {}})",
                           R"({"message": {"message": ["x"], "extraInfo": 4}})",
                           R"({"message": {"message": "half)"}) {
    EXPECT_FALSE(read(text)) << text;
  }
  EXPECT_FALSE(read(R"({"message": ")" + std::string(2 << 20, 'x') + "\"}"));
}

TEST_F(ErrorFile, AFormerOneIsNotTakenForThisOne) {
  const std::string deep = dir_.path() / "attempt_0" / "1" / "error.json";
  prepare_error_file(deep);
  EXPECT_TRUE(std::filesystem::is_directory(dir_.path() / "attempt_0" / "1"));
  std::ofstream(deep) << R"({"message": "old"})";
  prepare_error_file(deep);
  EXPECT_FALSE(read_error_file(deep));
}

TEST(ExceptionOf, IsWhatTheRankSaidOrTheRuntimeWrote) {
  const std::vector<std::string> gnu{
      "loading",
      "terminate called after throwing an instance of 'std::runtime_error'",
      "  what():  my file is missing",
      "*** SIGABRT ***"};
  EXPECT_EQ(exception_of(std::nullopt, gnu), "std::runtime_error: my file is missing");
  EXPECT_EQ(exception_of(std::nullopt, {"terminate called after throwing an instance of 'int'"}),
            "int");
  EXPECT_EQ(exception_of(std::nullopt,
                         {"libc++abi: terminating due to uncaught exception of type "
                          "std::runtime_error: my file is missing"}),
            "std::runtime_error: my file is missing");
  EXPECT_EQ(exception_of(ErrorNote{.message = "Mine: it broke\nfurther lines"}, {"x"}),
            "Mine: it broke …");
  EXPECT_EQ(
      exception_of(std::nullopt, {"error: [train.fit] runs: no space", "error: see errors.md"}),
      "[train.fit] runs: no space");
  EXPECT_EQ(exception_of(std::nullopt, {"Aborted"}), "");
  EXPECT_EQ(exception_of(ErrorNote{.message = "SIGABRT from process 7"}, {"Aborted"}), "");
  EXPECT_EQ(exception_of(ErrorNote{.message = "std::terminate() without an exception"}, {}), "");
}

}  // namespace
}  // namespace argosy::launch
