#include "argosy/base/secrets.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace argosy::secrets {
namespace {

using Words = std::vector<std::string>;

TEST(Secrets, AreKnownByTheWordsOfTheirNames) {
  for (const char* name : {"ARGOSY_TOKEN",
                           "WANDB_API_KEY",
                           "PASSWORD",
                           "--auth-token",
                           "--api-key",
                           "--wandb-key",
                           "--db_password",
                           "--logger.token",
                           "AWS_SECRET",
                           "GITLAB_TOKEN",
                           "SLURM_JWT",
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
                           "HOME",
                           "--",
                           ""}) {
    EXPECT_FALSE(is_secret(name)) << name;
  }
}

TEST(Secrets, OfAssignmentsAreNotShown) {
  EXPECT_EQ(hidden("WANDB_API_KEY=abc"), "WANDB_API_KEY=(hidden)");
  EXPECT_EQ(hidden("--wandb-key=abc"), "--wandb-key=(hidden)");
  EXPECT_EQ(hidden("--env=HF_TOKEN=abc"), "--env=HF_TOKEN=(hidden)");
  for (const char* harmless : {"HOME=/h", "--env=A=b", "a=b=", "=", "--lr", "text"}) {
    EXPECT_EQ(hidden(harmless), harmless);
  }
}

TEST(Secrets, OfUrlsAreNotShown) {
  EXPECT_EQ(hidden("http://user:pass@host:80/a@b"), "http://(hidden)@host:80/a@b");
  EXPECT_EQ(hidden("DATABASE_URL=postgres://u:p@x@db/train"),
            "DATABASE_URL=postgres://(hidden)@db/train");
  EXPECT_EQ(hidden("--mirrors=http://a/,https://token@b"),
            "--mirrors=http://a/,https://(hidden)@b");
  EXPECT_EQ(hidden("https://host/data?part=1&token=abc"),
            "https://host/data?part=1&token=(hidden)");
  for (const char* harmless : {"http://host/a@b", "file:///a/b", "a@b", "http://", "://@"}) {
    EXPECT_EQ(hidden(harmless), harmless == std::string("://@") ? "://(hidden)@" : harmless);
  }
}

TEST(Secrets, OfACommandLineInOneWordAreNotShown) {
  EXPECT_EQ(
      hidden(Words{"sh", "-c", "cd  /x\n./train --api-key abc --lr 0.1; A=1 API_KEY=d ./b"}),
      (Words{"sh", "-c", "cd  /x\n./train --api-key (hidden) --lr 0.1; A=1 API_KEY=(hidden) ./b"}));
  EXPECT_EQ(hidden("PASSWORD=a word with blanks"), "PASSWORD=(hidden)");
  EXPECT_EQ(hidden("--env=PASSWORD=a word"), "--env=PASSWORD=(hidden)");
  EXPECT_EQ(hidden(" two  blanks "), " two  blanks ");
}

TEST(Secrets, MayBeginLikeAnOption) {
  EXPECT_EQ(hidden(Words{"--password", "-abc", "--token", "--lr", "1"}),
            (Words{"--password", "(hidden)", "--token", "--lr", "1"}));
}

TEST(Secrets, OfACommandLineAreNotShown) {
  EXPECT_EQ(hidden(Words{"./train",
                         "--token=abc",
                         "--api-key",
                         "def",
                         "--lr",
                         "0.1",
                         "--env",
                         "HF_TOKEN=ghi",
                         "--password",
                         "--verbose"}),
            (Words{"./train",
                   "--token=(hidden)",
                   "--api-key",
                   "(hidden)",
                   "--lr",
                   "0.1",
                   "--env",
                   "HF_TOKEN=(hidden)",
                   "--password",
                   "--verbose"}));
}

}  // namespace
}  // namespace argosy::secrets
