#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace argosy::rendezvous {

/// How the connections of a process to the job's store are encrypted, as the user wants it.
///
/// Both ends show a certificate, and each demands that the same authority has signed the other's.
/// Without files the authority is made from the job's token, so only those who know the token can
/// sign. TLS protects the store alone: data of collectives is not encrypted.
struct TlsChoice {
  bool on = false;
  std::string certificate_file{};  ///< PEM; intermediate certificates follow the first
  std::string key_file{};          ///< PEM, without a passphrase
  std::string authority_file{};    ///< PEM: one or more
  /// The name that the certificate of the store's host must bear. Empty: the host as it is called.
  std::string name{};

  [[nodiscard]] bool from_files() const { return !certificate_file.empty(); }
};

/// Returns `choice`, switched on or off as `said`. When nothing was said, it is on if files are
/// given. Errors: ConfigError when only some of the three files are given.
[[nodiscard]] TlsChoice settle_tls(std::optional<bool> said, TlsChoice choice);
/// Reads ARGOSY_TLS, _TLS_CERT, _TLS_KEY, _TLS_CA and _TLS_NAME; see docs/reference/environment.md.
/// Errors: ConfigError when only some of the three files are given.
[[nodiscard]] TlsChoice read_tls(
    const std::function<std::optional<std::string>(const char*)>& lookup);
/// Returns `choice` as variables for other processes.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> tls_variables(
    const TlsChoice& choice);

/// What a connection needs. All texts are PEM.
struct Tls {
  std::string certificate{};
  std::string key{};  ///< secret; never printed
  std::string authority{};
  std::string name{};  ///< as in TlsChoice

  [[nodiscard]] bool on() const { return !certificate.empty(); }
};

/// Reads the files of `choice`, or makes certificates from `token`. Returns an empty Tls when it is
/// off.
/// Errors: ConfigError when the token is shorter than 16 characters and could be guessed;
/// ConfigError naming the file when it cannot be read, is not PEM, has expired, or belongs to
/// another key.
[[nodiscard]] Tls make_tls(const TlsChoice& choice, const std::string& token);

/// Returns the first name of a certificate (PEM): a DNS name, else an address, else its common
/// name, else "".
[[nodiscard]] std::string name_of_certificate(const std::string& pem);

}  // namespace argosy::rendezvous
