#include "argosy/rendezvous/certificates.h"

#include <openssl/asn1.h>
#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include <array>
#include <cstdint>
#include <string_view>

#include "argosy/base/error.h"

namespace argosy::rendezvous::certificates {
namespace {

constexpr const char* kAuthorityName = "Argosy job";
/// Another form of certificate would get another label, hence another key.
constexpr std::string_view kLabel = "argosy control plane authority 1";

/// Only memory or OpenSSL's own set-up can be the trouble.
void demand(bool worked, const char* what) {
  if (!worked) {
    throw InternalError("rendezvous.tls",
                        std::string("OpenSSL cannot ") + what + ": " + last_complaint());
  }
}

Bio memory(std::string_view text) {
  Bio bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
  demand(bio != nullptr, "read memory");
  return bio;
}

std::string text_of(BIO& bio) {
  char* start = nullptr;
  const long size = BIO_get_mem_data(&bio, &start);
  return {start, static_cast<size_t>(size)};
}

/// sk_X509_free() is a macro; the certificates have other owners.
void sk_X509_free_only(STACK_OF(X509) * stack) {
  sk_X509_free(stack);
}

/// Nobody is asked for a passphrase.
int no_passphrase(char* /*buffer*/, int /*size*/, int /*writing*/, void* /*unused*/) {
  return 0;
}

void add_extension(X509& certificate, int kind, const std::string& value) {
  using Extension = std::unique_ptr<X509_EXTENSION, Release<X509_EXTENSION_free>>;
  X509V3_CTX context{};
  X509V3_set_ctx(&context, &certificate, &certificate, nullptr, nullptr, 0);
  const Extension extension(X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str()));
  demand(extension != nullptr && X509_add_ext(&certificate, extension.get(), -1) == 1,
         "make an extension");
}

void set_name(X509_NAME* name, std::string_view text) {
  demand(X509_NAME_add_entry_by_txt(name,
                                    "CN",
                                    MBSTRING_UTF8,
                                    reinterpret_cast<const unsigned char*>(text.data()),
                                    static_cast<int>(text.size()),
                                    -1,
                                    0) == 1,
         "name a certificate");
}

/// All but extensions and signature. The job's end is its end, not a date.
Certificate blank(EVP_PKEY& key, std::string_view name) {
  Certificate made(X509_new());
  demand(made != nullptr, "make a certificate");
  constexpr long kVersion3 = 2;
  uint64_t serial = 0;
  demand(RAND_bytes(reinterpret_cast<unsigned char*>(&serial), sizeof serial) == 1,
         "draw a number");
  const bool filled =
      X509_set_version(made.get(), kVersion3) == 1 &&
      ASN1_INTEGER_set_uint64(X509_get_serialNumber(made.get()), (serial >> 1U) | 1U) == 1 &&
      ASN1_TIME_set_string(X509_getm_notBefore(made.get()), "20200101000000Z") == 1 &&
      ASN1_TIME_set_string(X509_getm_notAfter(made.get()), "99991231235959Z") == 1 &&
      X509_set_pubkey(made.get(), &key) == 1;
  demand(filled, "fill in a certificate");
  set_name(X509_get_subject_name(made.get()), name);
  set_name(X509_get_issuer_name(made.get()), kAuthorityName);
  return made;
}

/// Ed25519 digests by itself.
void sign(X509& certificate, EVP_PKEY& authority) {
  demand(X509_sign(&certificate, &authority, nullptr) > 0, "sign a certificate");
}

}  // namespace

std::string last_complaint() {
  std::array<char, 256> text{};
  const unsigned long code = ERR_peek_last_error();
  ERR_error_string_n(code, text.data(), text.size());
  ERR_clear_error();
  return code == 0 ? "no reason given" : text.data();
}

Certificate read_certificate(const std::string& pem) {
  return Certificate(PEM_read_bio_X509(memory(pem).get(), nullptr, no_passphrase, nullptr));
}

std::vector<Certificate> read_certificates(const std::string& pem) {
  const Bio bio = memory(pem);
  std::vector<Certificate> all;
  while (X509* one = PEM_read_bio_X509(bio.get(), nullptr, no_passphrase, nullptr)) {
    all.emplace_back(one);
  }
  ERR_clear_error();  // the end of the file is one
  return all;
}

