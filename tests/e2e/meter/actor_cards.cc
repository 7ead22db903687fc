// SPDX-License-Identifier: Apache-2.0
// Commands about cards, contexts and the card's own figures, by CUDA and by NVML. Each registers a
// function by its name; its answer is the driver's code and what the call returned. NVML is opened
// by name at the first such command, as a program would.
#include <dlfcn.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "abi/nvml_api.h"
#include "actor.h"

namespace actor {
namespace {

std::map<uint64_t, CUcontext> contexts;
uint64_t last_context = 0;

std::string uuids(const Words&) {
  int count = 0;
  const CUresult r = CU(cuDeviceGetCount)(&count);
  std::string text = answer(r);
  for (int i = 0; r == CUDA_SUCCESS && i < count; ++i) {
    CUuuid uuid{};
    CU(cuDeviceGetUuid)(&uuid, i);
    text.append(" ").append(mete::abi::uuid_text(uuid.bytes).text);
  }
  return text;
}

std::string retain(const Words& w) {
  CUcontext context = nullptr;
  CUresult r = CU(cuDevicePrimaryCtxRetain)(&context, static_cast<CUdevice>(number_or(w, 1, 0)));
  if (r == CUDA_SUCCESS) r = CU(cuCtxSetCurrent)(context);
  return answer(r);
}

// context [DEVICE] [KIND]: made by the usual call, or by one for graphics.
std::string create_context(const Words& w) {
  const auto device = static_cast<CUdevice>(number_or(w, 1, 0));
  const std::string kind = w.size() > 2 ? w[2] : "";
  CUcontext context = nullptr;
  CUresult r = CUDA_ERROR_INVALID_VALUE;
  if (kind.empty()) r = CU(cuCtxCreate_v2)(&context, 0, device);
  if (kind == "gl") r = CU(cuGLCtxCreate)(&context, 0, device);
  if (kind == "gl-2") r = CU(cuGLCtxCreate_v2)(&context, 0, device);
  if (kind == "vdpau") r = CU(cuVDPAUCtxCreate)(&context, 0, device, 0, nullptr);
  if (kind == "vdpau-2") r = CU(cuVDPAUCtxCreate_v2)(&context, 0, device, 0, nullptr);
  if (r != CUDA_SUCCESS) return answer(r);
  contexts[++last_context] = context;
  return answer(r, last_context);
}

std::string destroy_context(const Words& w) {
  const auto found = contexts.find(number(w[1]));
  const CUresult r = CU(cuCtxDestroy_v2)(found->second);
  if (r == CUDA_SUCCESS) contexts.erase(found);
  return answer(r);
}

// contexts COUNT: COUNT more, none of them current; the code and how many there are now.
std::string create_contexts(const Words& w) {
  CUresult r = CUDA_SUCCESS;
  for (uint64_t i = 0; i < number(w[1]) && r == CUDA_SUCCESS; ++i) {
    CUcontext context = nullptr;
    r = CU(cuCtxCreate_v2)(&context, 0, 0);
    if (r != CUDA_SUCCESS) break;
    contexts[++last_context] = context;
    r = CU(cuCtxPopCurrent_v2)(&context);
  }
  return answer(r, contexts.size());
}

std::string destroy_contexts(const Words&) {
  CUresult r = CUDA_SUCCESS;
  for (const auto& [id, context] : contexts)
    if (r == CUDA_SUCCESS) r = CU(cuCtxDestroy_v2)(context);
  contexts.clear();
  return answer(r);
}

std::string info(const Words&) {
  size_t free = 0;
  size_t total = 0;
  const CUresult r = CU(cuMemGetInfo_v2)(&free, &total);
  return answer(r, free, total);
}

// info-until-error: repeats the query; the error, and how often there was none.
std::string info_until_error(const Words&) {
  const auto ask = CU(cuMemGetInfo_v2);
  size_t free = 0;
  size_t total = 0;
  uint64_t good = 0;
  CUresult r = CUDA_SUCCESS;
  while (good < 100'000'000 && (r = ask(&free, &total)) == CUDA_SUCCESS) ++good;
  return answer(r, good);
}

// info-around WORDS: cuMemGetInfo before and after another command, without a pause between.
std::string info_around(const Words& w) {
  const auto ask = CU(cuMemGetInfo_v2);
  size_t free = 0;
  size_t total = 0;
  const CUresult before = ask(&free, &total);
  const std::string said = commands().at(w[1])(Words(w.begin() + 1, w.end()));
  const CUresult after = ask(&free, &total);
  return answer(before, static_cast<int>(after)) + " " + said;
}

template <class Function>
Function nvml(const char* name) {
  static void* const library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
  return reinterpret_cast<Function>(library == nullptr ? nullptr : dlsym(library, name));
}
#define NVML(name) nvml<decltype(&::name)>(#name)

// "nvml": start it; then every card as UUID:total:used, in NVML's order.
std::string nvml_cards(const Words&) {
  if (NVML(nvmlInit_v2) == nullptr) return "404";
  int r = NVML(nvmlInit_v2)();
  unsigned int count = 0;
  if (r == 0) r = NVML(nvmlDeviceGetCount_v2)(&count);
  std::string text = answer(r);
  for (unsigned int i = 0; r == 0 && i < count; ++i) {
    nvmlDevice_t device = nullptr;
    char uuid[96] = "";
    nvmlMemory_t memory{};
    if (NVML(nvmlDeviceGetHandleByIndex_v2)(i, &device) != 0) return "999";
    NVML(nvmlDeviceGetUUID)(device, uuid, sizeof uuid);
    const int said = NVML(nvmlDeviceGetMemoryInfo)(device, &memory);
    text.append(" ").append(uuid).append(":");
    text.append(std::to_string(said == 0 ? memory.total : 0)).append(":");
    text.append(std::to_string(said == 0 ? memory.used : 0));
  }
  return text;
}

std::string nvml_by_uuid(const Words& w) {
  nvmlDevice_t device = nullptr;
  return answer(NVML(nvmlDeviceGetHandleByUUID)(w[1].c_str(), &device));
}

// spin MICROSECONDS: a kernel that takes that long, on a stream of its own; not waited for.
std::string spin(const Words& w) {
  // Loaded once: a module takes memory of the card.
  static CUmodule module = nullptr;
  static CUfunction function = nullptr;
  CUstream stream = nullptr;
  unsigned long long microseconds = number(w[1]);
  void* arguments[] = {&microseconds};
  CUresult r = CUDA_SUCCESS;
  if (module == nullptr) {
    r = CU(cuModuleLoadData)(&module, "simgpu-module 1\nkernel spin\n");
    if (r == CUDA_SUCCESS) r = CU(cuModuleGetFunction)(&function, module, "spin");
  }
  if (r == CUDA_SUCCESS) r = CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING);
  if (r == CUDA_SUCCESS)
    r = CU(cuLaunchKernel)(function, 1, 1, 1, 1, 1, 1, 0, stream, arguments, nullptr);
  return answer(r);
}

// module BYTES: one with a variable of that size, which the driver takes unasked.
std::string load_module(const Words& w) {
  CUmodule module = nullptr;
  return answer(
      CU(cuModuleLoadData)(&module, ("simgpu-module 1\nglobal table " + w[1] + "\n").c_str()));
}

}  // namespace

