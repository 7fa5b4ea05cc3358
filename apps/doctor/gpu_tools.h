#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "argosy/os/gpus.h"

// What the tools of the GPUs' vendors say: nvidia-smi, rocm-smi. Neither is needed; a driver's
// library is never loaded.
namespace argosy::doctor {

/// What a tool says about one GPU.
struct GpuFacts {
  std::string address{};  ///< as the kernel writes it: "0000:17:00.0"
  std::string name{};     ///< "NVIDIA H100 80GB HBM3"
  std::string driver{};   ///< "580.159.04"
  int64_t memory_bytes = 0;
  std::string links{};  ///< "18 NVLinks of 26.562 GB/s"; empty: there are none, or not known
};

/// Returns what `nvidia-smi --query-gpu=index,pci.bus_id,driver_version,memory.total,name
/// --format=csv,noheader,nounits` lists, by index. Lines of another form are left out.
[[nodiscard]] std::vector<GpuFacts> read_nvidia_smi(const std::string& csv);
/// Puts what `nvidia-smi nvlink --status` says into `gpus`, all of read_nvidia_smi().
void add_nvlinks(const std::string& text, std::vector<GpuFacts>& gpus);
/// Returns, by address, the bits that `nvidia-smi
/// --query-gpu=pci.bus_id,clocks_event_reasons.active
/// --format=csv,noheader` lists.
[[nodiscard]] std::map<std::string, uint64_t> read_clock_reasons(const std::string& csv);
/// Returns those bits in words that say that the GPU is hot or short of power, joined by commas. A
/// limit that somebody has set, or a power limit that is reached, is none: cards are made for it.
[[nodiscard]] std::string slowdowns(uint64_t clock_reasons);
/// Returns what `rocm-smi --showbus --showproductname --showdriverversion --showmeminfo vram
/// --showtopotype --json` lists. What precedes the JSON is skipped. Empty: it cannot be read.
[[nodiscard]] std::vector<GpuFacts> read_rocm_smi(const std::string& output);

/// What a driver's tool said about all GPUs of the machine.
struct ToolSaid {
  std::vector<GpuFacts> gpus{};
  std::string failure{};  ///< why there are none; empty: it said something
};
/// Runs the tool that belongs to the driver. Takes some seconds, 40 at most.
[[nodiscard]] ToolSaid ask_tool(os::GpuDriver driver);
/// Returns read_clock_reasons() of this moment; empty for AMD's GPUs and where there is no tool.
[[nodiscard]] std::map<std::string, uint64_t> ask_clock_reasons(os::GpuDriver driver);

}  // namespace argosy::doctor
