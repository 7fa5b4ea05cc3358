#pragma once

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/x509.h>

#include <memory>
#include <string>
#include <vector>

/// OpenSSL's certificates and keys with owners. Internal to the room.
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

/// nullptr: no PEM of that kind, or one with a passphrase.
[[nodiscard]] Certificate read_certificate(const std::string& pem);
/// All of them; empty: there is none.
[[nodiscard]] std::vector<Certificate> read_certificates(const std::string& pem);
/// Why the first certificate of `chain`, with those behind it, is not signed by any of `authority`;
/// "": it is, and valid now.
[[nodiscard]] std::string why_not_signed(const std::string& chain, const std::string& authority);
[[nodiscard]] Key read_key(const std::string& pem);
[[nodiscard]] std::string to_pem(X509& certificate);
[[nodiscard]] std::string to_pem(EVP_PKEY& key);

/// The signing key that a job's token stands for: everyone who knows the token gets the same.
[[nodiscard]] Key authority_key(const std::string& token);
[[nodiscard]] Certificate make_authority(EVP_PKEY& key);
/// A new key on the curve P-256.
[[nodiscard]] Key make_key();
/// `name`: the DNS name that it bears. Valid for as long as its authority: a job's clocks may
/// differ.
[[nodiscard]] Certificate make_certificate(EVP_PKEY& key,
                                           const std::string& name,
                                           EVP_PKEY& authority);

/// What OpenSSL complained of last, for messages; forgets it.
[[nodiscard]] std::string last_complaint();

}  // namespace argosy::rendezvous::certificates
