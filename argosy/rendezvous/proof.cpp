#include "argosy/rendezvous/proof.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <array>

#include "argosy/base/error.h"

namespace argosy::rendezvous {

std::string proof_of(std::string_view key, std::string_view text) {
  std::array<unsigned char, kProofBytes> digest{};
  unsigned length = 0;
  if (HMAC(EVP_sha256(),
           key.data(),
           static_cast<int>(key.size()),
           reinterpret_cast<const unsigned char*>(text.data()),
           text.size(),
           digest.data(),
           &length) == nullptr) {
    throw InternalError("rendezvous.tls", "OpenSSL computes no HMAC with SHA-256");
  }
  return {digest.begin(), digest.end()};
}

}  // namespace argosy::rendezvous
