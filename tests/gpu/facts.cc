// SPDX-License-Identifier: Apache-2.0
// Measures what a card really does with memory: slabs and rounding, growth of pools and graph
// memory, array sizes, contexts, limits, module globals, NVML's times, to whom NVML counts imported
// memory, and how long memory stays taken after a SIGKILL. The meter's arithmetic and simgpu's
// defaults rest on these numbers (expected: one H200, driver 580.159.04, CUDA 13.0). Run it without
// a cap on a card that nobody else uses; a number that differs is reported as `info`, a call that
// fails as FAIL.   facts [--list] [NAME ...]
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <functional>

#include "tests/gpu/children.h"

using namespace gpu;

namespace {

Nvml nvml;

size_t used() { return nvml.used(); }

void fact(const std::string& what, size_t bytes, size_t expected) {
  info(what, bytes == expected ? mib(bytes) : mib(bytes) + "   DIFFERS, expected " + mib(expected));
}

// Physical growth while `action` runs.
size_t growth(const std::function<void()>& action) {
  const size_t before = used();
  action();
  const size_t after = used();
  return after > before ? after - before : 0;
}

void slabs() {
  struct {
    size_t size, count, expected;
  } cases[] = {{512, 10000, 6 * kMiB},         {4 * kKiB, 1024, 4 * kMiB},
               {64 * kKiB, 256, 16 * kMiB},    {kMiB, 64, 64 * kMiB},
               {kMiB + 1, 64, 128 * kMiB},     {2 * kMiB, 64, 128 * kMiB},
               {2 * kMiB + 1, 64, 256 * kMiB}, {3 * kMiB, 64, 256 * kMiB}};
  for (const auto& c : cases) {
    std::vector<CUdeviceptr> blocks(c.count);
    const size_t base = used();
    const size_t taken = growth([&] {
      for (CUdeviceptr& p : blocks) must(cu.cuMemAlloc_v2(&p, c.size), "cuMemAlloc");
    });
    for (const CUdeviceptr p : blocks) must(cu.cuMemFree_v2(p), "cuMemFree");
    fact(text("cuMemAlloc of %zu B, %zu times", c.size, c.count), taken, c.expected);
    if (used() > base) info(text("  still taken after freeing them"), mib(used() - base));
  }
  CUdeviceptr p = 0;
  size_t pitch = 0;
  must(cu.cuMemAllocPitch_v2(&p, &pitch, 4, 1024, 4), "cuMemAllocPitch");
  info("pitch of 4-byte rows", text("%zu B", pitch));
  must(cu.cuMemFree_v2(p), "cuMemFree");
}

void pools() {
  CUstream stream = nullptr;
  must(cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  const struct {
    size_t size, expected;
  } cases[] = {{12, 32 * kMiB},
               {kMiB, 32 * kMiB},
               {16 * kMiB, 32 * kMiB},
               {33 * kMiB, 64 * kMiB},
               {100 * kMiB, 128 * kMiB}};
  for (const auto& c : cases) {
    CUmemoryPool pool = nullptr;
    const CUmemPoolProps props = pool_on_card();
    CUdeviceptr p = 0;
    must(cu.cuMemPoolCreate(&pool, &props), "cuMemPoolCreate");
    const size_t taken = growth([&] {
      must(cu.cuMemAllocFromPoolAsync(&p, c.size, pool, stream), "cuMemAllocFromPoolAsync");
      must(cu.cuStreamSynchronize(stream), "cuStreamSynchronize");
    });
    fact(text("pool, first request of %zu B: RESERVED", c.size), pool_reserved(pool), c.expected);
    if (taken != c.expected) fact("  physical", taken, c.expected);
    must(cu.cuMemFreeAsync(p, stream), "cuMemFreeAsync");
    const size_t freed = pool_reserved(pool);
    must(cu.cuStreamSynchronize(stream), "cuStreamSynchronize");
    if (c.size == 12) {
      fact("pool, threshold 0: RESERVED after the free", freed, 32 * kMiB);
      fact("pool, threshold 0: RESERVED after the synchronise", pool_reserved(pool), 0);
    }
    must(cu.cuMemPoolDestroy(pool), "cuMemPoolDestroy");
  }
  CUmemoryPool pool = nullptr;
  const CUmemPoolProps props = pool_on_card();
  must(cu.cuMemPoolCreate(&pool, &props), "cuMemPoolCreate");
  cuuint64_t keep = ~cuuint64_t{0};
  must(cu.cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep), "threshold");
  CUdeviceptr p = 0;
  must(cu.cuMemAllocFromPoolAsync(&p, kMiB, pool, stream), "cuMemAllocFromPoolAsync");
  must(cu.cuMemFreeAsync(p, stream), "cuMemFreeAsync");
  must(cu.cuStreamSynchronize(stream), "cuStreamSynchronize");
  fact("pool with a threshold: RESERVED after free and synchronise", pool_reserved(pool),
       32 * kMiB);
  must(cu.cuMemPoolTrimTo(pool, 0), "cuMemPoolTrimTo");
  fact("pool with a threshold: RESERVED after TrimTo", pool_reserved(pool), 0);
  const double begin = now_s();
  for (int i = 0; i < 10000; i++) (void)pool_reserved(pool);
  info("cuMemPoolGetAttribute", text("%.0f ns (was 43)", (now_s() - begin) * 1e5));
  must(cu.cuMemPoolDestroy(pool), "cuMemPoolDestroy");
  must(cu.cuStreamDestroy_v2(stream), "cuStreamDestroy");
}

// Do live allocations of several graphs share a growth step? Launches `count` graphs of 16 MiB
// each.
void many_graphs(int count) {
  struct One {
    CUgraphExec exec;
    CUdeviceptr p;
  };
  std::vector<One> all;
  CUstream stream = nullptr;
  const CUmemAccessDesc access = read_write();
  must(cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  for (int i = 0; i < count; i++) {
    CUgraph graph = nullptr;
    CUgraphNode node = nullptr;
    One one{};
    CUDA_MEM_ALLOC_NODE_PARAMS params{};
    params.poolProps = pool_on_card();
    params.accessDescs = &access, params.accessDescCount = 1, params.bytesize = 16 * kMiB;
    must(cu.cuGraphCreate(&graph, 0), "cuGraphCreate");
    must(cu.cuGraphAddMemAllocNode(&node, graph, nullptr, 0, &params), "cuGraphAddMemAllocNode");
    must(cu.cuGraphInstantiateWithFlags(&one.exec, graph, 0), "instantiate");
    must(cu.cuGraphDestroy(graph), "cuGraphDestroy");
    must(cu.cuGraphLaunch(one.exec, stream), "cuGraphLaunch");
    must(cu.cuStreamSynchronize(stream), "cuStreamSynchronize");
    one.p = params.dptr;
    all.push_back(one);
  }
  cuuint64_t in_use = 0;
  must(cu.cuDeviceGetGraphMemAttribute(device, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &in_use),
       "graph memory attribute");
  info(text("graphs: %d of 16 MiB each, all live", count),
       "RESERVED " + mib(graph_reserved()) + ", USED " + mib(in_use));
  for (const One& one : all) {
    must(cu.cuMemFree_v2(one.p), "cuMemFree of graph memory");
    must(cu.cuGraphExecDestroy(one.exec), "cuGraphExecDestroy");
  }
  must(cu.cuDeviceGraphMemTrim(device), "cuDeviceGraphMemTrim");
  must(cu.cuStreamDestroy_v2(stream), "cuStreamDestroy");
}

void graphs() {
  CUstream stream = nullptr;
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  CUgraphNode node = nullptr;
  const CUmemAccessDesc access = read_write();
  CUDA_MEM_ALLOC_NODE_PARAMS params{};
  params.poolProps = pool_on_card();
  params.accessDescs = &access, params.accessDescCount = 1, params.bytesize = 16 * kMiB;
  must(cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  must(cu.cuGraphCreate(&graph, 0), "cuGraphCreate");
  must(cu.cuGraphAddMemAllocNode(&node, graph, nullptr, 0, &params), "cuGraphAddMemAllocNode");
  fact("graph with a 16 MiB node: at instantiate",
       growth([&] { must(cu.cuGraphInstantiateWithFlags(&exec, graph, 0), "instantiate"); }), 0);
  fact("graph: at launch", growth([&] {
         must(cu.cuGraphLaunch(exec, stream), "cuGraphLaunch");
         must(cu.cuStreamSynchronize(stream), "cuStreamSynchronize");
       }),
       32 * kMiB);
  fact("graph: GRAPH_MEM RESERVED", graph_reserved(), 32 * kMiB);
  must(cu.cuMemFree_v2(params.dptr), "cuMemFree of graph memory");
  must(cu.cuGraphExecDestroy(exec), "cuGraphExecDestroy");
  must(cu.cuGraphDestroy(graph), "cuGraphDestroy");
  fact("graph: RESERVED after free and destroy", graph_reserved(), 32 * kMiB);
  must(cu.cuDeviceGraphMemTrim(device), "cuDeviceGraphMemTrim");
  fact("graph: RESERVED after cuDeviceGraphMemTrim", graph_reserved(), 0);
  must(cu.cuStreamDestroy_v2(stream), "cuStreamDestroy");
  many_graphs(2);
  many_graphs(8);
}

void one_array(const std::string& name, CUDA_ARRAY3D_DESCRIPTOR shape, unsigned levels,
               size_t expected) {
  constexpr unsigned kDeferred = 0x80;  // CUDA_ARRAY3D_DEFERRED_MAPPING
  CUDA_ARRAY3D_DESCRIPTOR twin_shape = shape;
  twin_shape.Flags |= kDeferred;
  CUDA_ARRAY_MEMORY_REQUIREMENTS need{};
  size_t twin_cost = 0, physical = 0;
  constexpr size_t kCount = 16;  // several, so that slabs average out
  if (levels) {
    CUmipmappedArray twin = nullptr, real[kCount];
    twin_cost =
        growth([&] { must(cu.cuMipmappedArrayCreate(&twin, &twin_shape, levels), "twin"); });
    must(cu.cuMipmappedArrayGetMemoryRequirements(&need, twin, device), "requirements");
    must(cu.cuMipmappedArrayDestroy(twin), "destroy");
    physical = growth([&] {
      for (auto& a : real) must(cu.cuMipmappedArrayCreate(&a, &shape, levels), "mipmap");
    });
    for (auto& a : real) must(cu.cuMipmappedArrayDestroy(a), "destroy");
  } else {
    CUarray twin = nullptr, real[kCount];
    twin_cost = growth([&] { must(cu.cuArray3DCreate_v2(&twin, &twin_shape), "twin"); });
    must(cu.cuArrayGetMemoryRequirements(&need, twin, device), "requirements");
    must(cu.cuArrayDestroy(twin), "destroy");
    physical = growth([&] {
      for (auto& a : real) must(cu.cuArray3DCreate_v2(&a, &shape), "array");
    });
    for (auto& a : real) must(cu.cuArrayDestroy(a), "destroy");
  }
  info("array " + name,
       text("twin says %zu B%s and costs %s; physical %s each", need.size,
            need.size == expected ? "" : text(" (DIFFERS, expected %zu)", expected).c_str(),
            mib(twin_cost).c_str(), mib(physical / kCount).c_str()));
}

void arrays() {
  one_array("1000 x 1000 float4", {1000, 1000, 0, CU_AD_FORMAT_FLOAT, 4, 0}, 0, 16384000);
  one_array("4096 x 1 float4", {4096, 1, 0, CU_AD_FORMAT_FLOAT, 4, 0}, 0, 524288);
  one_array("1D of 131072 float4", {131072, 0, 0, CU_AD_FORMAT_FLOAT, 4, 0}, 0, 16 * kMiB);
  one_array("256 x 256 x 64 float4", {256, 256, 64, CU_AD_FORMAT_FLOAT, 4, 0}, 0, 64 * kMiB);
  one_array("mipmap 1024 x 1024, 11 levels", {1024, 1024, 0, CU_AD_FORMAT_FLOAT, 4, 0}, 11,
            22413312);
}

void contexts() {
  CUcontext extra[3] = {};
  for (CUcontext& c : extra) {
    const size_t taken = growth([&] { must(cu.cuCtxCreate_v2(&c, 0, device), "cuCtxCreate"); });
    info("a further cuCtxCreate", mib(taken) + " (was 523.6 MiB)");
  }
  const size_t before = used();
  for (const CUcontext c : extra) must(cu.cuCtxDestroy_v2(c), "cuCtxDestroy");
  must(cu.cuCtxSetCurrent(context), "cuCtxSetCurrent");
  info("  back at cuCtxDestroy of the three", mib(before - used()));
  info("primary context, as NVML counts this process",
       mib(nvml.used_by(getpid())) + " (was 518 MiB)");
  size_t sum = 0;
  for (const nvmlProcessInfo_t& p : nvml.processes()) sum += p.usedGpuMemory;
  info("card's used memory above the sum of its processes",
       mib(used() - sum) + " (was about 0.6 GiB)");
}

void limits() {
  fact("cuCtxSetLimit, stack of 16 KiB: at once",
       growth([&] { must(cu.cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 16 * kKiB), "stack limit"); }),
       3960 * kMiB);
  must(cu.cuCtxSetLimit(CU_LIMIT_STACK_SIZE, kKiB), "stack limit");
  fact("cuCtxSetLimit, malloc heap of 512 MiB: at once",
       growth([&] { must(cu.cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 512 * kMiB), "heap limit"); }),
       0);
  fact("cuCtxSetLimit, printf buffer of 64 MiB: at once", growth([&] {
         must(cu.cuCtxSetLimit(CU_LIMIT_PRINTF_FIFO_SIZE, 64 * kMiB), "printf limit");
       }),
       0);
}

void globals() {
  const char* ptx =
      ".version 6.0\n.target sm_50\n.address_size 64\n"
      ".visible .global .align 4 .b8 big[536870912];\n.visible .entry k() { ret; }\n";
  CUmodule module = nullptr;
  fact("module with a 512 MiB global: at cuModuleLoadData",
       growth([&] { must(cu.cuModuleLoadData(&module, ptx), "cuModuleLoadData"); }), 512 * kMiB);
  CUfunction kernel = nullptr;
  must(cu.cuModuleGetFunction(&kernel, module, "k"), "cuModuleGetFunction");
  info("first launch of an empty kernel",
       mib(growth([&] {
         must(cu.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr), "launch");
         must(cu.cuCtxSynchronize(), "cuCtxSynchronize");
       })) +
           " more");
  must(cu.cuModuleUnload(module), "cuModuleUnload");
}

