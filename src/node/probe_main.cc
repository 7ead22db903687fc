// SPDX-License-Identifier: Apache-2.0
// mete-probe --card GPU-… --cuda LIBRARY --nvml LIBRARY Creates two contexts on the card, asks NVML
// after each what this process holds, prints the cost of both and ends. A process of its own
// because a wedged driver wedges every process that calls it, and because the memory of a context
// is certain to come back only with the end of its process. Errors go to stderr, exit code 1.
#include <dlfcn.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "abi/cuda_api.h"
#include "node/nvml_driver.h"
#include "node/probe.h"

namespace mete::node {
namespace {

constexpr seam::Milliseconds kReadingLimit{5000};

// The driver functions that the probe needs, all of them in every libcuda since CUDA 7.
struct Cuda {
  decltype(&::cuInit) init = nullptr;
  decltype(&::cuDeviceGetCount) count = nullptr;
  decltype(&::cuDeviceGet) get = nullptr;
  decltype(&::cuDeviceGetUuid) uuid = nullptr;
  decltype(&::cuDevicePrimaryCtxRetain) retain = nullptr;
  decltype(&::cuCtxSetCurrent) set_current = nullptr;
  decltype(&::cuCtxCreate_v2) create = nullptr;
};

Result<Cuda> open_cuda(const std::string& path) {
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return Error::not_found("cannot open " + path + ": " + dlerror());
  Cuda cuda;
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(handle, name));
    return function != nullptr;
  };
  if (find(cuda.init, "cuInit") && find(cuda.count, "cuDeviceGetCount") &&
      find(cuda.get, "cuDeviceGet") && find(cuda.uuid, "cuDeviceGetUuid") &&
      find(cuda.retain, "cuDevicePrimaryCtxRetain") && find(cuda.set_current, "cuCtxSetCurrent") &&
      find(cuda.create, "cuCtxCreate_v2"))
    return cuda;
  return Error::unsupported(path + " lacks a function of the CUDA driver");
}

Error cuda_error(const char* function, CUresult result) {
  const std::string message =
      std::string(function) + " failed with " + std::to_string(static_cast<int>(result));
  return result == CUDA_ERROR_OUT_OF_MEMORY ? Error::exhausted(message) : Error::io(message);
}

Result<CUdevice> find_card(const Cuda& cuda, const seam::UuidBytes& wanted) {
  if (const CUresult result = cuda.init(0); result != CUDA_SUCCESS)
    return cuda_error("cuInit", result);
  int count = 0;
  if (const CUresult result = cuda.count(&count); result != CUDA_SUCCESS)
    return cuda_error("cuDeviceGetCount", result);
  for (int i = 0; i < count; ++i) {
    CUdevice device = 0;
    CUuuid uuid{};
    if (cuda.get(&device, i) != CUDA_SUCCESS || cuda.uuid(&uuid, device) != CUDA_SUCCESS) continue;
    if (std::memcmp(uuid.bytes, wanted.data(), wanted.size()) == 0) return device;
  }
  return Error::not_found("CUDA does not see " + seam::to_string(wanted));
}

// What this process holds on the card. In a pid namespace the driver may not know us by our own
// pid; then the growth of the whole card's used memory since `before` is the best estimate.
Result<Bytes> held(seam::Driver& driver, const std::string& uuid, std::optional<Bytes> before) {
  Result<std::vector<seam::CardReading>> cards = driver.read_all(kReadingLimit);
  if (!cards) return std::move(cards).error();
  for (const seam::CardReading& card : *cards) {
    if (card.uuid != uuid) continue;
    if (card.processes)
      for (const seam::ProcessReading& process : *card.processes)
        if (process.pid == getpid() && process.used) return *process.used;
    if (before && card.used)
      if (const std::optional<Bytes> grown = card.used->checked_sub(*before)) return *grown;
    return Error::unsupported("the driver does not report what this process holds");
  }
  return Error::not_found("NVML does not see " + uuid);
}

std::optional<Bytes> used_before(seam::Driver& driver, const std::string& uuid) {
  Result<std::vector<seam::CardReading>> cards = driver.read_all(kReadingLimit);
  if (!cards) return std::nullopt;
  for (const seam::CardReading& card : *cards)
    if (card.uuid == uuid) return card.used;
  return std::nullopt;
}

Result<std::string> measure(const std::string& uuid_text, const std::string& cuda_path,
                            const std::string& nvml_path) {
  const std::optional<seam::UuidBytes> uuid = seam::parse_uuid(uuid_text);
  if (!uuid) return Error::invalid("--card wants GPU-…");
  Result<std::unique_ptr<NvmlDriver>> driver = NvmlDriver::open(nvml_path);
  if (!driver) return std::move(driver).error();
  Result<seam::DriverIdentity> identity = (*driver)->identity();
  if (!identity) return std::move(identity).error();
  const std::optional<Bytes> before = used_before(**driver, uuid_text);

  Result<Cuda> cuda = open_cuda(cuda_path);
  if (!cuda) return std::move(cuda).error();
  Result<CUdevice> device = find_card(*cuda, *uuid);
  if (!device) return std::move(device).error();
  CUcontext primary = nullptr, second = nullptr;
  if (const CUresult result = cuda->retain(&primary, *device); result != CUDA_SUCCESS)
    return cuda_error("cuDevicePrimaryCtxRetain", result);
  if (const CUresult result = cuda->set_current(primary); result != CUDA_SUCCESS)
    return cuda_error("cuCtxSetCurrent", result);
  Result<Bytes> with_one = held(**driver, uuid_text, before);
  if (!with_one) return std::move(with_one).error();
  if (const CUresult result = cuda->create(&second, 0, *device); result != CUDA_SUCCESS)
    return cuda_error("cuCtxCreate_v2", result);
  Result<Bytes> with_two = held(**driver, uuid_text, before);
  if (!with_two) return std::move(with_two).error();
  const std::optional<Bytes> more = with_two->checked_sub(*with_one);
  if (with_one->is_zero() || !more)
    return Error::io("the readings are inconsistent: other processes use the card");
  return format_probe_line({*with_one, *more}, identity->version);
}

int run(int argc, char** argv) {
  // If the caller is gone, the answer is not needed.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  std::string card, cuda = "libcuda.so.1", nvml = "libnvidia-ml.so.1";
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    if (name == "--card") card = argv[i + 1];
    if (name == "--cuda") cuda = argv[i + 1];
    if (name == "--nvml") nvml = argv[i + 1];
  }
  if (card.empty()) {
    std::fprintf(stderr, "usage: mete-probe --card GPU-… [--cuda LIBRARY] [--nvml LIBRARY]\n");
    return 64;
  }
  Result<std::string> line = measure(card, cuda, nvml);
  if (!line) {
    std::fprintf(stderr, "mete-probe: %s\n", line.error().message.c_str());
    return 1;
  }
  std::fputs(line->c_str(), stdout);
  // No destructors and no atexit handlers of the drivers: the end of the process frees everything,
  // and quickly.
  std::fflush(stdout);
  _exit(0);
}

}  // namespace
}  // namespace mete::node

int main(int argc, char** argv) { return mete::node::run(argc, argv); }
