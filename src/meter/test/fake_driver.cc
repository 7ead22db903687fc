// SPDX-License-Identifier: Apache-2.0
// See fake_driver.h. The handlers call plain functions, so there is one global driver: its
// constructor installs these functions in `real`. A small block is placed in the last slab while
// that has room; a larger one gets an address of its own.
#include "meter/test/fake_driver.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "abi/account.h"
#include "base/assert.h"
#include "meter/real.h"
#include "meter/state.h"

namespace mete::meter {

constinit Real real = {};
constinit RealNvml real_nvml = {};
bool load_cuda() { return true; }
bool load_nvml() { return false; }
void* find_anywhere(const char*) { return nullptr; }
void* hook_for(void*) { return nullptr; }

namespace test {

namespace {

constexpr std::uint64_t kGranule = 2ull << 20;
FakeDriver* driver = nullptr;
CUcontext const kContext = reinterpret_cast<CUcontext>(0x1000);

// A real driver may change errno at any time.
CUresult asked(const char* what) {
  driver->calls.emplace_back(what);
  driver->charged_at_call.push_back(driver->charged());
  errno = ENOTTY;
  const CUresult result = driver->next;
  driver->next = CUDA_SUCCESS;
  return result;
}

std::uint64_t round_up(std::uint64_t bytes) { return (bytes + kGranule - 1) / kGranule * kGranule; }

CUresult take_block(CUdeviceptr* out, std::uint64_t bytes) {
  if (bytes <= 1 << 20) {
    const std::uint64_t cell = (bytes + 511) / 512 * 512;
    if (driver->last_slab == 0 || driver->slab_used + cell > kGranule) {
      driver->last_slab = driver->last_address += 2 * kGranule;
      driver->slab_used = 0;
    }
    *out = driver->last_slab + driver->slab_used;
    driver->slab_used += cell;
    driver->blocks[*out] = 0;  // the slab is what is held
    driver->blocks[driver->last_slab | 1] = kGranule;
    return CUDA_SUCCESS;
  }
  *out = driver->last_address += 64 * round_up(bytes);
  driver->blocks[*out] = round_up(bytes);
  return CUDA_SUCCESS;
}

CUresult mem_alloc(CUdeviceptr* out, size_t bytes) {
  const CUresult result = asked("alloc");
  return result != CUDA_SUCCESS ? result : take_block(out, bytes);
}

CUresult mem_alloc_pitch(CUdeviceptr* out, size_t* pitch, size_t width, size_t height, unsigned) {
  const CUresult result = asked("pitch");
  if (result != CUDA_SUCCESS) return result;
  *pitch = (width + 511) / 512 * 512;
  return take_block(out, *pitch * height);
}

CUresult mem_free(CUdeviceptr pointer) {
  const CUresult result = asked("free");
  if (result != CUDA_SUCCESS) return result;
  return driver->blocks.erase(pointer) == 1 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult mem_create(CUmemGenericAllocationHandle* out, size_t bytes, const CUmemAllocationProp*,
                    unsigned long long) {
  const CUresult result = asked("create");
  if (result != CUDA_SUCCESS) return result;
  *out = ++driver->last_handle;
  driver->handles[*out] = round_up(bytes);
  driver->references[*out] = 1;
  return CUDA_SUCCESS;
}

CUresult drop(std::uint64_t handle) {
  if (--driver->references[handle] == 0) driver->handles.erase(handle);
  return CUDA_SUCCESS;
}

CUresult mem_release(CUmemGenericAllocationHandle handle) {
  const CUresult result = asked("release");
  return result != CUDA_SUCCESS ? result : drop(handle);
}

CUresult mem_map(CUdeviceptr address, size_t, size_t, CUmemGenericAllocationHandle handle,
                 unsigned long long) {
  const CUresult result = asked("map");
  if (result != CUDA_SUCCESS) return result;
  ++driver->references[handle];
  driver->mapped[address] = handle;
  return CUDA_SUCCESS;
}

CUresult mem_unmap(CUdeviceptr address, size_t) {
  const CUresult result = asked("unmap");
  if (result != CUDA_SUCCESS) return result;
  const std::uint64_t handle = driver->mapped.at(address);
  driver->mapped.erase(address);
  return drop(handle);
}

void install() {
  real = {};
  real.cuDeviceGetCount = [](int* count) {
    *count = 1;
    return CUDA_SUCCESS;
  };
  real.cuDeviceGet = [](CUdevice* device, int ordinal) {
    *device = ordinal;
    return ordinal == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
  };
  real.cuDeviceGetUuid_v2 = [](CUuuid* uuid, CUdevice) {
    for (int i = 0; i < 16; ++i) uuid->bytes[i] = static_cast<char>(i + 1);
    return CUDA_SUCCESS;
  };
  real.cuCtxGetCurrent = [](CUcontext* context) {
    *context = driver->has_context ? kContext : nullptr;
    return CUDA_SUCCESS;
  };
  real.cuCtxGetDevice = [](CUdevice* device) {
    *device = 0;
    return CUDA_SUCCESS;
  };
  real.cuCtxCreate_v2 = [](CUcontext* context, unsigned, CUdevice) {
    const CUresult result = asked("context");
    driver->has_context = result == CUDA_SUCCESS;
    *context = kContext;
    return result;
  };
  real.cuCtxDestroy_v2 = [](CUcontext) {
    const CUresult result = asked("destroy");
    if (result != CUDA_SUCCESS) return result;
    driver->has_context = false;
    driver->blocks.clear();
    return result;
  };
  real.cuMemGetInfo_v2 = [](size_t* free, size_t* total) {
    *free = 70ull << 30;
    *total = 80ull << 30;
    return CUDA_SUCCESS;
  };
  real.cuDeviceTotalMem_v2 = [](size_t* bytes, CUdevice) {
    *bytes = 80ull << 30;
    return CUDA_SUCCESS;
  };
  real.cuMemAlloc_v2 = mem_alloc;
  real.cuMemAllocPitch_v2 = mem_alloc_pitch;
  real.cuMemAllocManaged = [](CUdeviceptr* out, size_t bytes, unsigned) {
    return mem_alloc(out, bytes);
  };
  real.cuMemFree_v2 = mem_free;
  real.cuMemCreate = mem_create;
  real.cuMemRelease = mem_release;
  real.cuMemMap = mem_map;
  real.cuMemUnmap = mem_unmap;
  real.cuArray3DCreate_v2 = [](CUarray* out, const CUDA_ARRAY3D_DESCRIPTOR* desc) {
    const CUresult result = asked("array");
    if (result != CUDA_SUCCESS) return result;
    CUdeviceptr address = 0;
    const CUresult taken = take_block(&address, kGranule + desc->Width * desc->Height * 4);
    *out = reinterpret_cast<CUarray>(address);
    return taken;
  };
  real.cuArrayDestroy = [](CUarray array) {
    return mem_free(reinterpret_cast<CUdeviceptr>(array));
  };
}

}  // namespace

FakeDriver::FakeDriver(const launch::GrantFile& grant) : file(grant) {
  METE_ASSERT(driver == nullptr);
  driver = this;
  (void)setenv("METE_GRANT", grant.path().c_str(), 1);
  memset(static_cast<void*>(&process), 0, sizeof process);
  install();
}

FakeDriver::~FakeDriver() { driver = nullptr; }

std::uint64_t FakeDriver::charged() const {
  return abi::total_units(file.grant(), {0, 0}) * abi::kUnitBytes;
}

std::uint64_t FakeDriver::holds() const {
  std::uint64_t bytes = 0;
  for (const auto& [address, size] : blocks) bytes += size;
  for (const auto& [handle, size] : handles) bytes += size;
  return bytes;
}

}  // namespace test
}  // namespace mete::meter
