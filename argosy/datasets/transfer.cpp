#include "argosy/datasets/transfer.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <array>
#include <exception>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <span>

#include "argosy/base/env.h"
#include "argosy/base/error.h"
#include "argosy/base/strings.h"

namespace argosy::datasets {
namespace {

using Kind = TransferEnd::Kind;

struct Cleanup {
  void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
};
using Handle = std::unique_ptr<CURL, Cleanup>;

Handle make_handle() {
  static std::once_flag once;
  std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
  Handle handle(curl_easy_init());
  if (handle == nullptr) {
    throw Error("datasets.transfer", "libcurl cannot start");
  }
  return handle;
}

/// What the callbacks of one transfer share. Nothing may be thrown through libcurl, which is C.
struct Receiver {
  PartFile* part = nullptr;
  const TransferOptions* options = nullptr;
  std::exception_ptr failure = nullptr;
  bool too_much = false;
};

size_t receive(char* data, size_t size, size_t count, void* to) noexcept {
  constexpr size_t kStop = 0;
  auto& receiver = *static_cast<Receiver*>(to);
  const size_t bytes = size * count;
  const int64_t most = receiver.options->most_bytes;
  if (most > 0 && receiver.part->size() + static_cast<int64_t>(bytes) > most) {
    receiver.too_much = true;
    return kStop;
  }
  try {
    receiver.part->append(std::as_bytes(std::span(data, bytes)));
    if (receiver.options->on_bytes) {
      receiver.options->on_bytes(receiver.part->size());
    }
  } catch (...) {
    receiver.failure = std::current_exception();
    return kStop;
  }
  return bytes;
}

/// The file of the authorities' certificates: a libcurl that is brought along was built to look
/// where its own system has it. "": where libcurl looks by itself.
std::string authorities() {
  for (const char* name : {"CURL_CA_BUNDLE", "SSL_CERT_FILE"}) {
    if (const std::optional<std::string> given = env::get(name)) {
      return *given;
    }
  }
  std::error_code ignored;
  for (const char* file : {"/etc/ssl/certs/ca-certificates.crt",  // Debian, Ubuntu, Arch
                           "/etc/pki/tls/certs/ca-bundle.crt",    // Fedora, RHEL, Rocky
                           "/etc/ssl/ca-bundle.pem",              // SUSE
                           "/etc/ssl/cert.pem"}) {                // Alpine
    if (std::filesystem::exists(file, ignored)) {
      return file;
    }
  }
  return "";
}

void set_up(CURL* handle,
            const std::string& url,
            Receiver& receiver,
            std::array<char, CURL_ERROR_SIZE>& words) {
  const TransferOptions& options = *receiver.options;
  curl_easy_setopt(handle, CURLOPT_URL, url.c_str());
  curl_easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "http,https,file");
  curl_easy_setopt(handle, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(handle, CURLOPT_FOLLOWLOCATION, 1L);
  curl_easy_setopt(handle, CURLOPT_MAXREDIRS, 10L);
  curl_easy_setopt(handle, CURLOPT_FAILONERROR, 1L);
  curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
  if (const std::string file = authorities(); !file.empty()) {
    curl_easy_setopt(handle, CURLOPT_CAINFO, file.c_str());
  }
  curl_easy_setopt(handle, CURLOPT_NOPROGRESS, 1L);
  curl_easy_setopt(handle, CURLOPT_USERAGENT, "argosy");
  curl_easy_setopt(handle, CURLOPT_ERRORBUFFER, words.data());
  curl_easy_setopt(
      handle, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(options.connect_timeout.count()));
  curl_easy_setopt(handle, CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl_easy_setopt(
      handle, CURLOPT_LOW_SPEED_TIME, static_cast<long>(options.stall_timeout.count()));
  curl_easy_setopt(
      handle, CURLOPT_RESUME_FROM_LARGE, static_cast<curl_off_t>(receiver.part->size()));
  curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, &receive);
  curl_easy_setopt(handle, CURLOPT_WRITEDATA, &receiver);
}

/// Will another try of the same address help? A refused certificate or a name that is none will not
/// change in seconds.
Kind worth(CURLcode code, long status) {
  switch (code) {
    case CURLE_HTTP_RETURNED_ERROR: {
      const bool busy = status == 408 || status == 425 || status == 429 || status >= 500;
      return busy ? Kind::kAgain : Kind::kNever;
    }
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_URL_MALFORMAT:
    case CURLE_FILE_COULDNT_READ_FILE:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_TOO_MANY_REDIRECTS:
      return Kind::kNever;
    default:
      return Kind::kAgain;
  }
}

/// The server does not go on where the part ends: it ignores ranges, or has fewer bytes.
bool cannot_resume(CURLcode code, long status) {
  constexpr long kRangeNotSatisfiable = 416;  // libcurl counts it as success
  return code == CURLE_RANGE_ERROR || code == CURLE_BAD_DOWNLOAD_RESUME ||
         status == kRangeNotSatisfiable;
}

TransferEnd transfer_once(const std::string& url, Receiver& receiver, bool& begin_anew) {
  const Handle handle = make_handle();
  std::array<char, CURL_ERROR_SIZE> words{};
  const bool resuming = receiver.part->size() > 0;
  set_up(handle.get(), url, receiver, words);
  const CURLcode code = curl_easy_perform(handle.get());
  long status = 0;
  curl_easy_getinfo(handle.get(), CURLINFO_RESPONSE_CODE, &status);
  if (receiver.failure) {
    std::rethrow_exception(receiver.failure);
  }
  if (resuming && cannot_resume(code, status)) {
    begin_anew = true;
    return {Kind::kAgain, "the server cannot resume"};
  }
  if (receiver.too_much) {
    const int64_t most = receiver.options->most_bytes;
    receiver.part->restart();  // what came is of another file
    return {Kind::kAgain, fmt::format("sent more than the {} bytes expected", most)};
  }
  if (code == CURLE_OK) {
    return {};
  }
  if (code == CURLE_HTTP_RETURNED_ERROR) {
    return {worth(code, status), fmt::format("HTTP status {}", status)};
  }
  const std::string_view reason = words[0] != '\0' ? words.data() : curl_easy_strerror(code);
  return {worth(code, status), std::string(strings::trim(reason))};
}

}  // namespace

TransferEnd transfer(const std::string& url, PartFile& part, const TransferOptions& options) {
  Receiver receiver{.part = &part, .options = &options};
  bool begin_anew = false;
  TransferEnd end = transfer_once(url, receiver, begin_anew);
  if (begin_anew) {
    part.restart();
    end = transfer_once(url, receiver, begin_anew);
  }
  return end;
}

}  // namespace argosy::datasets
