// The store over TLS: certificates made from the job's token, certificates of the user's own, and
// callers that have neither.
#include "argosy/rendezvous/tls.h"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/os/fd.h"
#include "argosy/os/socket.h"
#include "argosy/rendezvous/certificates.h"
#include "argosy/rendezvous/job_token.h"
#include "argosy/rendezvous/store_client.h"
#include "argosy/rendezvous/store_kinds.h"
#include "argosy/rendezvous/store_server.h"

#include "tests/support/error_text.h"
#include "tests/support/temp_dir.h"

namespace argosy::rendezvous {
namespace {

using std::chrono::milliseconds;
using test::error_text;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kToken = "0123456789abcdef";

Tls from_token(const std::string& token) {
  return make_tls({.on = true}, token);
}

/// A process's own certificate, signed by an authority that `authority` stands for, as three files.
class Files {
 public:
  Files(const std::string& authority, const std::string& name) {
    const certificates::Key signs = certificates::authority_key(authority);
    const certificates::Key key = certificates::make_key();
    write("cert.pem", certificates::to_pem(*certificates::make_certificate(*key, name, *signs)));
    write("key.pem", certificates::to_pem(*key));
    write("ca.pem", certificates::to_pem(*certificates::make_authority(*signs)));
  }
  void write(const std::string& file, const std::string& text) const {
    std::ofstream(path(file)) << text;
  }
  [[nodiscard]] std::string path(const std::string& file) const {
    return (folder_.path() / file).string();
  }
  [[nodiscard]] TlsChoice choice(const std::string& name = "") const {
    return {.on = true,
            .certificate_file = path("cert.pem"),
            .key_file = path("key.pem"),
            .authority_file = path("ca.pem"),
            .name = name};
  }

 private:
  test::TempDir folder_;
};

/// What connecting and one call come to.
std::string connect(const StoreServer& server,
                    const Tls& tls,
                    const Deadline& deadline = soon(),
                    const std::string& token = kToken) {
  return error_text<Error>([&] {
    const auto store = connect_store("127.0.0.1", server.port(), token, deadline, tls);
    store->set("key", "value", soon());
    EXPECT_EQ(store->get("key", soon()), "value");
  });
}

TEST(StoreTls, WhoKnowsTheTokenIsLetIn) {
  const auto server = StoreServer::start({.token = kToken, .tls = from_token(kToken)});
  EXPECT_EQ(connect(*server, from_token(kToken)), "nothing was thrown");
}

TEST(StoreTls, ACertificateOfAnotherTokenIsRefusedAtOnceAndExplained) {
  const auto server = StoreServer::start({.token = kToken, .tls = from_token(kToken)});
  const std::string other = "another token of 16";
  const auto start = Deadline::Clock::now();
  EXPECT_THAT(connect(*server, from_token(other)),
              AllOf(HasSubstr("[rendezvous.connect] the store at 127.0.0.1:"),
                    HasSubstr("is not trusted"),
                    HasSubstr("ARGOSY_TOKEN"),
                    Not(HasSubstr(other)),
                    Not(HasSubstr(kToken))));
  EXPECT_LT(Deadline::Clock::now() - start, std::chrono::seconds(10));
}

TEST(StoreTls, WhoTrustsTheServerButIsNotTrustedIsRefused) {
  Tls half = from_token(kToken);
  const Tls other = from_token("another token of 16");
  half.certificate = other.certificate;
  half.key = other.key;
  const auto server = StoreServer::start({.token = kToken, .tls = from_token(kToken)});
  EXPECT_THAT(connect(*server, half, Deadline::after(milliseconds(700))),
              HasSubstr("[rendezvous.connect]"));
  EXPECT_TRUE(server->local()->keys("", soon()).empty());
}

TEST(StoreTls, WithoutItOnOneSideNobodyIsLetInAndBothWaysAreExplained) {
  const auto encrypted = StoreServer::start({.token = kToken, .tls = from_token(kToken)});
  const auto plain = StoreServer::start({.token = kToken});
  EXPECT_THAT(connect(*encrypted, {}, Deadline::after(milliseconds(700))),
              AllOf(HasSubstr("Socket closed"), HasSubstr("--tls, which this process does not")));
  EXPECT_THAT(connect(*plain, from_token(kToken)), HasSubstr("it does not use TLS"));
  EXPECT_TRUE(encrypted->local()->keys("", soon()).empty());
}

TEST(StoreTls, TheTokenIsDemandedStill) {
  const Files files("an authority of ours", "127.0.0.1");
  const Tls tls = make_tls(files.choice("127.0.0.1"), "");
  const auto server = StoreServer::start({.token = kToken, .tls = tls});
  EXPECT_THAT(connect(*server, tls, soon(), "guessed"), HasSubstr("wrong job token"));
}

/// Passes one connection on to `port` and keeps what goes through, both ways.
class Tap {
 public:
  explicit Tap(uint16_t port)
      : listener_(*os::Listener::listen_tcp("127.0.0.1", 0)), passing_([this, port] {
          const os::UniqueFd client = *listener_.accept(soon());
          const os::UniqueFd server = *os::connect_tcp("127.0.0.1", port, soon());
          pass_on(client.get(), server.get());
        }) {}
  [[nodiscard]] uint16_t port() const { return listener_.port(); }
  /// After the client's end.
  [[nodiscard]] std::string heard() {
    passing_.join();
    return heard_;
  }

