#include "argosy/rendezvous/tls.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <openssl/x509v3.h>

#include <array>
#include <filesystem>
#include <set>

#include "argosy/base/error.h"
#include "argosy/base/strings.h"
#include "argosy/os/fd.h"
#include "argosy/rendezvous/certificates.h"

namespace argosy::rendezvous {
namespace {

/// What every certificate that is made from a token bears.
constexpr const char* kJobName = "job.argosy.internal";
constexpr size_t kShortestToken = 16;

std::string read_text(const std::string& path) {
  std::string text = os::read_file(path).or_throw<ConfigError>("rendezvous.tls");
  if (text.empty()) {
    throw ConfigError("rendezvous.tls", path + ": it is empty. Expected a file in PEM form.");
  }
  return text;
}

/// Randomness cannot be seen, but its absence can: "aaaaaaaaaaaaaaaa".
bool guessable(const std::string& token) {
  constexpr size_t kFewestLetters = 6;
  return token.size() < kShortestToken ||
         std::set<char>(token.begin(), token.end()).size() < kFewestLetters;
}

Tls from_token(const std::string& token) {
  if (guessable(token)) {
    throw ConfigError(
        "rendezvous.tls",
        fmt::format("TLS makes its certificates from the job's token, which {}. Expected {} random "
                    "characters or more in ARGOSY_TOKEN, the same on all nodes (openssl rand -hex "
                    "16 makes one), or certificates of your own (--tls_cert, --tls_key, --tls_ca).",
                    token.empty()                   ? "is not set"
                    : token.size() < kShortestToken ? fmt::format("has {}", token.size())
                                                    : "can be guessed",
                    kShortestToken));
  }
  const certificates::Key authority = certificates::authority_key(token);
  const certificates::Key key = certificates::make_key();
  return {.certificate =
              certificates::to_pem(*certificates::make_certificate(*key, kJobName, *authority)),
          .key = certificates::to_pem(*key),
          .authority = certificates::to_pem(*certificates::make_authority(*authority)),
          .name = kJobName};
}

Tls from_files(const TlsChoice& choice) {
  Tls tls{.certificate = read_text(choice.certificate_file),
          .key = read_text(choice.key_file),
          .authority = read_text(choice.authority_file),
          .name = choice.name};
  const auto refuse = [](const std::string& path, const std::string& why) {
    (void)certificates::last_complaint();
    throw ConfigError("rendezvous.tls", fmt::format("{}: {}.", path, why));
  };
  const certificates::Certificate certificate = certificates::read_certificate(tls.certificate);
  const certificates::Key key = certificates::read_key(tls.key);
  if (!certificate) {
    refuse(choice.certificate_file, "expected a certificate in PEM form (BEGIN CERTIFICATE)");
  }
  if (!key) {
    refuse(choice.key_file, "expected a private key in PEM form, without a passphrase");
  }
  if (!certificates::read_certificate(tls.authority)) {
    refuse(choice.authority_file, "expected certificates in PEM form (BEGIN CERTIFICATE)");
  }
  if (X509_check_private_key(certificate.get(), key.get()) != 1) {
    refuse(choice.key_file, "this is not the key of the certificate " + choice.certificate_file);
  }
  if (const std::string why = certificates::why_not_signed(tls.certificate, tls.authority);
      !why.empty()) {
    refuse(
        choice.certificate_file,
        fmt::format("it cannot be checked by {}: {}. See openssl verify, and this machine's clock",
                    choice.authority_file,
                    why));
  }
  return tls;
}

std::string text_of(const ASN1_STRING& value) {
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(&value)),
          static_cast<size_t>(ASN1_STRING_length(&value))};
}

std::string address_of(const ASN1_OCTET_STRING& value) {
  constexpr int kIpv4 = 4;
  constexpr int kIpv6 = 16;
  std::array<char, INET6_ADDRSTRLEN> text{};
  const int size = ASN1_STRING_length(&value);
  if (size != kIpv4 && size != kIpv6) {
    return "";
  }
  const int family = size == kIpv4 ? AF_INET : AF_INET6;
  ::inet_ntop(family, ASN1_STRING_get0_data(&value), text.data(), text.size());
  return text.data();
}

