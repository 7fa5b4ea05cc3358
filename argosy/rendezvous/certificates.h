#pragma once

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/x509.h>

#include <memory>
#include <string>
#include <vector>

/// Owns OpenSSL's certificates and keys. Internal to the room.
namespace argosy::rendezvous::certificates {

template <auto release>
struct Release {
  template <typename T>
  void operator()(T* object) const {
    release(object);
  }
};
using Key = std::unique_ptr<EVP_PKEY, Release<EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, Release<X509_free>>;
using Bio = std::unique_ptr<BIO, Release<BIO_free_all>>;

/// Returns the first certificate, or nullptr if there is none or it has a passphrase.
[[nodiscard]] Certificate read_certificate(const std::string& pem);
/// Returns all certificates.
[[nodiscard]] std::vector<Certificate> read_certificates(const std::string& pem);
/// Returns why `chain` is not trusted. Its first certificate, with those that follow it, must be
/// signed by one of `authority`. Returns "" if it is, and is valid now.
[[nodiscard]] std::string why_not_signed(const std::string& chain, const std::string& authority);
/// Returns the private key, or nullptr if there is none or it has a passphrase.
[[nodiscard]] Key read_key(const std::string& pem);
[[nodiscard]] std::string to_pem(X509& certificate);
[[nodiscard]] std::string to_pem(EVP_PKEY& key);

/// Returns the signing key of a job's token. Everyone who knows the token gets the same key.
[[nodiscard]] Key authority_key(const std::string& token);
[[nodiscard]] Certificate make_authority(EVP_PKEY& key);
/// Returns a new key on the curve P-256.
[[nodiscard]] Key make_key();
/// Returns a certificate for the DNS name `name`. It is valid for as long as its authority, because
/// a job's clocks may differ.
[[nodiscard]] Certificate make_certificate(EVP_PKEY& key,
                                           const std::string& name,
                                           EVP_PKEY& authority);

/// Returns OpenSSL's last complaint, for messages, and forgets it.
[[nodiscard]] std::string last_complaint();

}  // namespace argosy::rendezvous::certificates
