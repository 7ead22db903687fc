// SPDX-License-Identifier: Apache-2.0
#include "node/nvml_library.h"

#include <dlfcn.h>

namespace mete::node {

Result<std::unique_ptr<NvmlLibrary>> NvmlLibrary::open(const std::string& path) {
  void* handle = dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* why = dlerror();
    return Error::not_found("cannot open " + path)
        .with_evidence(why != nullptr ? why : "")
        .with_hint("is the NVIDIA driver installed? METE_SIM=1xH200 simulates a card");
  }
  std::unique_ptr<NvmlLibrary> library(new NvmlLibrary(handle));
#define METE_NODE_NVML_LOOKUP(name) \
  library->name = reinterpret_cast<decltype(&::name)>(dlsym(handle, #name));
  METE_NODE_NVML_FUNCTIONS(METE_NODE_NVML_LOOKUP)
#undef METE_NODE_NVML_LOOKUP
  // Without these the library is useless, however old it is.
  const bool usable =
      (library->nvmlInit || library->nvmlInit_v2) &&
      (library->nvmlDeviceGetCount || library->nvmlDeviceGetCount_v2) &&
      (library->nvmlDeviceGetHandleByIndex || library->nvmlDeviceGetHandleByIndex_v2);
  if (!usable) return Error::corrupt(path + " is not NVML");
  return library;
}

NvmlLibrary::~NvmlLibrary() { dlclose(handle_); }

}  // namespace mete::node
