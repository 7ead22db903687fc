// SPDX-License-Identifier: Apache-2.0
// See agent.h. Orders:
//   start · look · alloc BYTES · fill CHUNK AT-MOST · ipc-get · ipc-open 1|2 HANDLE · ipc-close ·
//   vmm-make BYTES · vmm-open BYTES (fd) · vmm-close · pool-make BYTES · pool-open DATA (fd)
// An order is one message; the agent splits it into words, calls the driver and answers with the
// result, a text and perhaps a descriptor. It ends when its socket is closed.
#include "selftest/agent.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "abi/descriptor_message.h"
#include "base/text.h"
#include "selftest/driver.h"

extern char** environ;

namespace mete::selftest {

namespace {

constexpr std::size_t kMaxMessage = 512;
constexpr int kPatienceMs = 60'000;

bool send_message(int channel, const std::string& text, int fd) {
  abi::DescriptorMessage message(text.data(), text.size(), fd);
  return sendmsg(channel, message.header(), MSG_NOSIGNAL) >= 0;
}

// False when the other end is gone.
bool receive_message(int channel, std::string* text, Fd* fd) {
  char buffer[kMaxMessage];
  abi::DescriptorMessage message(buffer, sizeof buffer);
  const ssize_t bytes = recvmsg(channel, message.header(), MSG_CMSG_CLOEXEC);
  if (bytes <= 0) return false;
  text->assign(buffer, static_cast<std::size_t>(bytes));
  if (const int number = message.descriptor(); number >= 0) fd->reset(number);
  return true;
}

// ---- the agent's side

// The driver takes a descriptor in place of a pointer.
void* as_handle(const Fd& fd) {
  return reinterpret_cast<void*>(  // NOLINT(performance-no-int-to-ptr)
      static_cast<std::intptr_t>(fd.get()));
}

class Worker {
 public:
  // Returns the driver's result; `text` and `fd` go with the answer.
  int act(const std::vector<std::string>& words, const Fd& given, std::string* text, Fd* fd) {
    const std::string& order = words[0];
    const auto number = [&](std::size_t i) {
      return i < words.size() ? std::strtoull(words[i].c_str(), nullptr, 10) : 0;
    };
    if (order == "start") {
      card_ = selftest::start();
      return CUDA_SUCCESS;
    }
    if (order == "look") return look(text);
    if (order == "alloc") return CU(cuMemAlloc_v2)(&block_, number(1));
    if (order == "fill") return fill(number(1), number(2), text);
    if (order == "ipc-get") return ipc_get(text);
    if (order == "ipc-open" && words.size() == 3) return ipc_open(words[1], words[2]);
    if (order == "ipc-close") return CU(cuIpcCloseMemHandle)(block_);
    if (order == "vmm-make") return vmm_make(number(1), fd);
    if (order == "vmm-open") return vmm_open(number(1), given);
    if (order == "vmm-close") return vmm_close();
    if (order == "pool-make") return pool_make(number(1), text, fd);
    if (order == "pool-open" && words.size() == 2) return pool_open(words[1], given);
    return -1;
  }

 private:
  static int look(std::string* text) {
    std::size_t free = 0;
    std::size_t total = 0;
    const CUresult result = CU(cuMemGetInfo_v2)(&free, &total);
    *text = std::to_string(free);
    return result;
  }

  static int fill(std::uint64_t chunk, std::uint64_t at_most, std::string* text) {
    std::uint64_t got = 0;
    CUresult result = CUDA_SUCCESS;
    while (result == CUDA_SUCCESS && got < at_most) {
      CUdeviceptr block = 0;
      result = CU(cuMemAlloc_v2)(&block, chunk);
      if (result == CUDA_SUCCESS) got += chunk;
    }
    *text = std::to_string(got);
    return result;
  }

  int ipc_get(std::string* text) const {
    CUipcMemHandle handle{};
    const CUresult result = CU(cuIpcGetMemHandle)(&handle, block_);
    *text = base::hex_of(handle);
    return result;
  }

  int ipc_open(const std::string& version, const std::string& text) {
    CUipcMemHandle handle{};
    if (!base::take_hex(text, handle)) return -1;
    constexpr unsigned kLazyPeerAccess = 1;
    return version == "1" ? CU(cuIpcOpenMemHandle)(&block_, handle, kLazyPeerAccess)
                          : CU(cuIpcOpenMemHandle_v2)(&block_, handle, kLazyPeerAccess);
  }

