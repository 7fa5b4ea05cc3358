#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace argosy::rendezvous {

/// How a process's connections to the job's store are to be encrypted, as the user said it.
///
/// Both ends show a certificate, and each demands that the other's is signed by the same authority.
/// Without files the authority is made from the job's token: who knows that can sign, nobody else.
/// Only the control plane is meant: what collectives send is not encrypted.
struct TlsChoice {
  bool on = false;
  std::string certificate_file{};  ///< PEM, with those between it and the authority's behind it
  std::string key_file{};          ///< PEM, without a passphrase
  std::string authority_file{};    ///< PEM: one or more
  /// Name that the certificate of whoever hosts the store must bear. Empty: the host as it is
  /// called.
  std::string name{};

  [[nodiscard]] bool from_files() const { return !certificate_file.empty(); }
};

/// `choice` switched on where that was said or, when nothing was, where files are given.
/// Errors: ConfigError: only some of the three files.
[[nodiscard]] TlsChoice settle_tls(std::optional<bool> said, TlsChoice choice);
/// ARGOSY_TLS, _TLS_CERT, _TLS_KEY, _TLS_CA, _TLS_NAME; see docs/reference/environment.md.
/// Errors: ConfigError: only some of the three files.
[[nodiscard]] TlsChoice read_tls(
    const std::function<std::optional<std::string>(const char*)>& lookup);
/// The same as variables, for other processes.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> tls_variables(
    const TlsChoice& choice);

/// What a connection needs; all texts are PEM.
struct Tls {
  std::string certificate{};
  std::string key{};  ///< secret; never printed
  std::string authority{};
  std::string name{};  ///< as in TlsChoice

  [[nodiscard]] bool on() const { return !certificate.empty(); }
};

/// Reads or makes what `choice` says; off: nothing.
/// Errors: ConfigError: a token below 16 characters, which could be guessed; a file that cannot be
/// read, is no PEM, has expired, or a key of another certificate. Names the file.
[[nodiscard]] Tls make_tls(const TlsChoice& choice, const std::string& token);

/// The first name that a certificate (PEM) bears: a DNS name, else an address, else its common
/// name; "": none.
[[nodiscard]] std::string name_of_certificate(const std::string& pem);

}  // namespace argosy::rendezvous
