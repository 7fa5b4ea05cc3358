#include "apps/doctor/nodes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include "argosy/base/error.h"

#include "apps/doctor/nics.h"
#include <nlohmann/json.hpp>

namespace argosy::doctor {
namespace {

using Verdict = Finding::Verdict;

/// Subjects whose texts are the same on nodes that are alike; memory and the like vary by the
/// minute.
constexpr auto kAlike = std::to_array<std::string_view>(
    {"argosy", "libraries", "system", "cores", "GPUs", kNics, "open files"});

std::string key(int rank) {
  return fmt::format("doctor/host/{}", rank);
}

/// "16 usable: gpu01, gpu02; 8 usable: gpu03"
std::string by_text(const std::map<std::string, std::set<std::string>>& hosts_by_text) {
  std::string text;
  for (const auto& [what, hosts] : hosts_by_text) {
    std::string names;
    for (const std::string& host : hosts) {
      names += (names.empty() ? "" : ", ") + host;
    }
    text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", names, what);
  }
  return text;
}

}  // namespace

std::string NodeFindings::to_json() const {
  nlohmann::json list = nlohmann::json::array();
  for (const Finding& one : findings) {
    list.push_back({{"subject", one.subject},
                    {"verdict", static_cast<int>(one.verdict)},
                    {"text", one.text},
                    {"advice", one.advice}});
  }
  return nlohmann::json{
      {"rank", rank}, {"host", host}, {"node", node}, {"findings", std::move(list)}}
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

NodeFindings NodeFindings::from_json(const std::string& text) {
  try {
    const nlohmann::json all = nlohmann::json::parse(text);
    NodeFindings node{.rank = all.at("rank"), .host = all.at("host"), .node = all.at("node")};
    for (const nlohmann::json& one : all.at("findings")) {
      const int verdict = std::clamp(one.at("verdict").get<int>(), 0, 2);
      node.findings.push_back({.subject = one.at("subject"),
                               .verdict = static_cast<Verdict>(verdict),
                               .text = one.at("text"),
                               .advice = one.at("advice")});
    }
    return node;
  } catch (const nlohmann::json::exception& error) {
    throw RendezvousError(
        "doctor.nodes",
        fmt::format("what another rank found cannot be read: {}. Is argosy of the "
                    "same version on all nodes?",
                    error.what()));
  }
}

std::vector<NodeFindings> exchange(rendezvous::Store& store,
                                   const NodeFindings& own,
                                   int ranks,
                                   const Deadline& deadline) {
  store.set(key(own.rank), own.to_json(), deadline);
  std::vector<NodeFindings> all;
  for (int rank = 0; rank < ranks; ++rank) {
    all.push_back(NodeFindings::from_json(store.get(key(rank), deadline)));
  }
  return all;
}

std::vector<Finding> compare_nodes(const std::vector<NodeFindings>& all) {
  std::set<std::string> hosts;
  std::vector<Finding> findings;
  std::map<std::string, std::map<std::string, std::set<std::string>>> texts;  // by subject
  for (const NodeFindings& node : all) {
    const std::string host =
        node.node < 0 ? node.host : fmt::format("{} (node {})", node.host, node.node);
    if (!hosts.insert(host).second) {
      continue;
    }
    for (const Finding& one : node.findings) {
      if (one.verdict == Verdict::kBad) {
        findings.push_back(one);
        findings.back().subject += " on " + host;
      }
      if (std::ranges::count(kAlike, one.subject) > 0) {
        texts[one.subject][one.text].insert(host);
      }
    }
  }
  for (const auto& [subject, hosts_by_text] : texts) {
    if (hosts_by_text.size() > 1) {
      findings.push_back({.subject = subject,
                          .verdict = Verdict::kNote,
                          .text = "differs: " + by_text(hosts_by_text),
                          .advice = subject == "argosy" || subject == "libraries"
                                        ? "install the same version on all nodes"
                                        : "the slowest node sets the pace of all"});
    }
  }
  findings.push_back({.subject = "hosts",
                      .text = fmt::format("{} looked at, {} ranks", hosts.size(), all.size())});
  return findings;
}

}  // namespace argosy::doctor
