#include "argosy/rendezvous/admission.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "argosy/base/log.h"
#include "argosy/base/strings.h"
#include "argosy/base/text.h"
#include "argosy/rendezvous/wire.h"

namespace argosy::rendezvous::wire {
namespace {

/// A stranger's text, as a log may hold it.
std::string shown(std::string_view text) {
  constexpr size_t kMost = 16;
  return text::printable(text.substr(0, kMost));
}

}  // namespace

Admission::Admission(std::string where, std::string what, std::string token)
    : where_(std::move(where)), what_(std::move(what)), token_(std::move(token)) {}

grpc::Status Admission::admit(const grpc::ServerContextBase& context) const {
  grpc::Status status = examine(context);
  if (!status.ok()) {
    log_refusal(context.peer(), status.error_message());
  }
  return status;
}

/// "ipv4:10.0.0.9:51234" comes from another port each time.
void Admission::log_refusal(const std::string& peer, const std::string& why) const {
  constexpr size_t kMost = 16;
  const size_t first = peer.find(':') + 1;
  const std::string host = peer.substr(first, peer.rfind(':') - first);
  const std::lock_guard lock(mutex_);
  if (refused_.size() < kMost && refused_.insert(host).second) {
    log::warn("[{}] refused a caller from {}: {}. Further ones from there are not told.",
              where_,
              host,
              why);
  }
}

grpc::Status Admission::examine(const grpc::ServerContextBase& context) const {
  const auto& metadata = context.client_metadata();
  const auto version = metadata.find(kProtocolKey);
  const std::string theirs =
      version == metadata.end() ? "none" : shown({version->second.data(), version->second.size()});
  if (theirs != std::to_string(kProtocolVersion)) {
    return {grpc::StatusCode::FAILED_PRECONDITION,
            fmt::format("expected {} protocol {}, got {}", what_, kProtocolVersion, theirs)};
  }
  if (token_.empty()) {
    return grpc::Status::OK;
  }
  const auto token = metadata.find(kTokenKey);
  const bool given = token != metadata.end();
  const std::string_view text =
      given ? std::string_view(token->second.data(), token->second.size()) : std::string_view();
  if (strings::equal_constant_time(text, token_)) {
    return grpc::Status::OK;
  }
  return {grpc::StatusCode::UNAUTHENTICATED, given ? "wrong job token" : "no job token given"};
}

}  // namespace argosy::rendezvous::wire