  int vmm_make(std::uint64_t bytes, Fd* fd) {
    const CUmemAllocationProp prop = abi::memory_on(card_.device, true);
    CUresult result = CU(cuMemCreate)(&handle_, bytes, &prop, 0);
    int number = -1;
    if (result == CUDA_SUCCESS)
      result = CU(cuMemExportToShareableHandle)(&number, handle_,
                                                CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
    fd->reset(number);
    return result;
  }

  int vmm_open(std::uint64_t bytes, const Fd& fd) {
    bytes_ = bytes;
    CUresult result = CU(cuMemImportFromShareableHandle)(&handle_, as_handle(fd),
                                                         CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    if (result == CUDA_SUCCESS) result = CU(cuMemAddressReserve)(&block_, bytes, 0, 0, 0);
    if (result == CUDA_SUCCESS) result = CU(cuMemMap)(block_, bytes, 0, handle_, 0);
    return result;
  }

  int vmm_close() const {
    const CUresult result = CU(cuMemUnmap)(block_, bytes_);
    return result != CUDA_SUCCESS ? result : CU(cuMemRelease)(handle_);
  }

  int pool_make(std::uint64_t bytes, std::string* text, Fd* fd) {
    const CUmemPoolProps props = abi::pool_on(card_.device, true);
    CUmemoryPool pool = nullptr;
    CUmemPoolPtrExportData data{};
    int number = -1;
    CUresult result = CU(cuMemPoolCreate)(&pool, &props);
    if (result == CUDA_SUCCESS) result = CU(cuMemAllocFromPoolAsync)(&block_, bytes, pool, nullptr);
    if (result == CUDA_SUCCESS) result = CU(cuStreamSynchronize)(nullptr);
    if (result == CUDA_SUCCESS)
      result = CU(cuMemPoolExportToShareableHandle)(&number, pool,
                                                    CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
    fd->reset(number);
    if (result == CUDA_SUCCESS) result = CU(cuMemPoolExportPointer)(&data, block_);
    *text = base::hex_of(data);
    return result;
  }

  int pool_open(const std::string& text, const Fd& fd) {
    CUmemPoolPtrExportData data{};
    CUmemoryPool pool = nullptr;
    if (!base::take_hex(text, data)) return -1;
    CUresult result = CU(cuMemPoolImportFromShareableHandle)(
        &pool, as_handle(fd), CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
    if (result == CUDA_SUCCESS) result = CU(cuMemPoolImportPointer)(&block_, pool, &data);
    return result;
  }

  Card card_;
  CUdeviceptr block_ = 0;
  CUmemGenericAllocationHandle handle_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace

int run_agent(int channel) {
  Worker worker;
  std::string order;
  Fd given;
  while (receive_message(channel, &order, &given)) {
    std::vector<std::string> words;
    for (const std::string_view word : base::split(order, ' ')) words.emplace_back(word);
    std::string text;
    Fd fd;
    const int result = worker.act(words, given, &text, &fd);
    given.reset();
    if (!send_message(channel, std::to_string(result) + " " + text, fd.get())) break;
  }
  return 0;
}

// ---- the test's side

Agent::Agent(const std::string& program) {
  int ends[2] = {-1, -1};
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return;
  channel_.reset(ends[0]);
  const Fd theirs(ends[1]);
  constexpr int kTheirNumber = 3;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, theirs.get(), kTheirNumber);
  std::string name = program;
  std::string flag = "--agent";
  char* argv[] = {name.data(), flag.data(), nullptr};
  pid_t pid = -1;
  if (posix_spawn(&pid, program.c_str(), &actions, nullptr, argv, environ) == 0) pid_ = pid;
  posix_spawn_file_actions_destroy(&actions);
}

Agent::~Agent() { kill(); }

void Agent::tell(const std::string& order, const Fd* fd) const {
  (void)send_message(channel_.get(), order, fd != nullptr ? fd->get() : -1);
}

Answer Agent::hear() const {
  Answer answer;
  pollfd ready{channel_.get(), POLLIN, 0};
  std::string text;
  if (pid_ < 0 || poll(&ready, 1, kPatienceMs) <= 0 ||
      !receive_message(channel_.get(), &text, &answer.fd))
    return answer;
  const std::size_t space = text.find(' ');
  answer.result = std::atoi(text.c_str());
  if (space != std::string::npos) answer.text = text.substr(space + 1);
  return answer;
}

void Agent::kill() {
  if (pid_ < 0) return;
  (void)::kill(pid_, SIGKILL);
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
}

}  // namespace mete::selftest
