#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "argosy/os/gpus.h"

#include "apps/doctor/finding.h"

namespace argosy::doctor {

/// An adapter for InfiniBand or RoCE that is connected.
struct Nic {
  std::string name{};  ///< "mlx5_0"
  std::string link{};  ///< "InfiniBand", or "Ethernet" for RoCE
  std::string rate{};  ///< "400 Gb/sec"
  std::string path{};  ///< where it is among the devices; empty: not known
};

/// Returns the adapters that have an active port, by the kernel's files under `root`.
[[nodiscard]] std::vector<Nic> active_nics(const std::string& root);

/// Returns the names of the adapters that are nearest to a GPU: those with which it shares most
/// bridges of the PCI bus; if it shares none with any, those of its NUMA node. Empty: nothing is
/// near, or the GPU's place is not known.
[[nodiscard]] std::vector<std::string> nearest_nics(const std::string& root,
                                                    const os::Gpu& gpu,
                                                    const std::vector<Nic>& nics);

/// Returns the interface that has an address: "eth0". Empty: none of those under `root` has it.
[[nodiscard]] std::string interface_of(const std::string& root, const std::string& address);
/// Returns the interface that Argosy takes between hosts: ARGOSY_IFNAME, else GLOO_SOCKET_IFNAME,
/// else that of `address`, which others reach; without an address that of the default route. Empty:
/// there is none but the loopback.
[[nodiscard]] std::string interface_between_hosts(const std::string& address = {});

/// The subject of nics_finding().
inline constexpr std::string_view kNics = "NICs";
/// Says which adapter is next to which GPU, and proposes what NCCL and RCCL should take:
/// NCCL_IB_HCA and NCCL_SOCKET_IFNAME, where they are not set.
[[nodiscard]] Finding nics_finding(const std::string& root,
                                   const std::vector<os::Gpu>& gpus,
                                   const std::string& interface);

}  // namespace argosy::doctor
