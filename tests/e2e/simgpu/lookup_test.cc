// SPDX-License-Identifier: Apache-2.0
// Which function, which card: cuGetProcAddress by name, version and flags, the exported names,
// CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER, and the texts and files of METE_SIM. Answers for
// unknown names and old versions are those of driver 580.
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <fstream>

#include "tests/e2e/simgpu/support.h"

namespace simgpu_test {
namespace {

using LookupTest = SimTest;

struct Asked {
  CUresult result;
  void* pointer;
  int status;
};

Asked ask(const char* name, int version, cuuint64_t flags) {
  Asked asked{CUDA_SUCCESS, reinterpret_cast<void*>(1), 77};
  CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
  asked.result = cuGetProcAddress_v2(name, &asked.pointer, version, flags, &status);
  asked.status = static_cast<int>(status);
  return asked;
}

void* symbol(const char* name) {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  CHECK(library != nullptr);
  return dlsym(library, name);
}

TEST_F(LookupTest, NamesVersionsAndFlagsLeadToTheRightVariant) {
  in_child([] {
    struct {
      const char* name;
      int version;
      cuuint64_t flags;
      const char* symbol;
    } const kCases[] = {
        {"cuMemAlloc", 13000, 0, "cuMemAlloc_v2"},
        {"cuMemAlloc", 3020, 0, "cuMemAlloc_v2"},
        {"cuMemAlloc", 3010, 0, "cuMemAlloc"},
        {"cuMemAlloc", 2000, 0, "cuMemAlloc"},
        {"cuMemAlloc", 13000, 2, "cuMemAlloc_v2"},
        {"cuMemAllocAsync", 11020, 0, "cuMemAllocAsync"},
        {"cuMemAllocAsync", 13000, 1, "cuMemAllocAsync"},
        {"cuMemAllocAsync", 13000, 2, "cuMemAllocAsync_ptsz"},
        {"cuMemAllocAsync", 13000, 3, "cuMemAllocAsync_ptsz"},
        {"cuMemcpyHtoD", 13000, 2, "cuMemcpyHtoD_v2_ptds"},
        {"cuCtxCreate", 13000, 0, "cuCtxCreate_v4"},
        {"cuCtxCreate", 12000, 0, "cuCtxCreate_v3"},
        {"cuGetProcAddress", 13000, 0, "cuGetProcAddress_v2"},
        {"cuGetProcAddress", 11030, 0, "cuGetProcAddress"},
        {"cuGraphLaunch", 13000, 2, "cuGraphLaunch_ptsz"},
        {"cuLaunchKernel", 4000, 0, "cuLaunchKernel"},
        {"cuLaunchKernel", 7000, 2, "cuLaunchKernel_ptsz"},
        {"cuTexRefCreate", 13000, 0, "cuTexRefCreate"},
    };
    for (const auto& one : kCases) {
      const Asked asked = ask(one.name, one.version, one.flags);
      OK(asked.result);
      CHECK_EQ(CU_GET_PROC_ADDRESS_SUCCESS, asked.status);
      CHECK(asked.pointer == symbol(one.symbol));
      void* old_way = nullptr;
      OK(cuGetProcAddress(one.name, &old_way, one.version, one.flags));
      CHECK(old_way == asked.pointer);
    }
  });
}

TEST_F(LookupTest, UnknownNamesAndTooOldVersionsAnswerAsTheRealDriver) {
  in_child([] {
    for (const char* name : {"", "cuNope", "cuMemAlloc_v2", "cuMemAllocAsync_ptsz"}) {
      const Asked asked = ask(name, 13000, 0);
      OK(asked.result);
      CHECK(asked.pointer == nullptr);
      CHECK_EQ(CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND, asked.status);
      void* untouched = reinterpret_cast<void*>(1);
      CHECK_EQ(CUDA_ERROR_NOT_FOUND, cuGetProcAddress(name, &untouched, 13000, 0));
      CHECK(untouched == reinterpret_cast<void*>(1));
    }
    const Asked old = ask("cuMemAllocAsync", 11000, 0);
    OK(old.result);
    CHECK(old.pointer == nullptr);
    CHECK_EQ(CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT, old.status);
    const Asked before_threads = ask("cuLaunchKernel", 6050, 2);
    OK(before_threads.result);
    CHECK(before_threads.pointer == nullptr);
    CHECK_EQ(CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT, before_threads.status);
    CHECK_EQ(CUDA_ERROR_INVALID_VALUE, ask("cuMemAlloc", 99000, 0).result);
    CHECK_EQ(CUDA_ERROR_INVALID_VALUE, ask("cuMemAlloc", 13000, 4).result);
    const void* table = reinterpret_cast<void*>(1);
    const CUuuid uuid = {};
    CHECK_EQ(CUDA_ERROR_INVALID_VALUE, cuGetExportTable(&table, &uuid));
    CHECK(table == nullptr);
  });
}

TEST_F(LookupTest, EveryNameOfTheDriverIsExportedAndTheRestNotSupported) {
  in_child([] {
#define CUDA_SYMBOL(name) CHECK(symbol(#name) != nullptr);
#include "abi/cuda_symbols.def"
    using Function = CUresult (*)();
    const Function none = reinterpret_cast<Function>(symbol("cuTexRefCreate"));
    CHECK_EQ(CUDA_ERROR_NOT_SUPPORTED, none());
  });
}

TEST_F(LookupTest, BeforeInitAndWithoutAContext) {
  in_child([] {
    size_t bytes = 0;
    CUdeviceptr p = 0;
    CUcontext context = nullptr;
    CUdevice device = 0;
    CHECK_EQ(CUDA_ERROR_NOT_INITIALIZED, cuMemGetInfo_v2(&bytes, nullptr));
    CHECK_EQ(CUDA_ERROR_NOT_INITIALIZED, cuCtxGetCurrent(&context));
    CHECK_EQ(CUDA_ERROR_INVALID_VALUE, cuInit(1));
    OK(cuInit(0));
    OK(cuCtxGetCurrent(&context));
    CHECK(context == nullptr);
    CHECK_EQ(CUDA_ERROR_INVALID_CONTEXT, cuCtxGetDevice(&device));
    CHECK_EQ(CUDA_ERROR_INVALID_CONTEXT, cuMemGetInfo_v2(nullptr, nullptr));
    CHECK_EQ(CUDA_ERROR_INVALID_CONTEXT, cuMemAlloc_v2(&p, 10));
    CHECK_EQ(CUDA_ERROR_INVALID_CONTEXT, cuCtxSynchronize());
    begin();
    OK(cuMemGetInfo_v2(nullptr, nullptr));
    OK(cuMemGetInfo_v2(nullptr, &bytes));
    int version = 0;
    OK(cuDriverGetVersion(&version));
    CHECK_EQ(13000, version);
    const char* text = nullptr;
    OK(cuGetErrorString(CUDA_ERROR_OUT_OF_MEMORY, &text));
    CHECK(strcmp(text, "out of memory") == 0);
    OK(cuGetErrorName(CUDA_ERROR_OUT_OF_MEMORY, &text));
    CHECK(strcmp(text, "CUDA_ERROR_OUT_OF_MEMORY") == 0);
    CHECK_EQ(CUDA_ERROR_INVALID_VALUE, cuGetErrorName(static_cast<CUresult>(998), &text));
  });
}

// The cards a child sees, as positions in the machine, by their PCI bus: "0 2 1".
std::string seen_by_child(const std::function<pid_t(const std::function<void()>&)>& start_child,
                          const std::function<int(pid_t)>& wait_child, int* result) {
  Pipe answer;
  const pid_t pid = start_child([&] {
    char text[128] = {};
    const int init = static_cast<int>(cuInit(0));
    int count = 0;
    if (init == 0) OK(cuDeviceGetCount(&count));
    for (int i = 0; i < count; ++i) {
      int bus = 0;
      OK(cuDeviceGetAttribute(&bus, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, i));
      char one[16];
      snprintf(one, sizeof one, "%s%d", i > 0 ? " " : "", (bus - 0x10) / 7);
      strcat(text, one);
    }
    answer.send(&init, sizeof init);
    answer.send(text, sizeof text);
  });
  char text[128] = {};
  answer.receive(result, sizeof *result);
  answer.receive(text, sizeof text);
  EXPECT_EQ(0, wait_child(pid));
  return text;
}

TEST_F(LookupTest, VisibleDevices) {
  machine_ = "4xH200";
  int result = 0;
  const auto seen = [&](const char* visible) {
    if (visible == nullptr) {
      unsetenv("CUDA_VISIBLE_DEVICES");
    } else {
      setenv("CUDA_VISIBLE_DEVICES", visible, 1);
    }
    return seen_by_child([this](const auto& body) { return start(body); },
                         [](pid_t pid) { return finish(pid); }, &result);
  };
  EXPECT_EQ("0 1 2 3", seen(nullptr));
  EXPECT_EQ("3 2", seen("3,2"));
  EXPECT_EQ("1", seen("1,7,2"));
  EXPECT_EQ("", seen("nonsense"));
  EXPECT_EQ(CUDA_ERROR_NO_DEVICE, result);
  EXPECT_EQ("", seen(""));
  EXPECT_EQ("", seen("-1"));
  EXPECT_EQ("0", seen("0,-1,1"));
  EXPECT_EQ("", seen("1,1"));
  const std::string dump = control("dump");
  const size_t third = dump.find("{\"index\":2");
  const std::string uuid = dump.substr(dump.find("GPU-", third), 40);
  EXPECT_EQ("2 0", seen((uuid + ",0").c_str()));
  EXPECT_EQ("2", seen(uuid.substr(0, 12).c_str()));
  EXPECT_EQ("", seen("GPU-"));  // a prefix of all of them names none
}

TEST_F(LookupTest, MachineFilesAndDeviceOrder) {
  const std::string path = folder_ + "/machine";
  std::ofstream(path) << "# two kinds\nT4\nH200 memory=32G\n\nname=\"Our Card\" memory=8G sms=10 "
                         "cc=7.0  # small\n";
  machine_ = path;
  int result = 0;
  const auto seen = [&] {
    return seen_by_child([this](const auto& body) { return start(body); },
                         [](pid_t pid) { return finish(pid); }, &result);
  };
  EXPECT_EQ("1 0 2", seen());  // the fastest first
  setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 1);
  EXPECT_EQ("0 1 2", seen());
  in_child([] {
    OK(cuInit(0));
    char name[64];
    OK(cuDeviceGetName(name, sizeof name, 2));
    CHECK(strcmp(name, "Our Card") == 0);
    OK(cuDeviceGetName(name, 4, 0));
    CHECK(strcmp(name, "Tes") == 0);
    size_t total = 0;
    OK(cuDeviceTotalMem_v2(&total, 0));
    CHECK_EQ((15360 - 445) * kMiB, total);
    CUdevice device = -1;
    OK(cuDeviceGetPCIBusId(name, sizeof name, 2));
    OK(cuDeviceGetByPCIBusId(&device, name));
    CHECK_EQ(2, device);
    CHECK_EQ(CUDA_ERROR_INVALID_DEVICE, cuDeviceGet(&device, 3));
  });
}

TEST_F(LookupTest, BadMachinesAreSaidOnceAndAnswerNoDevice) {
  for (const char* bad : {"nonsense", "4xNothing", "x", "0xH200", "99xH200", "/no/such/file"}) {
    machine_ = bad;
    const std::string log = folder_ + "/stderr";
    in_child([&] {
      const int fd = open(log.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0600);
      dup2(fd, 2);
      CHECK_EQ(CUDA_ERROR_NO_DEVICE, cuInit(0));
      CHECK_EQ(CUDA_ERROR_NO_DEVICE, cuInit(0));
      int count = 0;
      CHECK_EQ(CUDA_ERROR_NOT_INITIALIZED, cuDeviceGetCount(&count));
    });
    std::ifstream file(log);
    std::string line, more;
    std::getline(file, line);
    EXPECT_EQ(0u, line.rfind("mete-simgpu: ", 0)) << bad << ": " << line;
    EXPECT_FALSE(std::getline(file, more)) << more;
  }
}

}  // namespace
}  // namespace simgpu_test