std::string alternative_name(X509& certificate) {
  using Names = std::unique_ptr<GENERAL_NAMES, certificates::Release<GENERAL_NAMES_free>>;
  const Names names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(&certificate, NID_subject_alt_name, nullptr, nullptr)));
  std::string address;
  for (int i = 0; names && i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME& name = *sk_GENERAL_NAME_value(names.get(), i);
    if (name.type == GEN_DNS) {
      return text_of(*name.d.dNSName);
    }
    if (name.type == GEN_IPADD && address.empty()) {
      address = address_of(*name.d.iPAddress);
    }
  }
  return address;
}

}  // namespace

std::string name_of_certificate(const std::string& pem) {
  const certificates::Certificate certificate = certificates::read_certificate(pem);
  if (!certificate) {
    (void)certificates::last_complaint();
    return "";
  }
  if (std::string name = alternative_name(*certificate); !name.empty()) {
    return name;
  }
  X509_NAME* const subject = X509_get_subject_name(certificate.get());
  const int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
  return at < 0 ? "" : text_of(*X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
}

TlsChoice settle_tls(std::optional<bool> said, TlsChoice choice) {
  const int files = static_cast<int>(!choice.certificate_file.empty()) +
                    static_cast<int>(!choice.key_file.empty()) +
                    static_cast<int>(!choice.authority_file.empty());
  choice.on = said.value_or(files > 0);
  if (choice.on && files != 0 && files != 3) {
    throw ConfigError(
        "rendezvous.tls",
        fmt::format("certificate \"{}\", key \"{}\", authority \"{}\": expected all three or none. "
                    "Give --tls_cert, --tls_key and --tls_ca (ARGOSY_TLS_CERT, _KEY, _CA).",
                    choice.certificate_file,
                    choice.key_file,
                    choice.authority_file));
  }
  return choice;
}

TlsChoice read_tls(const std::function<std::optional<std::string>(const char*)>& lookup) {
  std::optional<bool> said;
  if (const std::optional<std::string> on = lookup("ARGOSY_TLS")) {
    const std::string word = strings::to_lower(*on);
    said = word == "1" || word == "true" || word == "yes" || word == "on";
    if (!*said && word != "0" && word != "false" && word != "no" && word != "off") {
      throw ConfigError("rendezvous.tls", fmt::format("ARGOSY_TLS={}: expected 1 or 0.", *on));
    }
  }
  return settle_tls(said,
                    {.certificate_file = lookup("ARGOSY_TLS_CERT").value_or(""),
                     .key_file = lookup("ARGOSY_TLS_KEY").value_or(""),
                     .authority_file = lookup("ARGOSY_TLS_CA").value_or(""),
                     .name = lookup("ARGOSY_TLS_NAME").value_or("")});
}

std::vector<std::pair<std::string, std::string>> tls_variables(const TlsChoice& choice) {
  std::vector<std::pair<std::string, std::string>> all{{"ARGOSY_TLS", choice.on ? "1" : "0"}};
  if (choice.on && choice.from_files()) {
    const auto wherever = [](const std::string& path) {  // the rank's folder may be another
      return std::filesystem::absolute(path).string();
    };
    all.insert(all.end(),
               {{"ARGOSY_TLS_CERT", wherever(choice.certificate_file)},
                {"ARGOSY_TLS_KEY", wherever(choice.key_file)},
                {"ARGOSY_TLS_CA", wherever(choice.authority_file)},
                {"ARGOSY_TLS_NAME", choice.name}});
  }
  return all;
}

Tls make_tls(const TlsChoice& choice, const std::string& token) {
  if (!choice.on) {
    return {};
  }
  return choice.from_files() ? from_files(choice) : from_token(token);
}

}  // namespace argosy::rendezvous