 private:
  void pass_on(int client, int server) {
    std::array<pollfd, 2> ends{{{client, POLLIN, 0}, {server, POLLIN, 0}}};
    std::array<char, 4096> bytes{};
    while (::poll(ends.data(), ends.size(), 20'000) > 0) {
      for (const pollfd& end : ends) {
        if (end.revents == 0) {
          continue;
        }
        const ssize_t got = ::read(end.fd, bytes.data(), bytes.size());
        if (got <= 0) {
          return;
        }
        heard_.append(bytes.data(), static_cast<size_t>(got));
        const int other = end.fd == client ? server : client;
        if (!os::write_all(other, {bytes.data(), static_cast<size_t>(got)}).ok()) {
          return;
        }
      }
    }
  }

  os::Listener listener_;
  std::string heard_{};
  std::thread passing_;
};

TEST(StoreTls, WhoListensOnTheWireLearnsNothing) {
  for (const bool encrypted : {false, true}) {
    const Tls tls = encrypted ? from_token(kToken) : Tls();
    const auto server = StoreServer::start({.token = kToken, .tls = tls});
    Tap tap(server->port());
    connect_store("127.0.0.1", tap.port(), kToken, soon(), tls)->set("k", "a value", soon());
    const std::string heard = tap.heard();
    EXPECT_EQ(heard.find("a value") == std::string::npos, encrypted);
    EXPECT_EQ(heard.find("argosy-protocol") == std::string::npos, encrypted);
    EXPECT_GT(heard.size(), 100U);
  }
}

TEST(StoreTls, CertificatesOfTheUsersOwnAreTakenByTheNameTheyBear) {
  const Files files("an authority of ours", "node0.cluster");
  const auto server =
      StoreServer::start({.token = kToken, .tls = make_tls(files.choice(), kToken)});
  EXPECT_EQ(connect(*server, make_tls(files.choice("node0.cluster"), "")), "nothing was thrown");
  EXPECT_THAT(connect(*server, make_tls(files.choice("node7.cluster"), "")),
              HasSubstr("does not bear the name \"node7.cluster\""));
  const Files strangers("another authority", "node0.cluster");
  EXPECT_THAT(connect(*server, make_tls(strangers.choice("node0.cluster"), "")),
              HasSubstr("not signed by the authority of this job"));
}

/// Gives `certificate` the issuer's name and signature.
void sign_as(X509& certificate, X509& issuer, EVP_PKEY& key) {
  ASSERT_EQ(X509_set_issuer_name(&certificate, X509_get_subject_name(&issuer)), 1);
  ASSERT_GT(X509_sign(&certificate, &key, nullptr), 0);
}

// As a site's public-key infrastructure does it: the root signs for an authority of the cluster,
// which signs for the nodes.
TEST(StoreTls, AnAuthorityBetweenIsFollowedToTheRoot) {
  const certificates::Key root_key = certificates::authority_key("the root of a site");
  const certificates::Key between_key = certificates::authority_key("the cluster's authority");
  const certificates::Key key = certificates::make_key();
  const certificates::Certificate root = certificates::make_authority(*root_key);
  const certificates::Certificate between = certificates::make_authority(*between_key);
  X509_NAME* const name = X509_get_subject_name(between.get());
  const std::string cluster = "cluster";
  ASSERT_EQ(X509_NAME_add_entry_by_txt(name,
                                       "OU",
                                       MBSTRING_UTF8,
                                       reinterpret_cast<const unsigned char*>(cluster.data()),
                                       static_cast<int>(cluster.size()),
                                       -1,
                                       0),
            1);
  sign_as(*between, *root, *root_key);
  const certificates::Certificate leaf = certificates::make_certificate(*key, "node0", *root_key);
  sign_as(*leaf, *between, *between_key);

  const Files files("not used", "node0");
  files.write("key.pem", certificates::to_pem(*key));
  files.write("cert.pem", certificates::to_pem(*leaf) + certificates::to_pem(*between));
  files.write("ca.pem", certificates::to_pem(*root));
  const Tls tls = make_tls(files.choice("node0"), "");
  const auto server = StoreServer::start({.token = kToken, .tls = tls});
  EXPECT_EQ(connect(*server, tls), "nothing was thrown");

  files.write("cert.pem", certificates::to_pem(*leaf));  // without what lies between
  EXPECT_THAT(error_text<ConfigError>([&] { (void)make_tls(files.choice("node0"), ""); }),
              AllOf(HasSubstr("it cannot be checked by"), HasSubstr("issuer certificate")));
  files.write("ca.pem", certificates::to_pem(*between));  // all that this job need trust
  const Tls narrow = make_tls(files.choice("node0"), "");
  const auto other = StoreServer::start({.token = kToken, .tls = narrow});
  EXPECT_EQ(connect(*other, narrow), "nothing was thrown");
}

TEST(StoreTls, TheFirstNameOfACertificateIsFound) {
  const certificates::Key signs = certificates::authority_key(kToken);
  const certificates::Key key = certificates::make_key();
  EXPECT_EQ(name_of_certificate(
                certificates::to_pem(*certificates::make_certificate(*key, "a.b", *signs))),
            "a.b");
  EXPECT_EQ(name_of_certificate(certificates::to_pem(*certificates::make_authority(*signs))),
            "Argosy job");
  EXPECT_EQ(name_of_certificate("no PEM"), "");
}

TEST(TlsChoice, AGuessableTokenIsRefused) {
  EXPECT_THAT(
      error_text<ConfigError>([] { (void)from_token("0123456789abcde"); }),
      AllOf(HasSubstr("has 15"), HasSubstr("16 random characters or more in ARGOSY_TOKEN")));
  EXPECT_THAT(error_text<ConfigError>([] { (void)from_token(""); }), HasSubstr("is not set"));
  EXPECT_THAT(error_text<ConfigError>([] { (void)from_token("abcabcabcabcabcabc"); }),
              HasSubstr("can be guessed"));
  EXPECT_FALSE(make_tls({}, "").on());
}

TEST(TlsChoice, FilesThatCannotServeAreNamed) {
  const Files files("ours", "a");
  const Files others("ours", "b");
  const auto with = [&](auto change) {
    TlsChoice choice = files.choice();
    change(choice);
    return error_text<ConfigError>([&] { (void)make_tls(choice, ""); });
  };
  EXPECT_THAT(with([&](TlsChoice& c) { c.key_file = others.path("key.pem"); }),
              HasSubstr("not the key of the certificate " + files.path("cert.pem")));
  EXPECT_THAT(with([&](TlsChoice& c) { c.certificate_file = files.path("none.pem"); }),
              AllOf(HasSubstr("none.pem"), HasSubstr("No such file")));
  EXPECT_THAT(with([&](TlsChoice& c) { c.certificate_file = files.path("key.pem"); }),
              HasSubstr("expected a certificate in PEM form"));
  EXPECT_THAT(with([&](TlsChoice& c) { c.key_file = files.path("cert.pem"); }),
              HasSubstr("expected a private key in PEM form"));
  const Files strangers("another authority", "a");
  EXPECT_THAT(with([&](TlsChoice& c) { c.authority_file = strangers.path("ca.pem"); }),
              AllOf(HasSubstr(files.path("cert.pem") + ": it cannot be checked by"),
                    HasSubstr("certificate signature failure")));
  EXPECT_THAT(with([&](TlsChoice& c) { c.key_file = "/tmp"; }), HasSubstr("Is a directory"));
  files.write("empty.pem", "");
  EXPECT_THAT(with([&](TlsChoice& c) { c.authority_file = files.path("empty.pem"); }),
              HasSubstr("empty.pem: it is empty"));
}

/// Names and values.
using Variables = std::map<std::string, std::string>;
std::function<std::optional<std::string>(const char*)> lookup(const Variables& variables) {
  return [&variables](const char* name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
}

TEST(TlsChoice, VariablesSayItToOtherProcesses) {
  const TlsChoice files{
      .on = true, .certificate_file = "/c", .key_file = "/k", .authority_file = "/a", .name = "n"};
  for (const TlsChoice& choice : {files, TlsChoice{.on = true}, TlsChoice{}}) {
    Variables variables;
    for (const auto& [name, value] : tls_variables(choice)) {
      variables[name] = value;
    }
    const TlsChoice read = read_tls(lookup(variables));
    EXPECT_EQ(read.on, choice.on);
    EXPECT_EQ(read.certificate_file, choice.certificate_file);
    EXPECT_EQ(read.key_file, choice.key_file);
    EXPECT_EQ(read.authority_file, choice.authority_file);
    EXPECT_EQ(read.name, choice.name);
  }
  const Variables one_file{{"ARGOSY_TLS_CERT", "/c"}};
  EXPECT_THAT(error_text<ConfigError>([&] { (void)read_tls(lookup(one_file)); }),
              HasSubstr("expected all three or none"));
  const Variables typo{{"ARGOSY_TLS", "of"}};
  EXPECT_THAT(error_text<ConfigError>([&] { (void)read_tls(lookup(typo)); }),
              HasSubstr("ARGOSY_TLS=of: expected 1 or 0"));
  const Variables off{{"ARGOSY_TLS", "0"}, {"ARGOSY_TLS_CERT", "/c"}};
  EXPECT_FALSE(read_tls(lookup(off)).on);
}

TEST(JobToken, ComesFromTheVariableOrTheFirstLineOfAFile) {
  const Files files("ours", "a");
  files.write("token", "  from a file \nsecond line\n");
  files.write("empty", "\n");
  const Variables both{{"ARGOSY_TOKEN", "said"}, {"ARGOSY_TOKEN_FILE", files.path("token")}};
  EXPECT_EQ(job_token(lookup(both)), "said");
  const Variables file{{"ARGOSY_TOKEN_FILE", files.path("token")}};
  EXPECT_EQ(job_token(lookup(file)), "from a file");
  EXPECT_EQ(job_token(lookup({})), "");
  for (const char* bad : {"empty", "none"}) {
    const Variables wrong{{"ARGOSY_TOKEN_FILE", files.path(bad)}};
    EXPECT_THAT(error_text<ConfigError>([&] { (void)job_token(lookup(wrong)); }),
                HasSubstr(files.path(bad)));
  }
}

}  // namespace
}  // namespace argosy::rendezvous
