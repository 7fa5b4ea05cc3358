#include "argosy/engine/device_program.h"

#include <fmt/format.h>

#include <map>
#include <type_traits>
#include <utility>

#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/Exception.h>

#include "argosy/base/check.h"
#include "argosy/base/env.h"
#include "argosy/base/log.h"
#include "argosy/engine/gpu_runtime.h"

namespace argosy::engine {

// PTX has the conversions of f16; HIP's compiler has the type. A NaN of bf16 becomes a quiet one,
// as transport::f32_to_bf16() makes it.
const char* const kDevicePrelude = R"(
__device__ inline unsigned int bits_of(float value) { return __float_as_uint(value); }
__device__ inline float bf16_value(unsigned short bits) {
  return __uint_as_float((unsigned int)bits << 16);
}
__device__ inline unsigned short bf16_bits(float value) {
  const unsigned int bits = bits_of(value);
  const unsigned int rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const unsigned int quiet_nan = ((bits >> 16) & 0x8000u) | 0x7fc0u;
  return (unsigned short)((bits & 0x7fffffffu) > 0x7f800000u ? quiet_nan : rounded);
}
#ifdef __HIP__
__device__ inline float f16_value(unsigned short bits) {
  return (float)__builtin_bit_cast(_Float16, bits);
}
__device__ inline unsigned short f16_bits(float value) {
  return __builtin_bit_cast(unsigned short, (_Float16)value);
}
#else
__device__ inline float f16_value(unsigned short bits) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
  return value;
}
__device__ inline unsigned short f16_bits(float value) {
  unsigned short bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
}
#endif
)";

namespace {

constexpr const char* kProgram = "engine.device_program";

/// Functions of NVRTC or hipRTC, which differ in their names.
struct Compiler {
  using Program = void*;
  int (*create)(Program*, const char* source, const char* name, int, const char**, const char**);
  int (*compile)(Program, int count, const char* const* options);
  int (*code_size)(Program, size_t* bytes);
  int (*code)(Program, char* to);
  int (*log_size)(Program, size_t* bytes);
  int (*log)(Program, char* to);
  int (*destroy)(Program*);

  [[nodiscard]] bool is_complete() const {
    return create != nullptr && compile != nullptr && code_size != nullptr && code != nullptr &&
           log_size != nullptr && log != nullptr && destroy != nullptr;
  }
};

Compiler compiler_of(void* library, const std::string& prefix, const std::string& code) {
  Compiler found{};
  const auto find = [&](const char* name, auto& function) {
    function =
        gpu::loaded<std::remove_reference_t<decltype(function)>>((prefix + name).c_str(), library);
  };
  find("CreateProgram", found.create);
  find("CompileProgram", found.compile);
  find(("Get" + code + "Size").c_str(), found.code_size);
  find(("Get" + code).c_str(), found.code);
  find("GetProgramLogSize", found.log_size);
  find("GetProgramLog", found.log);
  find("DestroyProgram", found.destroy);
  return found;
}

/// Of the device's kind. libtorch's own stub comes first, for it knows where the wheels have NVRTC;
/// last what stands where toolkits are installed.
std::vector<const char*> libraries_of_compilers(bool rocm) {
  if (rocm) {
    return {"libhiprtc.so", "libamdhip64.so", "/opt/rocm/lib/libhiprtc.so"};
  }
  return {"libcaffe2_nvrtc.so",
          "libnvrtc.so.13",
          "libnvrtc.so.12",
          "libnvrtc.so.11.2",
          "libnvrtc.so",
          "/usr/local/cuda/lib64/libnvrtc.so"};
}

Compiler find_compiler() {
  const bool rocm = gpu::is_rocm();
  for (const char* const name : libraries_of_compilers(rocm)) {
    if (void* const library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL)) {
      const Compiler found =
          compiler_of(library, rocm ? "hiprtc" : "nvrtc", rocm ? "Code" : "CUBIN");
      if (found.is_complete()) {
        return found;
      }
    }
  }
  return {};
}

/// A text or code that a program has: its length by one function, itself by another.
template <typename Size, typename Read>
std::string read(void* program, Size size, Read get) {
  size_t bytes = 0;
  if (size(program, &bytes) != 0) {
    return "";
  }
  std::string text(bytes, '\0');
  return get(program, text.data()) == 0 ? text : "";
}

/// The driver's part: modules and launches.
struct Driver {
  int (*load)(void** module, const void* code);
  int (*function)(void** function, void* module, const char* name);
  int (*launch)(void* function,
                unsigned blocks_x,
                unsigned blocks_y,
                unsigned blocks_z,
                unsigned threads_x,
                unsigned threads_y,
                unsigned threads_z,
                unsigned shared_bytes,
                void* stream,
                void** args,
                void** extra);

  int (*context)(void** current);  ///< CUDA's alone

  [[nodiscard]] bool is_complete() const {
    return load != nullptr && function != nullptr && launch != nullptr;
  }
};

Driver find_driver() {
  const bool rocm = gpu::is_rocm();
  void* const library = rocm ? RTLD_DEFAULT : ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr && !rocm) {
    return {};
  }
  const std::string prefix = rocm ? "hipModule" : "cuModule";
  Driver found{};
  found.load = gpu::loaded<decltype(found.load)>((prefix + "LoadData").c_str(), library);
  found.function = gpu::loaded<decltype(found.function)>((prefix + "GetFunction").c_str(), library);
  found.launch = gpu::loaded<decltype(found.launch)>(
      rocm ? "hipModuleLaunchKernel" : "cuLaunchKernel", library);
  found.context = gpu::loaded<decltype(found.context)>("cuCtxGetCurrent", library);
  return found;
}