void times() {
  double begin = now_s();
  for (int i = 0; i < 200; i++) (void)nvml.processes();
  info("NVML per-process query", text("%.0f us (was 25)", (now_s() - begin) * 1e6 / 200));
  begin = now_s();
  for (int i = 0; i < 200; i++) (void)nvml.used();
  info("NVML memory query", text("%.0f us (was 6)", (now_s() - begin) * 1e6 / 200));
  nvml.nvmlShutdown();
  begin = now_s();
  nvml.nvmlInit_v2();
  info("nvmlInit, again", text("%.1f ms (was 8-12)", (now_s() - begin) * 1e3));
  nvml.open(device);
}

// ---- several processes ----
int send_fd(int socket, int fd) {
  char byte = 'f', control[CMSG_SPACE(sizeof(int))] = {};
  iovec io{&byte, 1};
  msghdr message{};
  message.msg_iov = &io, message.msg_iovlen = 1, message.msg_control = control,
  message.msg_controllen = sizeof control;
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET, header->cmsg_type = SCM_RIGHTS,
  header->cmsg_len = CMSG_LEN(sizeof(int));
  memcpy(CMSG_DATA(header), &fd, sizeof fd);
  return sendmsg(socket, &message, 0) == 1 ? 0 : -1;
}
int receive_fd(int socket) {
  char byte = 0, control[CMSG_SPACE(sizeof(int))] = {};
  iovec io{&byte, 1};
  msghdr message{};
  message.msg_iov = &io, message.msg_iovlen = 1, message.msg_control = control,
  message.msg_controllen = sizeof control;
  if (recvmsg(socket, &message, 0) != 1) return -1;
  int fd = -1;
  if (const cmsghdr* header = CMSG_FIRSTHDR(&message)) memcpy(&fd, CMSG_DATA(header), sizeof fd);
  return fd;
}
sockaddr_un address(const std::string& name) {
  sockaddr_un a{};
  a.sun_family = AF_UNIX;
  snprintf(a.sun_path + 1, sizeof a.sun_path - 1, "%s", name.c_str());
  return a;
}

