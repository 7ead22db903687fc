// SPDX-License-Identifier: Apache-2.0
// See ipc.h. The owner listens on an abstract socket; a thread, started with the first handle that
// a program asks for, answers each request that knows the secret with a descriptor of the chunk.
// Each side keeps the connection open while the memory is open: its end shows the owner that the
// memory is closed. Opening the same chunk again only counts. Memory from outside the job is
// charged to the process that opens it (share.h).
#include "meter/ipc.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "abi/cuda_card.h"
#include "abi/descriptor_message.h"
#include "abi/old_glibc.h"
#include "abi/process.h"
#include "meter/budget.h"
#include "meter/chunk.h"
#include "meter/gate.h"
#include "meter/memory.h"
#include "meter/park.h"
#include "meter/place.h"
#include "meter/real.h"
#include "meter/relaxed.h"
#include "meter/share.h"
#include "meter/state.h"

namespace mete::meter {
namespace {

constexpr uint8_t kMagic[8] = {'M', 'E', 'T', 'E', 'I', 'P', 'C', '1'};
constexpr int kHighFd = 200;  // leaves low numbers to programs that rely on them
constexpr int kMaxOpen = 1000;
constexpr time_t kPatienceS = 20;

// The content of the 64 bytes.
struct Name {
  uint8_t magic[8];
  uint32_t pid;
  uint32_t nonce;
  uint8_t secret[16];
  uint64_t id;      // of the chunk
  uint64_t offset;  // of the block in it
  uint64_t bytes;   // of the block
  uint64_t whole;   // of the chunk
};
static_assert(sizeof(Name) == sizeof(CUipcMemHandle));

struct Ask {
  uint8_t secret[16];
  uint64_t id;
};

uint64_t key_of(const uint8_t* secret, uint64_t id) {
  uint8_t words[24];
  memcpy(words, secret, 16);
  memcpy(words + 16, &id, 8);
  return bytes_key(words, sizeof(words));
}

// An abstract name: "mete-ipc-PID-NONCE", in hexadecimal digits. The secret is not part of it,
// since every user can list abstract names.
socklen_t address_of(uint32_t pid, uint32_t nonce, sockaddr_un* address) {
  constexpr char kDigits[] = "0123456789abcdef";
  constexpr char kPrefix[] = "mete-ipc-";
  *address = {};
  address->sun_family = AF_UNIX;
  char* at = address->sun_path + 1;
  memcpy(at, kPrefix, sizeof(kPrefix) - 1);
  at += sizeof(kPrefix) - 1;
  for (const uint32_t word : {pid, nonce}) {
    for (int shift = 28; shift >= 0; shift -= 4) *at++ = kDigits[word >> shift & 15];
    *at++ = '-';
  }
  return static_cast<socklen_t>(at - reinterpret_cast<char*>(address));
}

void close_fd(int fd) {
  if (fd >= 0) abi::close_quietly(fd);
}

// ---- giving -------------------------------------------------------------------------------------

bool same_user(int fd) {
  ucred peer{};
  socklen_t size = sizeof(peer);
  return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
         (peer.uid == geteuid() || peer.uid == 0);
}

// A descriptor of the chunk, or the driver's error.
CUresult export_chunk(uint64_t id, int* descriptor) {
  const Passage passage;  // not while the memory is away
  CUmemGenericAllocationHandle handle = 0;
  {
    Locked locked(process.lock);
    for (const Chunk& chunk : process.chunks)
      if (chunk.id == id) handle = chunk.handle;
  }
  if (handle == 0) return CUDA_ERROR_INVALID_VALUE;  // freed meanwhile
  return real.cuMemExportToShareableHandle(descriptor, handle,
                                           CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
}

// Returns whether the connection stays open: the other side has opened the memory.
bool answer_ask(int connection) {
  Ask ask{};
  if (recv(connection, &ask, sizeof(ask), MSG_DONTWAIT) != static_cast<ssize_t>(sizeof(ask)) ||
      memcmp(ask.secret, process.ipc.secret, sizeof(ask.secret)) != 0)
    return false;
  // Before the descriptor leaves: from then on the memory is shared.
  note_obstacle(abi::ParkReason::kShared, 1);
  int descriptor = -1;
  int32_t result = export_chunk(ask.id, &descriptor);
  abi::DescriptorMessage message(&result, sizeof(result), result == CUDA_SUCCESS ? descriptor : -1);
  const ssize_t sent = sendmsg(connection, message.header(), MSG_NOSIGNAL | MSG_DONTWAIT);
  close_fd(descriptor);
  if (result == CUDA_SUCCESS && sent == static_cast<ssize_t>(sizeof(result))) return true;
  note_obstacle(abi::ParkReason::kShared, -1);
  return false;
}

struct Connection {
  int fd;
  bool open;  // the other side has opened our memory
};

void* serve(void*) {
  const int listener = process.ipc.listener;
  auto* items = static_cast<pollfd*>(map_pages((kMaxOpen + 1) * sizeof(pollfd)));
  auto* all = static_cast<Connection*>(map_pages(kMaxOpen * sizeof(Connection)));
  if (items == nullptr || all == nullptr) return nullptr;
  size_t count = 0;
  for (;;) {
    items[0] = {count < kMaxOpen ? listener : -1, POLLIN, 0};
    for (size_t i = 0; i < count; ++i) items[i + 1] = {all[i].fd, POLLIN, 0};
    if (poll(items, count + 1, -1) < 0 && errno != EINTR) return nullptr;
    for (size_t i = count; i > 0; --i) {
      if (items[i].revents == 0) continue;
      Connection& one = all[i - 1];
      if (!one.open && (items[i].revents & POLLIN) != 0 && answer_ask(one.fd)) {
        one.open = true;
        continue;
      }
      // The other side has closed the memory, or did not know the secret.
      if (one.open) note_obstacle(abi::ParkReason::kShared, -1);
      close_fd(one.fd);
      one = all[--count];
    }
    if ((items[0].revents & POLLNVAL) != 0) return nullptr;  // the program has closed the socket
    if ((items[0].revents & POLLIN) == 0) continue;
    const int fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) continue;
    if (same_user(fd))
      all[count++] = {fd, false};
    else
      close_fd(fd);
  }
}

// Once per process. False: handles are not available.
bool start_serving() {
  Locked locked(process.ipc.lock);
  if (process.ipc.listener != 0) return true;
  if (abi::random_bytes(process.ipc.secret, sizeof(process.ipc.secret)) !=
          static_cast<ssize_t>(sizeof(process.ipc.secret)) ||
      abi::random_bytes(&process.ipc.nonce, sizeof(process.ipc.nonce)) !=
          static_cast<ssize_t>(sizeof(process.ipc.nonce)))
    return false;
  const int low = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  const int fd = low < 0 ? -1 : fcntl(low, F_DUPFD_CLOEXEC, kHighFd);
  close_fd(low);
  sockaddr_un address{};
  const socklen_t size = address_of(static_cast<uint32_t>(getpid()), process.ipc.nonce, &address);
  if (fd < 0 || bind(fd, reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
      listen(fd, 64) != 0) {
    close_fd(fd);
    return false;
  }
  process.ipc.listener = fd;
  if (start_thread(&serve)) return true;
  process.ipc.listener = 0;
  close_fd(fd);
  return false;
}

// ---- taking -------------------------------------------------------------------------------------

// Connects to the owner and receives its descriptor. Returns the connection, or -1 if the owner
// does not answer.
int ask_owner(const Name& name, int* descriptor, CUresult* result) {
  *result = CUDA_ERROR_INVALID_VALUE;  // the driver's error for a handle whose owner is gone
  const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  const timeval patience{kPatienceS, 0};
  (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
  sockaddr_un address{};
  const socklen_t size = address_of(name.pid, name.nonce, &address);
  Ask ask{};
  memcpy(ask.secret, name.secret, sizeof(ask.secret));
  ask.id = name.id;
  int32_t said = CUDA_ERROR_INVALID_VALUE;
  abi::DescriptorMessage message(&said, sizeof(said));
  *descriptor = -1;
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address), size) == 0 && same_user(fd) &&
      send(fd, &ask, sizeof(ask), MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof(ask)) &&
      recvmsg(fd, message.header(), MSG_CMSG_CLOEXEC) == static_cast<ssize_t>(sizeof(said))) {
    *result = static_cast<CUresult>(said);
    *descriptor = message.descriptor();
  }
  if (*descriptor >= 0) return fd;
  close_fd(fd);
  return -1;
}

// Under the lock.
Opened* find_opened(const Name& name) {
  for (Opened& opened : process.opened)
    if (opened.id == name.id && memcmp(opened.secret, name.secret, sizeof(name.secret)) == 0)
      return &opened;
  return nullptr;
}

CUresult map_opened(Opened& opened, CUdevice current, CUdevice* device) {
  CUmemAllocationProp prop{};
  CUresult result = real.cuMemGetAllocationPropertiesFromHandle(&prop, opened.handle);
  if (result == CUDA_SUCCESS)
    result = real.cuMemAddressReserve(&opened.base, opened.bytes, abi::kGranuleBytes, 0, 0);
  if (result != CUDA_SUCCESS) return result;
  *device = prop.location.id;
  const CUmemAccessDesc access[] = {abi::access_on(prop.location.id), abi::access_on(current)};
  result = real.cuMemMap(opened.base, opened.bytes, 0, opened.handle, 0);
  if (result == CUDA_SUCCESS) {
    result =
        real.cuMemSetAccess(opened.base, opened.bytes, access, current == prop.location.id ? 1 : 2);
    if (result == CUDA_SUCCESS) return result;
    (void)real.cuMemUnmap(opened.base, opened.bytes);
  }
  (void)real.cuMemAddressFree(opened.base, opened.bytes);
  return result;
}

void unmap_opened(const Opened& opened) {
  (void)real.cuMemUnmap(opened.base, opened.bytes);
  (void)real.cuMemAddressFree(opened.base, opened.bytes);
  (void)real.cuMemRelease(opened.handle);
  close_fd(opened.connection);
}

// The first opening in this process: asks the owner, maps the memory, charges it if it does not
// belong to this job.
CUresult open_first(const Name& name, const Place& place, Opened* opened) {
  CUresult result = CUDA_SUCCESS;
  int descriptor = -1;
  *opened = {};
  memcpy(opened->secret, name.secret, sizeof(name.secret));
  opened->id = name.id;
  opened->bytes = name.whole;
  opened->connection = ask_owner(name, &descriptor, &result);
  if (opened->connection < 0) return result;
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the driver's interface says so
  void* const shareable = reinterpret_cast<void*>(static_cast<intptr_t>(descriptor));
  result = real.cuMemImportFromShareableHandle(&opened->handle, shareable,
                                               CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  close_fd(descriptor);
  if (result != CUDA_SUCCESS) {
    close_fd(opened->connection);
    return result;
  }
  CUdevice device = place.device;
  result = map_opened(*opened, place.device, &device);
  if (result != CUDA_SUCCESS) {
    (void)real.cuMemRelease(opened->handle);
    close_fd(opened->connection);
    return result;
  }
  // The card that the memory lies on, whichever context is current.
  const int card = card_of(device) == kNoCard ? place.card : card_of(device);
  if (!note_import(opened->base, card, abi::units_for(opened->bytes),
                   key_of(opened->secret, opened->id))) {
    unmap_opened(*opened);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  return CUDA_SUCCESS;
}

bool is_name(const CUipcMemHandle& handle, Name* name) {
  memcpy(name, &handle, sizeof(*name));
  return memcmp(name->magic, kMagic, sizeof(kMagic)) == 0;
}

bool is_sound(const Name& name) {
  return name.whole > 0 && name.whole < (1ull << 46) && name.whole % abi::kGranuleBytes == 0 &&
         name.offset < name.whole && name.bytes <= name.whole - name.offset;
}

}  // namespace

bool export_block(CUipcMemHandle* handle, CUdeviceptr pointer, CUresult* result) {
  if (handle == nullptr || !process.parkable.load(std::memory_order_relaxed)) return false;
  ChunkBlock block{};
  if (!find_chunk_block(pointer, &block)) return false;
  Name name{};
  uint64_t chunk_base = 0;
  int card = 0;
  {
    Locked locked(process.lock);
    for (const Chunk& chunk : process.chunks) {
      if (block.base < chunk.base || block.base >= chunk.end()) continue;
      name.id = chunk.id;
      name.offset = block.base - chunk.base;
      name.whole = chunk.bytes;
      chunk_base = chunk.base;
      card = chunk.card;
    }
  }
  *result = CUDA_ERROR_OPERATING_SYSTEM;
  if (name.id == 0 || !start_serving()) return true;
  memcpy(name.magic, kMagic, sizeof(kMagic));
  memcpy(name.secret, process.ipc.secret, sizeof(name.secret));
  name.pid = static_cast<uint32_t>(getpid());
  name.nonce = process.ipc.nonce;
  name.bytes = block.bytes;
  note_export(chunk_base, card, abi::units_for(name.whole), key_of(name.secret, name.id));
  memcpy(handle, &name, sizeof(name));
  *result = CUDA_SUCCESS;
  return true;
}

bool open_block(CUdeviceptr* out, const CUipcMemHandle& handle, CUresult* result) {
  Name name{};
  if (!is_name(handle, &name)) return false;
  Place place;
  *result = CUDA_ERROR_INVALID_VALUE;
  if (out == nullptr || !is_sound(name)) return true;
  *result = CUDA_ERROR_INVALID_CONTEXT;  // no context; or its own memory, as with the driver
  if (!attach() || !find_place(&place) || real.cuMemAddressReserve == nullptr) return true;
  if (process.ipc.listener != 0 &&
      memcmp(name.secret, process.ipc.secret, sizeof(name.secret)) == 0)
    return true;
  *result = CUDA_SUCCESS;
  const auto once_more = [&] {
    Opened* opened = find_opened(name);
    if (opened == nullptr) return false;
    ++opened->count;
    *out = opened->base + name.offset;
    return true;
  };
  {
    Locked locked(process.lock);
    if (once_more()) return true;
  }
  Opened opened{};
  *result = open_first(name, place, &opened);
  if (*result != CUDA_SUCCESS) return true;
  opened.count = 1;
  bool kept = false;
  {
    Locked locked(process.lock);
    kept = !once_more() && process.opened.add(opened);
    if (kept) *out = opened.base + name.offset;
  }
  if (kept) {
    note_obstacle(abi::ParkReason::kShared, 1);
    return true;
  }
  // Another thread has opened it meanwhile.
  drop_import(opened.base);
  unmap_opened(opened);
  return true;
}

bool close_block(CUdeviceptr pointer, CUresult* result) {
  Opened gone{};
  {
    Locked locked(process.lock);
    size_t at = 0;
    while (at < process.opened.size() &&
           (pointer < process.opened[at].base ||
            pointer >= process.opened[at].base + process.opened[at].bytes))
      ++at;
    if (at == process.opened.size()) return false;
    *result = CUDA_SUCCESS;
    if (--process.opened[at].count > 0) return true;
    gone = process.opened[at];
    process.opened.remove(at);
  }
  {
    const Relaxed relaxed;
    *result = real.cuCtxSynchronize();  // as the driver does
  }
  drop_import(gone.base);
  unmap_opened(gone);
  note_obstacle(abi::ParkReason::kShared, -1);
  return true;
}

}  // namespace mete::meter
