#include "argosy/launch/start_table.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace argosy::launch {
namespace {

using testing::HasSubstr;
using testing::Not;

Job job_of_two() {
  return {.description = {.ranks = 2,
                          .world_size = 2,

                          .run_id = "run-1",
                          .master_port = 4000,
                          .endpoints = {"127.0.0.1:4001", "127.0.0.1:4002"},
                          .token = "verysecret",
                          .node = {.cores = 5}},
          .program = {.args = {"./train", "--lr", "0.1"}},
          .logs = {.folder = "runs/run-1"}};
}

TEST(StartTable, SaysWhatMatters) {
  const std::string text = describe_start(job_of_two(), StartDetail::kSummary);
  for (const char* part :
       {"| ranks ", "| 2 on ", "./train --lr 0.1", "runs/run-1/rank<k>.log", "4000"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
  EXPECT_THAT(text, Not(HasSubstr("WORLD_SIZE")));
}

TEST(StartTable, SaysWhoServes) {
  Job job = job_of_two();
  EXPECT_THAT(describe_start(job, StartDetail::kSummary), Not(HasSubstr("server_num")));
  job.description.servers = 1;
  const std::string text = describe_start(job, StartDetail::kSummary);
  for (const char* part : {"| server_num ", "| servers ", "| worker_num ", "127.0.0.1:4002 "}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
}

TEST(StartTable, ShowsEveryVariableButNoSecret) {
  Job job = job_of_two();
  job.description.extra = {{"SLURM_JWT", "verysecret"}, {"DB", "postgres://me:verysecret@host/"}};
  job.program.args = {"./train", "http://me:verysecret@host/"};
  const std::string text = describe_start(job, StartDetail::kEnvironment);
  EXPECT_THAT(text, HasSubstr("[launch] rank 0: WORLD_SIZE=2\n"));
  EXPECT_THAT(text, HasSubstr("[launch] rank 1: RANK=1\n"));
  EXPECT_THAT(text, Not(HasSubstr("rank 1: WORLD_SIZE")));  // the same as for rank 0
  EXPECT_THAT(text, HasSubstr("rank 0: ARGOSY_TOKEN=(hidden)"));
  EXPECT_THAT(text, HasSubstr("rank 0: SLURM_JWT=(hidden)"));
  EXPECT_THAT(text, HasSubstr("rank 0: DB=postgres://(hidden)@host/"));
  EXPECT_THAT(text, Not(HasSubstr("verysecret")));
}

TEST(StartTable, SaysHowTheCpusAreSetUpAndByWhom) {
  Job job = job_of_two();
  job.description.node = {.cores = 5, .avx512 = true};
  job.description.extra = {{"OMP_WAIT_POLICY", "active"}};
  ::setenv("OMP_NUM_THREADS", "3", 1);  // NOLINT(concurrency-mt-unsafe): one thread here
  ::unsetenv("OPENBLAS_CORETYPE");      // NOLINT(concurrency-mt-unsafe)
  const std::string text = describe_start(job, StartDetail::kEnvironment);
  ::unsetenv("OMP_NUM_THREADS");  // NOLINT(concurrency-mt-unsafe)
  EXPECT_THAT(text, HasSubstr("| OMP_NUM_THREADS   | 3 (as found) "));
  EXPECT_THAT(text, HasSubstr("| OMP_WAIT_POLICY   | active (--env) "));
  EXPECT_THAT(text, HasSubstr("| OPENBLAS_CORETYPE | SKYLAKEX (this CPU has AVX-512) "));
  EXPECT_THAT(text, HasSubstr("| cores             | not bound: see --bind "));
  EXPECT_THAT(describe_start(job, StartDetail::kEnvironment),
              HasSubstr("| 2 (5 cores usable of this machine, shared"));
  EXPECT_THAT(describe_start(job, StartDetail::kSummary), Not(HasSubstr("OMP_")));
}

TEST(StartTable, SaysWhatTheQueueHasDecided) {
  Job job = job_of_two();
  job.description.node = {.cores = 64};
  job.description.cores = 4;
  job.description.bound_by_queue = true;
  ::unsetenv("OMP_NUM_THREADS");  // NOLINT(concurrency-mt-unsafe): one thread here
  const std::string text = describe_start(job, StartDetail::kEnvironment);
  EXPECT_THAT(text, HasSubstr("2 (4 cores from the queue, shared out among the ranks)"));
  EXPECT_THAT(text, HasSubstr("not bound: each of the queue's launchers here has its own"));
  EXPECT_THAT(text, Not(HasSubstr("see --bind")));
}

TEST(StartTable, LinesAreOfOneLengthAndOneLineEach) {
  Job job = job_of_two();
  job.program.args = {"sh", "-c", std::string(300, 'x') + "\nsecond line"};
  const std::string text = describe_start(job, StartDetail::kSummary);
  EXPECT_THAT(text, HasSubstr("…"));
  EXPECT_THAT(text, Not(HasSubstr("\nsecond")));
}

}  // namespace
}  // namespace argosy::launch