// A process that owns, exports, imports or just holds memory, as told.
int helper() {
  start();
  tell("up");
  CUdeviceptr p = 0;
  CUmemGenericAllocationHandle handle{};
  int listener = -1;
  for (std::string o = order(); !o.empty(); o = order()) {
    char name[200] = {};
    size_t bytes = 0;
    if (sscanf(o.c_str(), "hold %zu", &bytes) == 1) {
      must(cu.cuMemAlloc_v2(&p, bytes), "cuMemAlloc");
      tell("done");
    } else if (o == "ipc-export") {
      CUipcMemHandle h;
      must(cu.cuIpcGetMemHandle(&h, p), "cuIpcGetMemHandle");
      std::string hex;
      for (const char c : h.reserved) hex += text("%02x", static_cast<unsigned char>(c));
      tell("handle " + hex);
    } else if (o.rfind("ipc-import ", 0) == 0) {
      CUipcMemHandle h;
      for (size_t i = 0; i < 64; i++)
        h.reserved[i] = static_cast<char>(strtoul(o.substr(11 + 2 * i, 2).c_str(), nullptr, 16));
      must(cu.cuIpcOpenMemHandle_v2(&p, h, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS),
           "cuIpcOpenMemHandle");
      tell("done");
    } else if (sscanf(o.c_str(), "vmm-export %zu %199s", &bytes, name) == 2) {
      const CUmemAllocationProp prop = on_card(true);
      int fd = -1;
      must(cu.cuMemCreate(&handle, bytes, &prop, 0), "cuMemCreate");
      must(
          cu.cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
          "export");
      const sockaddr_un a = address(name);
      listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
      if (bind(listener, reinterpret_cast<const sockaddr*>(&a), sizeof a) || listen(listener, 1))
        die("listen");
      tell("listening");
      const int peer = accept(listener, nullptr, nullptr);
      if (send_fd(peer, fd)) die("send_fd");
      tell("done");
    } else if (sscanf(o.c_str(), "vmm-import %zu %199s", &bytes, name) == 2) {
      const sockaddr_un a = address(name);
      const int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
      if (connect(s, reinterpret_cast<const sockaddr*>(&a), sizeof a)) die("connect");
      const int fd = receive_fd(s);
      must(cu.cuMemImportFromShareableHandle(&handle,
                                             reinterpret_cast<void*>(static_cast<intptr_t>(fd)),
                                             CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
           "import");
      must(cu.cuMemAddressReserve(&p, bytes, 0, 0, 0), "reserve");
      must(cu.cuMemMap(p, bytes, 0, handle, 0), "map");
      const CUmemAccessDesc access = read_write();
      must(cu.cuMemSetAccess(p, bytes, &access, 1), "access");
      tell("done");
    }
  }
  return 0;
}

// NVML's figure for a child. Where NVML speaks of other pids (another namespace), the newest
// unknown one is it.
struct Watched {
  explicit Watched(const std::vector<nvmlProcessInfo_t>& before) : child({"--helper"}) {
    child.expect("up");
    for (const nvmlProcessInfo_t& p : nvml.processes())
      if (std::none_of(before.begin(), before.end(), [&](const auto& b) { return b.pid == p.pid; }))
        pid = p.pid;
  }
  size_t used() const { return nvml.used_by(static_cast<pid_t>(pid)); }
  Child child;
  unsigned pid = 0;
};

void imports() {
  for (const std::string kind : {"cuIpc", "VMM descriptor"}) {
    auto owner = std::make_unique<Watched>(nvml.processes());
    auto importer = std::make_unique<Watched>(nvml.processes());
    const size_t owner0 = owner->used(), importer0 = importer->used();
    if (kind == "cuIpc") {
      owner->child.say(text("hold %zu", kGiB));
      owner->child.expect("done");
      owner->child.say("ipc-export");
      const std::string handle = owner->child.expect("handle ").substr(7);
      importer->child.say("ipc-import " + handle);
      importer->child.expect("done");
    } else {
      const std::string name = text("mete-facts-%d", getpid());
      owner->child.say(text("vmm-export %zu %s", kGiB, name.c_str()));
      owner->child.expect("listening");
      importer->child.say(text("vmm-import %zu %s", kGiB, name.c_str()));
      importer->child.expect("done");
      owner->child.expect("done");
    }
    info(kind + ", 1 GiB shared: NVML counts to the owner", mib(owner->used() - owner0));
    info(kind + ", 1 GiB shared: NVML counts to the importer", mib(importer->used() - importer0));
    const size_t card = used();
    owner->child.kill_and_wait();
    owner.reset();
    info(kind + ", owner killed: the card gets back",
         mib(card - used()) + " (its context is about 520 MiB)");
    info(kind + ", owner killed: NVML counts to the importer", mib(importer->used() - importer0));
    const size_t orphaned = used();
    importer.reset();
    info(kind + ", importer gone too: the card gets back", mib(orphaned - used()));
  }
}

void teardown() {
  for (const size_t bytes : {kGiB, 20 * kGiB, 100 * kGiB}) {
    if (nvml.free() < bytes + 2 * kGiB) continue;
    std::vector<double> delays;
    double reap = 0;
    bool at_once = true;
    for (int i = 0; i < 5; i++) {
      const size_t before = used();
      Child child({"--helper"});
      child.expect("up");
      child.say(text("hold %zu", bytes));
      child.expect("done");
      const double begin = now_s();
      child.kill_and_wait();
      const double reaped = now_s();
      reap = std::max(reap, reaped - begin);
      bool first = true;
      while (used() > before + 8 * kMiB && now_s() < reaped + 10) first = false;
      at_once = at_once && first;
      delays.push_back(now_s() - reaped);
    }
    info(text("SIGKILL of a process with %zu GiB", bytes / kGiB),
         text("reaped within %.0f ms; memory free %s, at most %.1f ms after the reap", reap * 1e3,
              at_once ? "at the first look" : "later",
              *std::max_element(delays.begin(), delays.end()) * 1e3));
  }
}

// Which questions spoil a capture (mode global) when they are asked in the middle of it: the meter
// may ask those only after it has lifted the rule for its thread.
void capture_rules() {
  CUmemoryPool pool = nullptr;
  must(cu.cuDeviceGetDefaultMemPool(&pool, device), "cuDeviceGetDefaultMemPool");
  const struct {
    const char* name;
    CUresult (*ask)(CUmemoryPool);
  } questions[] = {
      {"cuMemPoolGetAttribute",
       [](CUmemoryPool p) {
         cuuint64_t value = 0;
         return cu.cuMemPoolGetAttribute(p, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &value);
       }},
      {"cuMemPoolTrimTo", [](CUmemoryPool p) { return cu.cuMemPoolTrimTo(p, 0); }},
      {"cuDeviceGetGraphMemAttribute",
       [](CUmemoryPool) {
         cuuint64_t value = 0;
         return cu.cuDeviceGetGraphMemAttribute(device, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT,
                                                &value);
       }},
      {"cuDeviceGraphMemTrim", [](CUmemoryPool) { return cu.cuDeviceGraphMemTrim(device); }},
      {"cuMemGetInfo",
       [](CUmemoryPool) {
         size_t free = 0, total = 0;
         return cu.cuMemGetInfo_v2(&free, &total);
       }},
      {"cuMemAlloc",
       [](CUmemoryPool) {
         CUdeviceptr p = 0;
         return cu.cuMemAlloc_v2(&p, kMiB);
       }},
  };
  for (const auto& q : questions) {
    CUstream stream = nullptr;
    CUgraph graph = nullptr;
    must(cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    must(cu.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), "cuStreamBeginCapture");
    const CUresult answer = q.ask(pool);
    const CUresult end = cu.cuStreamEndCapture(stream, &graph);
    info(text("during a global capture: %s", q.name),
         text("%s; the capture ends with %s", error_name(answer).c_str(), error_name(end).c_str()));
    if (graph) (void)cu.cuGraphDestroy(graph);
    must(cu.cuStreamDestroy_v2(stream), "cuStreamDestroy");
  }
}

const struct {
  const char* name;
  void (*run)();
} kFacts[] = {{"slabs", slabs},   {"pools", pools},          {"graphs", graphs},
              {"arrays", arrays}, {"contexts", contexts},    {"globals", globals},
              {"times", times},   {"imports", imports},      {"teardown", teardown},
              {"limits", limits}, {"capture", capture_rules}};

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && !strcmp(argv[1], "--helper")) return helper();
  if (argc == 2 && !strcmp(argv[1], "--list")) {
    for (const auto& f : kFacts) puts(f.name);
    return 0;
  }
  start();
  nvml.open(device);
  if (grant() != kNothing) die("run me without a cap: NVML would speak of the grant");
  for (const auto& f : kFacts) {
    bool wanted = argc == 1;
    for (int i = 1; i < argc; i++) wanted = wanted || !strcmp(argv[i], f.name);
    if (wanted) f.run();
  }
  return failures ? 1 : 0;
}
