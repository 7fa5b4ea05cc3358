#include "argosy/launch/cause.h"

#include <signal.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/launch/secrets.h"

namespace argosy::launch {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Cause, CodesThatMeanSomething) {
  EXPECT_EQ(describe_code(3), "");
  EXPECT_EQ(describe_code(128), "");
  EXPECT_EQ(describe_code(127), " (a command or a library that was not found)");
  EXPECT_EQ(describe_code(126), " (a command that cannot be executed)");
  EXPECT_EQ(describe_code(137), " (128 + 9: SIGKILL)");
  EXPECT_EQ(describe_code(255), "");
}

TEST(Cause, LastWordsTellMoreThanTheCode) {
  const os::Exit not_found{.code = 127};
  EXPECT_THAT(advice_for(not_found, false, {}), HasSubstr("in PATH"));
  EXPECT_THAT(advice_for(not_found,
                         false,
                         {"./train: error while loading shared libraries: libx.so.1: cannot open "
                          "shared object file: No such file or directory"}),
              HasSubstr("ldd PROGRAM"));
  EXPECT_THAT(advice_for({.code = 1}, false, {"RuntimeError: CUDA out of memory. Tried …", "done"}),
              HasSubstr("smaller batches"));
  EXPECT_EQ(advice_for({.code = 1}, false, {"something else"}), "");
  EXPECT_EQ(advice_for({.code = 0}, false, {}), "");
}

TEST(Cause, SignalsAndTheirShellsCodes) {
  for (const os::Exit& exit : {os::Exit{.signal = SIGBUS}, os::Exit{.code = 128 + SIGBUS}}) {
    EXPECT_THAT(advice_for(exit, false, {}), HasSubstr("/dev/shm"));
  }
  EXPECT_THAT(advice_for({.signal = SIGKILL}, false, {}), HasSubstr("dmesg"));
  EXPECT_THAT(advice_for({.signal = SIGKILL}, true, {}), HasSubstr("fewer ranks"));
}

TEST(Secrets, AreKnownByTheWordsOfTheirNames) {
  for (const char* name : {"ARGOSY_TOKEN",
                           "WANDB_API_KEY",
                           "PASSWORD",
                           "--auth-token",
                           "--db_password",
                           "AWS_SECRET",
                           "GITLAB_TOKEN",
                           "VAULT_KEY"}) {
    EXPECT_TRUE(is_secret(name)) << name;
  }
  for (const char* name : {"MONKEY",
                           "KEY",
                           "TOKENIZERS_PARALLELISM",
                           "ARGOSY_TLS_KEY",
                           "ARGOSY_TOKEN_FILE",
                           "--pad_token",
                           "PAD_TOKEN",
                           "--text_key",
                           "--use_auth_token",
                           "KEY_API",
                           "--tls_key",
                           "HOME"}) {
    EXPECT_FALSE(is_secret(name)) << name;
  }
}

TEST(Secrets, AreNotShown) {
  EXPECT_EQ(hide_secret("WANDB_API_KEY=abc"), "WANDB_API_KEY=(hidden)");
  EXPECT_EQ(hide_secret("HOME=/h"), "HOME=/h");
  EXPECT_THAT(
      hide_secrets({"--env=WANDB_API_KEY=abc", "--env=A=b", "--env", "HF_TOKEN=c"}),
      ElementsAre("--env=WANDB_API_KEY=(hidden)", "--env=A=b", "--env", "HF_TOKEN=(hidden)"));
  EXPECT_THAT(hide_secrets({"./train",
                            "--token=abc",
                            "--auth-token",
                            "def",
                            "--lr",
                            "0.1",
                            "--password",
                            "--verbose"}),
              ElementsAre("./train",
                          "--token=(hidden)",
                          "--auth-token",
                          "(hidden)",
                          "--lr",
                          "0.1",
                          "--password",
                          "--verbose"));
}

}  // namespace
}  // namespace argosy::launch
