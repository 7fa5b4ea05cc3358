#include "argosy/datasets/fetch.h"

#include <sys/resource.h>
#include <unistd.h>

#include <barrier>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/datasets/test_server.h"
#include "argosy/formats/digest.h"

#include "tests/support/error_text.h"
#include "tests/support/temp_dir.h"

namespace argosy::datasets {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;
namespace fs = std::filesystem;

std::string md5_of(const std::string& text) {
  return formats::digest_of(formats::Digest::kMd5, std::as_bytes(std::span(text)));
}

std::string content(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

/// 300 kB that compare unequal wherever they are shifted.
std::string make_body() {
  std::string body;
  for (int i = 0; body.size() < 300'000; ++i) {
    body += std::to_string(i * i) + " ";
  }
  return body;
}

class FetchTest : public ::testing::Test {
 protected:
  [[nodiscard]] fs::path file() const { return folder_.path() / "set/data.bin"; }
  [[nodiscard]] fs::path part() const { return folder_.path() / "set/data.bin.part"; }
  [[nodiscard]] Row set(const std::vector<std::string>& addresses) const {
    return {.name = "set",
            .title = "a set",
            .addresses = addresses,
            .files = {{"data.bin", {static_cast<int64_t>(body_.size()), md5_of(body_)}}}};
  }
  [[nodiscard]] FetchOptions options() const {
    return {.to = (folder_.path() / "set").string(), .first_pause = 1ms};
  }
  /// Fetches from a server that answers so; returns what was asked of it.
  std::vector<Request> fetch_from(std::function<Reply(const Request&)> handler) {
    const TestServer server(std::move(handler));
    fetch(set({server.url() + "/"}), options());
    return server.requests();
  }
  /// The message of a fetch that fails.
  std::string error_from(std::function<Reply(const Request&)> handler) {
    const TestServer server(std::move(handler));
    return test::error_text<DataError>([&] { fetch(set({server.url() + "/"}), options()); });
  }
  Reply whole() { return {.body = body_}; }

  test::TempDir folder_{};
  std::string body_ = make_body();
};

TEST_F(FetchTest, BringsAFileOnceAndThenFindsIt) {
  const TestServer server([&](const Request&) { return whole(); });
  const Fetched first = fetch(set({server.url() + "/"}), options());
  EXPECT_EQ(content(file()), body_);
  EXPECT_FALSE(fs::exists(part()));
  ASSERT_THAT(first.files, SizeIs(1));
  EXPECT_EQ(first.files[0].path, file().string());
  EXPECT_FALSE(first.files[0].was_there);
  EXPECT_TRUE(fetch(set({server.url() + "/"}), options()).files[0].was_there);
  EXPECT_THAT(server.requests(), SizeIs(1));
}

TEST_F(FetchTest, GoesOnWhereADroppedConnectionEnded) {
  const auto requests = fetch_from([&](const Request& request) {
    Reply reply = whole();
    if (request.number < 2) {
      reply.drops_after = 100'000;
    }
    return reply;
  });
  EXPECT_EQ(content(file()), body_);
  ASSERT_THAT(requests, SizeIs(3));
  EXPECT_FALSE(requests[0].from);
  EXPECT_EQ(requests[1].from, 100'000);
  EXPECT_EQ(requests[2].from, 200'000);
}

TEST_F(FetchTest, GoesOnWithThePartOfAnEarlierProcess) {
  fs::create_directories(folder_.path() / "set");
  write(part(), body_.substr(0, 1234));
  EXPECT_EQ(fetch_from([&](const Request&) { return whole(); }).at(0).from, 1234);
  EXPECT_EQ(content(file()), body_);
}

TEST_F(FetchTest, AWholePartNeedsNoServer) {
  fs::create_directories(folder_.path() / "set");
  write(part(), body_);
  EXPECT_THAT(fetch_from([&](const Request&) { return Reply{.status = 404}; }), SizeIs(0));
  EXPECT_EQ(content(file()), body_);
}

TEST_F(FetchTest, APartThatBelongsToNothingIsThrownAway) {
  fs::create_directories(folder_.path() / "set");
  for (const std::string& junk : {std::string(1000, 'j'), std::string(400'000, 'j')}) {
    fs::remove(file());
    write(part(), junk);
    fetch_from([&](const Request&) { return whole(); });
    EXPECT_EQ(content(file()), body_);
  }
}

TEST_F(FetchTest, BeginsAnewWhereTheServerIgnoresRanges) {
  fs::create_directories(folder_.path() / "set");
  write(part(), body_.substr(0, 1234));
  const auto requests =
      fetch_from([&](const Request&) { return Reply{.body = body_, .honours_range = false}; });
  EXPECT_EQ(content(file()), body_);
  EXPECT_THAT(requests, SizeIs(2));
}

TEST_F(FetchTest, BytesThatAreNotThePublishedOnesAreFetchedAgain) {
  std::string corrupt = body_;
  corrupt[150'000] ^= 1;
  const auto requests = fetch_from(
      [&](const Request& request) { return Reply{.body = request.number == 0 ? corrupt : body_}; });
  EXPECT_EQ(content(file()), body_);
  ASSERT_THAT(requests, SizeIs(2));
  EXPECT_FALSE(requests[1].from) << "none of the corrupt bytes may stay";
}

TEST_F(FetchTest, BytesThatStayWrongAreAnErrorWithBothMd5s) {
  std::string corrupt = body_;
  corrupt[150'000] ^= 1;
  const std::string text = error_from([&](const Request&) { return Reply{.body = corrupt}; });
  EXPECT_THAT(text,
              AllOf(HasSubstr("[datasets.fetch] " + file().string()),
                    HasSubstr("expected MD5 " + md5_of(body_) + ", got " + md5_of(corrupt)),
                    HasSubstr("3 tries")));
  EXPECT_FALSE(fs::exists(file()));
  EXPECT_FALSE(fs::exists(part()));
}

TEST_F(FetchTest, MoreAndFewerBytesThanExpectedAreWrong) {
  EXPECT_THAT(error_from([&](const Request&) { return Reply{.body = body_ + body_}; }),
              HasSubstr("sent more than the " + std::to_string(body_.size()) + " bytes expected"));
  EXPECT_THAT(error_from([&](const Request&) { return Reply{.body = body_.substr(0, 100)}; }),
              HasSubstr("expected " + std::to_string(body_.size()) + " bytes, got 100"));
  EXPECT_FALSE(fs::exists(part()));
}

TEST_F(FetchTest, APageOfAProxyIsCalledSo) {
  EXPECT_THAT(
      error_from([&](const Request&) { return Reply{.body = "\n<!DOCTYPE html><p>Log in"}; }),
      HasSubstr("a web page"));
}

TEST_F(FetchTest, AServerThatHasNoSuchFileIsAskedOnce) {
  const TestServer server([&](const Request&) { return Reply{.status = 404}; });
  const std::string text =
      test::error_text<DataError>([&] { fetch(set({server.url() + "/"}), options()); });
  EXPECT_THAT(text, HasSubstr(server.url() + "/data.bin: HTTP status 404. Try later"));
  EXPECT_THAT(server.requests(), SizeIs(1));
}

TEST_F(FetchTest, AServerInTroubleIsAskedThreeTimes) {
  const auto requests = fetch_from(
      [&](const Request& request) { return request.number < 2 ? Reply{.status = 503} : whole(); });
  EXPECT_THAT(requests, SizeIs(3));
  EXPECT_EQ(content(file()), body_);
  fs::remove(file());
  EXPECT_THAT(error_from([&](const Request&) { return Reply{.status = 500}; }),
              HasSubstr("HTTP status 500, 3 tries"));
}

TEST_F(FetchTest, ProgressBeginsWithWhatWasLeftAndEndsWithTheWholeFile) {
  FetchOptions told = options();
  std::vector<std::pair<int64_t, bool>> steps;
  const auto size = static_cast<int64_t>(body_.size());
  told.on_bytes = [&](const FetchProgress& progress) {
    EXPECT_EQ(progress.file, "data.bin");
    EXPECT_EQ(progress.total, size);
    steps.emplace_back(progress.bytes, progress.ended);
  };
  for (const int64_t there : {int64_t{0}, size - 1500}) {
    fs::create_directories(folder_.path() / "set");
    fs::remove(file());
    write(part(), body_.substr(0, static_cast<size_t>(there)));
    steps.clear();
    const TestServer server([&](const Request&) { return whole(); });
    fetch(set({server.url() + "/"}), told);
    ASSERT_FALSE(steps.empty());
    EXPECT_EQ(steps.front(), std::pair(there, false));
    EXPECT_EQ(steps.back(), std::pair(size, true));
  }
}

TEST_F(FetchTest, ProgressOfATransferThatFailedEndsBelowTheWholeFile) {
  FetchOptions told = options();
  std::vector<int64_t> ends;
  told.on_bytes = [&](const FetchProgress& progress) {
    if (progress.ended) {
      ends.push_back(progress.bytes);
    }
  };
  const TestServer server([&](const Request& request) {
    return request.number == 0 ? Reply{.body = std::string(body_.size(), 'x')} : whole();
  });
  fetch(set({server.url() + "/"}), told);
  EXPECT_THAT(ends, testing::ElementsAre(0, static_cast<int64_t>(body_.size())));
}

TEST_F(FetchTest, PausesGrow) {
  FetchOptions slow = options();
  slow.first_pause = 40ms;
  const TestServer server([&](const Request&) { return Reply{.status = 500}; });
  const auto start = std::chrono::steady_clock::now();
  EXPECT_THROW(fetch(set({server.url() + "/"}), slow), DataError);
  EXPECT_GE(std::chrono::steady_clock::now() - start, 120ms);
}

TEST_F(FetchTest, AServerThatFallsSilentIsGivenUp) {
  FetchOptions impatient = options();
  impatient.stall_timeout = 1s;
  impatient.tries = 1;
  fs::create_directories(folder_.path() / "set");
  write(part(), body_.substr(0, 1000));
  const TestServer server([&](const Request&) { return Reply{.body = body_, .pause = 10min}; });
  EXPECT_THAT(test::error_text<DataError>([&] { fetch(set({server.url() + "/"}), impatient); }),
              AllOf(HasSubstr("Operation too slow"),
                    HasSubstr("(after 1000 of " + std::to_string(body_.size()) + " bytes)")));
  EXPECT_EQ(content(part()), body_.substr(0, 1000));
}

TEST_F(FetchTest, TheNextAddressHelpsOutAndAllAreNamedInTheEnd) {
  const TestServer bad([&](const Request&) { return Reply{.status = 404}; });
  const TestServer good([&](const Request&) { return whole(); });
  fetch(set({bad.url() + "/", good.url() + "/"}), options());
  EXPECT_EQ(content(file()), body_);
  fs::remove(file());
  EXPECT_THAT(test::error_text<DataError>([&] {
                fetch(set({bad.url() + "/a/", bad.url() + "/b/"}), options());
              }),
              AllOf(HasSubstr("/a/data.bin: HTTP status 404; "), HasSubstr("/b/data.bin: HTTP")));
}

TEST_F(FetchTest, AnAddressWhereNobodyListensIsNamed) {
  std::string url;
  {
    const TestServer gone([&](const Request&) { return whole(); });
    url = gone.url();
  }
  EXPECT_THAT(test::error_text<DataError>([&] { fetch(set({url + "/"}), options()); }),
              AllOf(HasSubstr("Failed to connect to 127.0.0.1"), HasSubstr("3 tries")));
}

TEST_F(FetchTest, RedirectionsAreFollowedButNotToFiles) {
  const auto requests = fetch_from([&](const Request& request) {
    return request.path == "/moved" ? whole() : Reply{.status = 302, .location = "/moved"};
  });
  EXPECT_EQ(content(file()), body_);
  EXPECT_EQ(requests.at(1).path, "/moved");
  fs::remove(file());
  EXPECT_THAT(error_from([&](const Request&) {
                return Reply{.status = 302, .location = "file:///etc/hostname"};
              }),
              HasSubstr("file"));
}

TEST_F(FetchTest, AMirrorIsTakenInsteadOfTheAddresses) {
  const TestServer server([&](const Request&) { return whole(); });
  FetchOptions mirrored = options();
  mirrored.mirrors = {server.url() + "/copy/"};
  fetch(set({"http://127.0.0.1:1/"}), mirrored);
  EXPECT_EQ(content(file()), body_);
  EXPECT_EQ(server.requests().at(0).path, "/copy/set/data.bin");
}

TEST_F(FetchTest, AnotherDataHomeIsAMirrorAsUrlAndAsFolder) {
  const fs::path home = folder_.path() / "home of 50 % data";
  fs::create_directories(home / "set");
  write(home / "set/data.bin", body_);
  FetchOptions mirrored = options();
  mirrored.mirrors = {home.string()};
  fetch(set({}), mirrored);
  EXPECT_EQ(content(file()), body_);
  fs::remove(file());
  write(part(), body_.substr(0, 777));
  fs::rename(home, folder_.path() / "plain");
  mirrored.mirrors = {"file://" + (folder_.path() / "plain").string()};
  fetch(set({}), mirrored);
  EXPECT_EQ(content(file()), body_);
}

TEST_F(FetchTest, AFolderWithWrongFilesIsTriedOnceAndWithoutPauses) {
  const fs::path home = folder_.path() / "home";
  fs::create_directories(home / "set");
  FetchOptions patient = options();
  patient.first_pause = std::chrono::hours(1);
  for (const std::string& wrong :
       {std::string("short"), body_ + "long", std::string(300'000, 'x')}) {
    write(home / "set/data.bin", wrong);
    for (const std::string& mirror : {home.string(), "FILE://" + home.string()}) {
      patient.mirrors = {mirror};
      const std::string text = test::error_text<DataError>([&] { fetch(set({}), patient); });
      EXPECT_THAT(text, AllOf(HasSubstr("cannot be fetched: "), Not(HasSubstr(" tries"))));
    }
  }
}

TEST_F(FetchTest, AFolderHelpsWhereAPartOfSomethingElseLies) {
  const fs::path home = folder_.path() / "home";
  fs::create_directories(home / "set");
  write(home / "set/data.bin", body_);
  fs::create_directories(folder_.path() / "set");
  FetchOptions patient = options();
  patient.first_pause = std::chrono::hours(1);
  patient.mirrors = {home.string()};
  for (const std::string& rest : {std::string(5000, 'x'), std::string(400'000, 'x')}) {
    write(part(), rest);
    fetch(set({}), patient);
    EXPECT_EQ(content(file()), body_);
    fs::remove(file());
  }
}

TEST_F(FetchTest, TheEnvironmentNamesMirrorsInTheirOrder) {
  const TestServer server([&](const Request&) { return whole(); });
  const std::string mirrors = "file:///no/such/folder  " + server.url();
  ASSERT_EQ(setenv("ARGOSY_DATA_MIRROR", mirrors.c_str(), 1), 0);  // NOLINT(concurrency-mt-unsafe)
  fetch(set({}), options());
  EXPECT_EQ(content(file()), body_);
  fs::remove(file());
  ASSERT_EQ(setenv("ARGOSY_DATA_MIRROR", "ftp://u:secret@h", 1), 0);  // NOLINT
  EXPECT_EQ(
      test::error_text<UsageError>([&] { fetch(set({}), options()); }),
      "[datasets.mirror] \"ftp://(hidden)@h\": expected http://, https://, file:// or a folder");
  ASSERT_EQ(unsetenv("ARGOSY_DATA_MIRROR"), 0);  // NOLINT(concurrency-mt-unsafe)
}

TEST_F(FetchTest, PasswordsOfAUrlAreNotPrinted) {
  const std::string text = test::error_text<DataError>(
      [&] { fetch(set({"http://user:secret@127.0.0.1:1/"}), options()); });
  EXPECT_THAT(text,
              AllOf(HasSubstr("http://(hidden)@127.0.0.1:1/data.bin"), Not(HasSubstr("secret"))));
}

TEST_F(FetchTest, ManyWhoStartColdFetchOnce) {
  constexpr int kMany = 8;
  const TestServer server(
      [&](const Request&) { return Reply{.body = body_, .bytes_at_once = 50'000, .pause = 5ms}; });
  std::barrier start(kMany);
  std::vector<std::thread> threads;
  for (int i = 0; i < kMany; ++i) {
    threads.emplace_back([&] {
      start.arrive_and_wait();
      EXPECT_EQ(fetch(set({server.url() + "/"}), options()).files.size(), 1U);
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_THAT(server.requests(), SizeIs(1));
  EXPECT_EQ(content(file()), body_);
}

TEST_F(FetchTest, AnotherFileOfTheNameIsNeitherUsedNorOverwrittenUnlessAsked) {
  fs::create_directories(folder_.path() / "set");
  write(file(), "a part of it");
  const TestServer server([&](const Request&) { return whole(); });
  EXPECT_THAT(test::error_text<DataError>([&] { fetch(set({server.url() + "/"}), options()); }),
              AllOf(HasSubstr("is there, but is not the published file: expected"),
                    HasSubstr("bytes, got 12"),
                    HasSubstr("--replace")));
  EXPECT_EQ(content(file()), "a part of it");
  FetchOptions replace = options();
  replace.mismatch = FileMismatch::kReplace;
  EXPECT_FALSE(fetch(set({server.url() + "/"}), replace).files[0].was_there);
  EXPECT_EQ(content(file()), body_);
}

TEST_F(FetchTest, AReadOnlyFolderWithAllFilesNeedsNothing) {
  fs::create_directories(folder_.path() / "set");
  write(file(), body_);
  EXPECT_TRUE(fetch(set({}), options()).files[0].was_there);
  EXPECT_FALSE(fs::exists(folder_.path() / "set/.fetch.lock"));
}

TEST_F(FetchTest, ADistributionsOwnPackingIsToldByItsOwnLength) {
  fs::create_directories(folder_.path() / "set");
  write(file(), "repacked");
  Row repacked = set({});
  repacked.files[0].also_right = {{8, md5_of("repacked")}};
  const Fetched fetched = fetch(repacked, options());
  EXPECT_TRUE(fetched.files[0].was_there);
  EXPECT_EQ(fetched.files[0].bytes, 8);
}

TEST_F(FetchTest, AFolderThatCannotBeMadeIsNamed) {
  FetchOptions elsewhere = options();
  elsewhere.to = "/dev/null/data";
  EXPECT_THAT(test::error_text<DataError>([&] { fetch(set({}), elsewhere); }),
              AllOf(HasSubstr("/dev/null/data: cannot make the folder: Not a directory"),
                    HasSubstr("ARGOSY_DATA_HOME")));
  elsewhere.to = "/proc/self";
  EXPECT_THAT(test::error_text<DataError>([&] { fetch(set({}), elsewhere); }),
              HasSubstr("[datasets.lock] /proc/self: cannot write into the folder"));
}

// A limit on the file's size stands for a full disk.
TEST_F(FetchTest, AFullDiskIsNamedAndWhatCameIsKept) {
  const TestServer server([&](const Request&) { return whole(); });
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto old_action = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit limit{.rlim_cur = 200'000, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  const std::string text =
      test::error_text<DataError>([&] { fetch(set({server.url() + "/"}), options()); });
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, old_action);
  EXPECT_THAT(text, HasSubstr("[datasets.write] " + part().string() + ": cannot write: File too "));
  EXPECT_THAT(server.requests(), SizeIs(1)) << "another try cannot help";
  fetch(set({server.url() + "/"}), options());
  EXPECT_EQ(content(file()), body_);
  EXPECT_GT(server.requests().at(1).from, 0);
}

TEST_F(FetchTest, ADiskWithoutRoomIsKnownBeforehand) {
  Row huge = set({"http://127.0.0.1:1/"});
  huge.files[0].published.bytes = int64_t{1} << 60;
  EXPECT_THAT(test::error_text<DataError>([&] { fetch(huge, options()); }),
              HasSubstr("the disk is too full: 1,152,921,504,606,846 kB are needed"));
}

TEST_F(FetchTest, OneOfSeveralFilesMayBeChosen) {
  Row several = set({});
  several.files.push_back({"other.bin", {5, md5_of("other")}});
  const TestServer server([&](const Request&) { return Reply{.body = "other"}; });
  several.addresses = {server.url() + "/"};
  FetchOptions chosen = options();
  chosen.files = {"other.bin", "other.bin"};  // named twice, fetched once
  EXPECT_THAT(fetch(several, chosen).files, SizeIs(1));
  EXPECT_THAT(server.requests(), SizeIs(1));
  EXPECT_EQ(content(folder_.path() / "set/other.bin"), "other");
  EXPECT_FALSE(fs::exists(file()));
  chosen.files = {"others.bin"};
  EXPECT_EQ(test::error_text<UsageError>([&] { fetch(several, chosen); }),
            "[datasets.fetch] set has no file others.bin: expected one of data.bin, other.bin");
}

TEST_F(FetchTest, OfAlternativesTheFirstIsFetched) {
  Row either = set({});
  either.files.push_back({"other.bin", {5, md5_of("other")}});
  either.one_file_is_enough = true;
  const TestServer server([&](const Request&) { return whole(); });
  either.addresses = {server.url() + "/"};
  EXPECT_THAT(fetch(either, options()).files, SizeIs(1));
  EXPECT_THAT(server.requests(), SizeIs(1));
}

TEST_F(FetchTest, ASetWithoutAddressesNeedsAMirror) {
  EXPECT_EQ(test::error_text<UsageError>([&] { fetch(set({}), options()); }),
            "[datasets.fetch] set has no address, and there is no mirror");
}

TEST_F(FetchTest, NamesOfFilesStayInTheFolder) {
  for (const char* name : {"../escaped", "/tmp/escaped", "", ".."}) {
    Row bad = set({});
    bad.files[0].name = name;
    EXPECT_THAT(test::error_text<UsageError>([&] { fetch(bad, options()); }),
                HasSubstr("is no name of a file"));
  }
}

TEST(FetchNames, WhatNobodyCanFetchSaysWhatToDo) {
  for (const char* name : {"keypoints", "folder", "records", "mnist_json"}) {
    EXPECT_THAT(test::error_text<UsageError>([&] { fetch(name); }),
                HasSubstr(std::string(name) + " cannot be fetched. "));
  }
  EXPECT_THAT(test::error_text<UsageError>([] { fetch("keypoints"); }), HasSubstr("Kaggle"));
}

TEST(FetchNames, AWrongNameIsAnsweredWithTheRightOne) {
  EXPECT_EQ(test::error_text<UsageError>([] { fetch("cifar_10"); }),
            "[datasets.name] unknown data set \"cifar_10\". Did you mean cifar10?");
  EXPECT_THAT(test::error_text<UsageError>([] { fetch("imagenet"); }),
              HasSubstr("Expected one of mnist, fashion_mnist"));
}

TEST(FetchNames, TheFolderIsTheDataHomesOrTheCaches) {
  const std::string home = std::getenv("HOME") == nullptr ? "" : std::getenv("HOME");  // NOLINT
  ASSERT_EQ(setenv("HOME", "/someone", 1), 0);                                         // NOLINT
  EXPECT_EQ(folder_of("mnist"), "/someone/.cache/argosy/data/mnist");
  ASSERT_EQ(setenv("ARGOSY_DATA_HOME", "/data", 1), 0);  // NOLINT
  EXPECT_EQ(folder_of("mnist"), "/data/mnist");
  ASSERT_EQ(unsetenv("ARGOSY_DATA_HOME"), 0);  // NOLINT
  ASSERT_EQ(unsetenv("HOME"), 0);              // NOLINT
  EXPECT_THROW((void)folder_of("mnist"), ConfigError);
  ASSERT_EQ(setenv("HOME", home.c_str(), 1), 0);  // NOLINT
}

TEST(FetchNames, WhatWasInstalledBesideTheProgramIsFound) {
  const std::string number = std::to_string(getpid());
  const fs::path own = fs::read_symlink("/proc/self/exe").parent_path().parent_path();
  const fs::path folder = own / "share/datasets" / ("made-up-" + number);
  EXPECT_THAT(folder_of("made_up_" + number), HasSubstr(".cache/argosy/data"));
  fs::create_directories(folder);
  EXPECT_EQ(folder_of("made_up_" + number), folder);
  fs::remove(folder);
}

}  // namespace
}  // namespace argosy::datasets