std::string why_not_signed(const std::string& chain, const std::string& authority) {
  using Store = std::unique_ptr<X509_STORE, Release<X509_STORE_free>>;
  using Check = std::unique_ptr<X509_STORE_CTX, Release<X509_STORE_CTX_free>>;
  using Stack = std::unique_ptr<STACK_OF(X509), Release<sk_X509_free_only>>;
  const Store store(X509_STORE_new());
  const Check check(X509_STORE_CTX_new());
  const Stack between(sk_X509_new_null());
  demand(store && check && between, "make a store of certificates");
  // As gRPC checks the other side's: an intermediate authority is enough.
  X509_STORE_set_flags(store.get(), X509_V_FLAG_PARTIAL_CHAIN | X509_V_FLAG_TRUSTED_FIRST);
  const std::vector<Certificate> trusted = read_certificates(authority);
  for (const Certificate& one : trusted) {
    X509_STORE_add_cert(store.get(), one.get());
  }
  const std::vector<Certificate> own = read_certificates(chain);
  for (const Certificate& one : own) {
    sk_X509_push(between.get(), one.get());
  }
  demand(!own.empty() &&
             X509_STORE_CTX_init(check.get(), store.get(), own.front().get(), between.get()) == 1,
         "check a certificate");
  const bool signed_by_it = X509_verify_cert(check.get()) == 1;
  ERR_clear_error();
  return signed_by_it ? "" : X509_verify_cert_error_string(X509_STORE_CTX_get_error(check.get()));
}

Key read_key(const std::string& pem) {
  return Key(PEM_read_bio_PrivateKey(memory(pem).get(), nullptr, no_passphrase, nullptr));
}

std::string to_pem(X509& certificate) {
  const Bio bio(BIO_new(BIO_s_mem()));
  demand(bio != nullptr && PEM_write_bio_X509(bio.get(), &certificate) == 1, "write PEM");
  return text_of(*bio);
}

std::string to_pem(EVP_PKEY& key) {
  const Bio bio(BIO_new(BIO_s_mem()));
  const bool written =
      bio != nullptr &&
      PEM_write_bio_PrivateKey(bio.get(), &key, nullptr, nullptr, 0, nullptr, nullptr) == 1;
  demand(written, "write PEM");
  return text_of(*bio);
}

Key authority_key(const std::string& token) {
  // Whoever sees a certificate may try tokens on it: each try shall cost 16 MB and some 50 ms.
  constexpr uint64_t kCost = 1U << 14U;
  constexpr uint64_t kBlock = 8;
  constexpr uint64_t kMostMemory = uint64_t{64} << 20U;
  std::array<unsigned char, 32> seed{};
  const bool derived = EVP_PBE_scrypt(token.data(),
                                      token.size(),
                                      reinterpret_cast<const unsigned char*>(kLabel.data()),
                                      kLabel.size(),
                                      kCost,
                                      kBlock,
                                      1,
                                      kMostMemory,
                                      seed.data(),
                                      seed.size()) == 1;
  demand(derived, "derive a key");
  Key key(EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nullptr, seed.data(), seed.size()));
  OPENSSL_cleanse(seed.data(), seed.size());
  demand(key != nullptr, "make an Ed25519 key");
  return key;
}

Certificate make_authority(EVP_PKEY& key) {
  Certificate made = blank(key, kAuthorityName);
  add_extension(*made, NID_basic_constraints, "critical,CA:TRUE");
  add_extension(*made, NID_key_usage, "critical,keyCertSign");
  sign(*made, key);
  return made;
}

Key make_key() {
  Key key(EVP_EC_gen("P-256"));
  demand(key != nullptr, "make a key");
  return key;
}

Certificate make_certificate(EVP_PKEY& key, const std::string& name, EVP_PKEY& authority) {
  Certificate made = blank(key, name);
  add_extension(*made, NID_basic_constraints, "critical,CA:FALSE");
  add_extension(*made, NID_key_usage, "critical,digitalSignature");
  add_extension(*made, NID_ext_key_usage, "serverAuth,clientAuth");
  add_extension(*made, NID_subject_alt_name, "DNS:" + name);
  sign(*made, authority);
  return made;
}

}  // namespace argosy::rendezvous::certificates