const Driver& driver() {
  static const Driver found = find_driver();
  return found;
}

/// CUDA's driver works in the thread's context, which the runtime makes with a first call.
void need_context() {
  void* current = nullptr;
  if (driver().context == nullptr || (driver().context(&current) == 0 && current != nullptr)) {
    return;
  }
  if (const auto free = gpu::loaded<int (*)(void*)>("cudaFree")) {
    const int error = free(nullptr);
    TORCH_CHECK(error == 0, "CUDA makes no context in this thread, error ", error);
  }
}

}  // namespace

CompiledProgram compile_program(const std::string& name,
                                const std::string& source,
                                const std::string& architecture) {
  static const Compiler compiler = find_compiler();
  if (!compiler.is_complete()) {
    return {.error = "neither NVRTC nor hipRTC is there", .has_compiler = false};
  }
  const std::string text = kDevicePrelude + source;
  Compiler::Program program = nullptr;
  if (compiler.create(&program, text.c_str(), name.c_str(), 0, nullptr, nullptr) != 0) {
    return {.error = "the compiler did not take the source"};
  }
  const std::string target = "--gpu-architecture=" + architecture;
  const std::vector<const char*> options =
      architecture.empty() ? std::vector<const char*>{} : std::vector<const char*>{target.c_str()};
  CompiledProgram made;
  if (compiler.compile(program, static_cast<int>(options.size()), options.data()) == 0) {
    made.code = read(program, compiler.code_size, compiler.code);
  }
  if (made.code.empty()) {
    made.error = read(program, compiler.log_size, compiler.log);
  }
  compiler.destroy(&program);
  return made;
}

/// What a device has of the program. Modules stay with the device: at the end of the program there
/// may be no device any more.
struct DeviceProgram::Loaded {
  void* module = nullptr;  // null: it cannot run there
  std::map<std::string, void*> kernels{};

  static std::unique_ptr<Loaded> on(c10::Device device,
                                    const std::string& name,
                                    const std::string& source) {
    auto loaded = std::make_unique<Loaded>();
    const CompiledProgram made = compiled_for(device, name, source);
    if (made.code.empty()) {
      log::warn("{}: no kernel \"{}\", so libtorch's operators run instead: {}",
                device.str(),
                name,
                made.error);
      return loaded;
    }
    const c10::DeviceGuard guard(device);
    need_context();
    const int error = driver().load(&loaded->module, made.code.data());
    TORCH_CHECK(error == 0,
                device,
                ": the driver refuses the kernel \"",
                name,
                "\", error ",
                error,
                ". ARGOSY_DEVICE_KERNELS=0, on all ranks, does without");
    return loaded;
  }

  /// nullptr: there is none of that name.
  [[nodiscard]] void* kernel(const std::string& name) {
    void*& known = kernels[name];
    if (known == nullptr && driver().function(&known, module, name.c_str()) != 0) {
      known = nullptr;
    }
    return known;
  }

 private:
  static CompiledProgram compiled_for(c10::Device device,
                                      const std::string& name,
                                      const std::string& source) {
    if (!gpu::has_streams() || !driver().is_complete()) {
      return {.error = "the driver's library is not there", .has_compiler = false};
    }
    return compile_program(name, source, gpu::architecture(device));
  }
};

DeviceProgram::DeviceProgram(std::string name, std::string source)
    : name_(std::move(name)), source_(std::move(source)) {}

DeviceProgram::~DeviceProgram() = default;

/// With mutex_ held.
DeviceProgram::Loaded& DeviceProgram::loaded_on(c10::Device device) {
  const size_t index = static_cast<unsigned char>(device.index());
  if (devices_.size() <= index) {
    devices_.resize(index + 1);
  }
  if (devices_[index] == nullptr) {
    devices_[index] = Loaded::on(device, name_, source_);
  }
  return *devices_[index];
}

bool DeviceProgram::runs_on(c10::Device device) {
  static const bool wanted = env::get_bool("ARGOSY_DEVICE_KERNELS").value_or(true);
  if (!wanted || !device.is_cuda()) {
    return false;
  }
  const std::lock_guard lock(mutex_);
  return loaded_on(device).module != nullptr;
}

void* DeviceProgram::kernel_on(c10::Device device, const char* name) {
  ARGOSY_CHECK(runs_on(device), kProgram, "\"{}\" does not run on {}", name_, device.str());
  const c10::DeviceGuard guard(device);
  need_context();
  const std::lock_guard lock(mutex_);
  void* const kernel = loaded_on(device).kernel(name);
  ARGOSY_CHECK(kernel != nullptr, kProgram, "\"{}\" has no kernel \"{}\"", name_, name);
  return kernel;
}

void DeviceProgram::queue(c10::Device device, const char* kernel, const Grid& grid, void** args) {
  void* const function = kernel_on(device, kernel);
  const c10::DeviceGuard guard(device);
  const c10::Stream stream = c10::impl::VirtualGuardImpl(device.type()).getStream(device);
  const int error = driver().launch(function,
                                    grid.blocks,
                                    grid.blocks_y,
                                    1,
                                    grid.threads,
                                    grid.threads_y,
                                    1,
                                    0,
                                    gpu::handle_of(stream),
                                    args,
                                    nullptr);
  TORCH_CHECK(error == 0, name_, ".", kernel, ": the driver refuses the launch, error ", error);
}

void DeviceProgram::prepare(c10::Device device, const char* kernel) {
  (void)kernel_on(device, kernel);
}

}  // namespace argosy::engine