CUdevice current_device() {
  CUdevice device = 0;
  return CU(cuCtxGetDevice)(&device) == CUDA_SUCCESS ? device : 0;
}

void add_card_commands() {
  auto& c = commands();
  c["init"] = [](const Words&) { return answer(CU(cuInit)(0)); };
  c["uuids"] = uuids;
  c["retain"] = retain;
  c["release"] = [](const Words& w) {
    return answer(CU(cuDevicePrimaryCtxRelease_v2)(static_cast<CUdevice>(number_or(w, 1, 0))));
  };
  c["reset"] = [](const Words& w) {
    return answer(CU(cuDevicePrimaryCtxReset_v2)(static_cast<CUdevice>(number_or(w, 1, 0))));
  };
  c["context"] = create_context;
  c["destroy"] = destroy_context;
  c["contexts"] = create_contexts;
  c["destroy-all"] = destroy_contexts;
  c["current"] = [](const Words& w) {
    return answer(CU(cuCtxSetCurrent)(contexts.at(number(w[1]))));
  };
  c["attach"] = [](const Words&) {
    CUcontext context = nullptr;
    return answer(CU(cuCtxAttach)(&context, 0));
  };
  c["detach"] = [](const Words& w) { return answer(CU(cuCtxDetach)(contexts.at(number(w[1])))); };
  c["info"] = info;
  c["info-until-error"] = info_until_error;
  c["info-around"] = info_around;
  c["flags"] = [](const Words&) {
    unsigned int flags = 0;
    return answer(CU(cuCtxGetFlags)(&flags));
  };
  c["total"] = [](const Words& w) {
    size_t bytes = 0;
    const CUresult r = CU(cuDeviceTotalMem_v2)(&bytes, static_cast<CUdevice>(number_or(w, 1, 0)));
    return answer(r, bytes);
  };
  c["synchronize"] = [](const Words&) { return answer(CU(cuCtxSynchronize)()); };
  c["stack"] = [](const Words& w) {
    return answer(CU(cuCtxSetLimit)(CU_LIMIT_STACK_SIZE, number(w[1])));
  };
  c["heap"] = [](const Words& w) {
    return answer(CU(cuCtxSetLimit)(CU_LIMIT_MALLOC_HEAP_SIZE, number(w[1])));
  };
  c["spin"] = spin;
  c["module"] = load_module;
  c["nvml"] = nvml_cards;
  c["nvml-uuid"] = nvml_by_uuid;
  // errno after a call: "errno 4711 alloc 64M" sets it, runs the rest, and returns it.
  c["errno"] = [](const Words& w) {
    const Words rest(w.begin() + 2, w.end());
    errno = static_cast<int>(number(w[1]));
    const std::string said = commands().at(rest[0])(rest);
    const int left = errno;
    return std::to_string(left) + " " + said;
  };
}

}  // namespace actor
