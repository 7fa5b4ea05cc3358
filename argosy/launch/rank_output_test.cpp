#include "argosy/launch/rank_output.h"

#include <fcntl.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/temp_dir.h"

namespace argosy::launch {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::StartsWith;

/// Two ranks that write to the same streams and to one combined log, in a folder of its own.
class RankOutputTest : public ::testing::Test {
 protected:
  struct Rank {
    os::UniqueFd writes;
    std::unique_ptr<RankOutput> output;

    void write(std::string_view bytes) {
      ASSERT_TRUE(os::write_all(writes.get(), bytes).ok());
      output->forward(output->fds().front());
    }
  };

  Rank rank(int number) {
    os::Pipe pipe = *os::make_pipe();
    EXPECT_TRUE(os::set_nonblocking(pipe.read.get()).ok());
    const auto file =
        std::make_shared<LogFile>(path("rank" + std::to_string(number)), LogFile::Start::kEmpty);
    RankOutput::Start start{.prefix = "[" + std::to_string(number) + "] ",
                            .out = {.sink = &sink_, .file = file},
                            .err = {.sink = &sink_, .file = file},
                            .rank = number,
                            .combined = &combined_};
    return {std::move(pipe.write),
            std::make_unique<RankOutput>(start, std::move(pipe.read), os::UniqueFd())};
  }

  std::string shown() {
    sink_.flush();
    return content("shown");
  }
  [[nodiscard]] std::string content(const std::string& name) const {
    std::ifstream file(path(name));
    return {std::istreambuf_iterator<char>(file), {}};
  }
  [[nodiscard]] std::string path(const std::string& name) const { return dir_.path() / name; }

 private:
  test::TempDir dir_;
  os::UniqueFd out_ = *os::open_file(path("shown"), O_WRONLY | O_CREAT);
  Sink sink_{out_.get()};
  CombinedLog combined_{path("all")};
};

TEST_F(RankOutputTest, ManyLinesInOneReadGoEverywhereAndTheLastOnesAreKept) {
  Rank writer = rank(3);
  std::string lines;
  for (int i = 0; i < 1000; ++i) {
    lines += std::to_string(i) + "\n";
  }
  writer.write("start " + lines + "end");
  EXPECT_EQ(content("rank3"), "start " + lines + "end");
  const std::vector<std::string> last = writer.output->last_lines();
  ASSERT_EQ(last.size(), Tail::kLines);
  EXPECT_EQ(last.front(), std::to_string(1000 - Tail::kLines));
  EXPECT_EQ(last.back(), "999");
  writer.write(" of it\n");
  EXPECT_EQ(writer.output->last_lines().back(), "end of it");
  EXPECT_EQ(writer.output->last_lines().front(), std::to_string(1001 - Tail::kLines));
  EXPECT_THAT(shown(), StartsWith("[3] start 0\n[3] 1\n"));
  EXPECT_THAT(shown(), EndsWith("[3] 999\n[3] end of it\n"));
  EXPECT_THAT(content("all"), EndsWith(" rank 3 out| end of it\n"));
}

TEST_F(RankOutputTest, NoLineOfOneReadComesAgainWithTheNext) {
  Rank one = rank(1);
  Rank two = rank(2);
  one.write("a\nb\n");
  two.write("c\n");
  one.write("no end");
  two.write("d\n");
  one.output->forward_rest();
  EXPECT_EQ(shown(), "[1] a\n[1] b\n[2] c\n[2] d\n[1] no end\n");
  EXPECT_EQ(content("rank1"), "a\nb\nno end");
  EXPECT_EQ(content("rank2"), "c\nd\n");
  const std::string all = content("all");
  EXPECT_EQ(std::ranges::count(all, '\n'), 5);
  EXPECT_THAT(one.output->last_lines(), ElementsAre("a", "b", "no end"));
}

}  // namespace
}  // namespace argosy::launch
