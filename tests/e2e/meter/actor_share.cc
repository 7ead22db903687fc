// SPDX-License-Identifier: Apache-2.0
// Memory shared between processes: legacy IPC handles as text, virtual-memory handles as
// descriptors over a Unix socket whose path the test chooses.
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "actor.h"

namespace actor {
namespace {

std::string get_handle(const Words& w) {
  CUipcMemHandle handle{};
  const CUresult r = CU(cuIpcGetMemHandle)(&handle, piece(static_cast<int>(number(w[1]))).value);
  std::string text;
  for (const char c : handle.reserved) {
    char two[4];
    std::snprintf(two, sizeof two, "%02x", static_cast<unsigned char>(c));
    text += two;
  }
  return answer(r) + " " + text;
}

std::string open_handle(const Words& w) {
  CUipcMemHandle handle{};
  for (size_t i = 0; i < sizeof handle.reserved; ++i)
    handle.reserved[i] =
        static_cast<char>(std::strtoul(w[1].substr(2 * i, 2).c_str(), nullptr, 16));
  CUdeviceptr pointer = 0;
  const CUresult r =
      CU(cuIpcOpenMemHandle_v2)(&pointer, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
  return r == CUDA_SUCCESS ? answer(r, keep({"opened", pointer, 0, nullptr, 0})) : answer(r);
}

sockaddr_un address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  return address;
}

// A datagram socket at `path`, ready before the answer goes out: no process has to wait for it.
std::map<std::string, int> sockets;
std::string listen_at(const Words& w) {
  const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const sockaddr_un address = address_of(w[1]);
  sockets[w[1]] = fd;
  return answer(bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address));
}

struct Carrier {
  char byte = 'x';
  iovec data{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  Carrier() {
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
  }
};

std::string export_to(const Words& w) {  // export ID PATH
  int fd = -1;
  CUresult r = CU(cuMemExportToShareableHandle)(&fd, piece(static_cast<int>(number(w[1]))).value,
                                                CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
  if (r != CUDA_SUCCESS) return answer(r);
  Carrier carrier;
  sockaddr_un address = address_of(w[2]);
  carrier.message.msg_name = &address;
  carrier.message.msg_namelen = sizeof address;
  cmsghdr* head = CMSG_FIRSTHDR(&carrier.message);
  head->cmsg_level = SOL_SOCKET;
  head->cmsg_type = SCM_RIGHTS;
  head->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(head), &fd, sizeof fd);
  const int from = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const bool sent = sendmsg(from, &carrier.message, 0) == 1;
  close(from);
  close(fd);
  return answer(sent ? 0 : 998);
}

// Takes the next descriptor and imports it.
CUresult import_next(const std::string& path, CUmemGenericAllocationHandle* handle) {
  Carrier carrier;
  int fd = -1;
  if (recvmsg(sockets.at(path), &carrier.message, MSG_CMSG_CLOEXEC) != 1) return CUDA_ERROR_UNKNOWN;
  std::memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&carrier.message)), sizeof fd);
  const CUresult r =
      CU(cuMemImportFromShareableHandle)(handle, reinterpret_cast<void*>(static_cast<intptr_t>(fd)),
                                         CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  close(fd);
  return r;
}

// import PATH BYTES [AGAIN]: imports the next descriptor and maps it, after AGAIN times of mapping
// and unmapping; the handle is released, only the mapping holds the memory.
std::string import_from(const Words& w) {
  CUmemGenericAllocationHandle handle{};
  CUresult r = import_next(w[1], &handle);
  if (r != CUDA_SUCCESS) return answer(r);
  const uint64_t bytes = number(w[2]);
  CUdeviceptr at = 0;
  r = CU(cuMemAddressReserve)(&at, bytes, 0, 0, 0);
  for (uint64_t i = 0; i < number_or(w, 3, 0) && r == CUDA_SUCCESS; ++i) {
    r = CU(cuMemMap)(at, bytes, 0, handle, 0);
    if (r == CUDA_SUCCESS) r = CU(cuMemUnmap)(at, bytes);
  }
  if (r == CUDA_SUCCESS) r = CU(cuMemMap)(at, bytes, 0, handle, 0);
  (void)CU(cuMemRelease)(handle);
  return r == CUDA_SUCCESS ? answer(r, keep({"mapped", at, bytes, nullptr, 0})) : answer(r);
}

// import-briefly PATH BYTES TIMES: maps and unmaps the next descriptor TIMES times, and keeps
// nothing.
std::string import_briefly(const Words& w) {
  CUmemGenericAllocationHandle handle{};
  CUresult r = import_next(w[1], &handle);
  if (r != CUDA_SUCCESS) return answer(r);
  const uint64_t bytes = number(w[2]);
  CUdeviceptr at = 0;
  r = CU(cuMemAddressReserve)(&at, bytes, 0, 0, 0);
  for (uint64_t i = 0; i < number(w[3]) && r == CUDA_SUCCESS; ++i) {
    r = CU(cuMemMap)(at, bytes, 0, handle, 0);
    if (r == CUDA_SUCCESS) r = CU(cuMemUnmap)(at, bytes);
  }
  const CUresult released = CU(cuMemRelease)(handle);
  (void)CU(cuMemAddressFree)(at, bytes);
  return answer(r != CUDA_SUCCESS ? r : released);
}

}  // namespace

void add_share_commands() {
  auto& c = commands();
  c["ipc-get"] = get_handle;
  c["ipc-open"] = open_handle;
  c["listen"] = listen_at;
  c["export"] = export_to;
  c["import"] = import_from;
  c["import-briefly"] = import_briefly;
}

}  // namespace actor
