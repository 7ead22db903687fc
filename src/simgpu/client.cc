// SPDX-License-Identifier: Apache-2.0
// The connection: one socket, one mutex, one request at a time. The socket is close-on-exec and has
// a high number, so that programs which rely on low descriptors are not disturbed. Lock:
// `connection.mutex`, held over a whole request and its reply; nothing else is locked inside.
#include "simgpu/client.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "abi/descriptor_message.h"
#include "simgpu/start_server.h"

namespace simgpu {
namespace {

// How long a silent server is waited for. Deliberate blocking happens in the client, so a live
// server answers within milliseconds; a stopped one must not hang the program for ever.
constexpr int kSilenceMs = 30000;

struct Connection {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  int fd = -1;
  pid_t pid = 0;  // the process that made it; another one (fork without handlers) makes its own
  ClientKind kind = ClientKind::kCuda;
  bool refused_said = false;
  bool fork_handler = false;
};
constinit Connection connection;

struct Locked {
  Locked() { pthread_mutex_lock(&connection.mutex); }
  ~Locked() { pthread_mutex_unlock(&connection.mutex); }
};

void close_connection() {
  if (connection.fd >= 0) close(connection.fd);
  connection.fd = -1;
}

// In the child: the parent's socket belongs to the parent, but our copy stays open, as a real
// driver's descriptors do: the parent's memory stays on the card until this child ends or runs
// exec. The mutex may have been held by a thread that does not exist here, so it is initialised
// again.
void after_fork_child() {
  connection.mutex = PTHREAD_MUTEX_INITIALIZER;
  connection.fd = -1;
}

bool wait_for(int fd, short what) {
  for (;;) {
    pollfd item{fd, what, 0};
    const int ready = poll(&item, 1, kSilenceMs);
    if (ready > 0) return true;
    if (ready < 0 && errno == EINTR) continue;
    return false;
  }
}

bool send_all(int fd, const void* data, size_t bytes, int pass_fd) {
  const char* at = static_cast<const char*>(data);
  while (bytes > 0) {
    mete::abi::DescriptorMessage message(at, bytes, pass_fd);
    const ssize_t sent = sendmsg(fd, message.header(), MSG_NOSIGNAL);
    if (sent < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN && wait_for(fd, POLLOUT)) continue;
      return false;
    }
    pass_fd = -1;
    at += sent;
    bytes -= static_cast<size_t>(sent);
  }
  return true;
}

bool receive_all(int fd, void* data, size_t bytes, int* got_fd) {
  char* at = static_cast<char*>(data);
  while (bytes > 0) {
    if (!wait_for(fd, POLLIN)) return false;
    mete::abi::DescriptorMessage message(at, bytes);
    const ssize_t got = recvmsg(fd, message.header(), MSG_CMSG_CLOEXEC);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got <= 0) return false;
    if (const int passed = message.descriptor(); passed >= 0) {
      if (got_fd != nullptr && *got_fd < 0) {
        *got_fd = passed;
      } else {
        close(passed);
      }
    }
    at += got;
    bytes -= static_cast<size_t>(got);
  }
  return true;
}

bool discard(int fd, size_t bytes) {
  char waste[4096];
  while (bytes > 0) {
    const size_t piece = bytes < sizeof waste ? bytes : sizeof waste;
    if (!receive_all(fd, waste, piece, nullptr)) return false;
    bytes -= piece;
  }
  return true;
}

// One exchange on an open socket. False when the server is gone in the middle of it.
bool exchange(int fd, Call* call) {
  call->request.payload = call->send_bytes;
  if (call->receive_fd != nullptr) *call->receive_fd = -1;
  // Small requests go out in one packet.
  if (call->send_bytes <= 4096) {
    char packet[sizeof(Request) + 4096];
    memcpy(packet, &call->request, sizeof(Request));
    if (call->send_bytes > 0) memcpy(packet + sizeof(Request), call->send, call->send_bytes);
    if (!send_all(fd, packet, sizeof(Request) + call->send_bytes, call->send_fd)) return false;
  } else {
    if (!send_all(fd, &call->request, sizeof(Request), call->send_fd)) return false;
    if (!send_all(fd, call->send, call->send_bytes, -1)) return false;
  }
  if (!receive_all(fd, &call->reply, sizeof(Reply), call->receive_fd)) return false;
  const uint32_t keep =
      call->reply.payload < call->receive_max ? call->reply.payload : call->receive_max;
  if (keep > 0 && !receive_all(fd, call->receive, keep, nullptr)) return false;
  return discard(fd, call->reply.payload - keep);
}

// METE_SIM as the server should read it: a path is made absolute, since the server runs in /.
void machine_text(char* out, size_t size) {
  const char* text = getenv("METE_SIM");
  if (text == nullptr) text = "";
  char resolved[PATH_MAX];
  if (strchr(text, '/') != nullptr || access(text, R_OK) == 0) {
    if (*text != '\0' && realpath(text, resolved) != nullptr) text = resolved;
  }
  snprintf(out, size, "%s", text);
}

int say_hello(int fd, ClientKind kind) {
  char text[PATH_MAX];
  machine_text(text, sizeof text);
  char answer[256];
  Call call;
  call.request.op = static_cast<uint32_t>(Op::kHello);
  call.request.a[0] = (static_cast<uint64_t>(kProtocolMagic) << 32) | kProtocolVersion;
  call.request.a[1] = static_cast<uint64_t>(kind);
  call.send = text;
  call.send_bytes = static_cast<uint32_t>(strlen(text));
  call.receive = answer;
  call.receive_max = sizeof answer - 1;
  if (!exchange(fd, &call)) return kStatusUnknown;
  if (call.reply.status != kStatusOk && !connection.refused_said) {
    connection.refused_said = true;
    const uint32_t length =
        call.reply.payload < sizeof answer - 1 ? call.reply.payload : sizeof answer - 1;
    answer[length] = '\0';
    fprintf(stderr, "mete-simgpu: %s\n", answer);
  }
  return call.reply.status;
}

int connect_locked(ClientKind kind) {
  if (connection.fd >= 0 && connection.pid == getpid()) return kStatusOk;
  if (connection.pid == getpid()) close_connection();
  connection.fd = -1;  // a parent's, after a fork without handlers, stays open
  if (!connection.fork_handler) {
    connection.fork_handler = true;
    pthread_atfork(nullptr, nullptr, after_fork_child);
  }
  char folder[PATH_MAX];
  if (!simulation_directory(folder, sizeof folder)) return kStatusUnknown;
  // A server that is just ending closes the connection before its hello: retry.
  for (int attempt = 0; attempt < 20; ++attempt) {
    const int fd = open_server(folder);
    if (fd < 0) return kStatusUnknown;
    const int status = say_hello(fd, kind);
    if (status == kStatusOk) {
      const int high = fcntl(fd, F_DUPFD_CLOEXEC, 200);
      if (high >= 0) close(fd);
      connection.fd = high >= 0 ? high : fd;
      connection.pid = getpid();
      connection.kind = kind;
      return kStatusOk;
    }
    close(fd);
    if (status != kStatusUnknown) return status;
  }
  return kStatusUnknown;
}

}  // namespace

int connect_server(ClientKind kind) {
  const Locked locked;
  const int saved = errno;
  const int status = connect_locked(kind);
  errno = saved;
  return status;
}

int call_server(Call* call) {
  const Locked locked;
  const int saved = errno;
  // A forked child makes its own connection; a process that lost its server has lost its memory
  // too.
  if (connection.pid != 0 && connection.pid != getpid()) (void)connect_locked(connection.kind);
  if (connection.fd < 0) {
    errno = saved;
    return kStatusGone;
  }
  if (!exchange(connection.fd, call)) {
    close_connection();
    errno = saved;
    return kStatusGone;
  }
  errno = saved;
  return call->reply.status;
}

int call_server(Op op, uint64_t a0, uint64_t a1, uint64_t a2, Reply* reply) {
  Call call;
  call.request.op = static_cast<uint32_t>(op);
  call.request.a[0] = a0;
  call.request.a[1] = a1;
  call.request.a[2] = a2;
  const int status = call_server(&call);
  if (reply != nullptr) *reply = call.reply;
  return status;
}

int take_snapshot(CardInfo* cards, uint32_t max_cards, uint32_t* card_count, ProcessInfo* processes,
                  uint32_t max_processes, uint32_t* process_count) {
  char* buffer = static_cast<char*>(malloc(kMaxPayload));
  if (buffer == nullptr) return 2;
  Call call;
  call.request.op = static_cast<uint32_t>(Op::kSnapshot);
  call.receive = buffer;
  call.receive_max = kMaxPayload;
  int status = call_server(&call);
  SnapshotHeader header{};
  if (status == kStatusOk) {
    memcpy(&header, buffer, sizeof header);
    const size_t expected =
        sizeof header + header.cards * sizeof(CardInfo) + header.processes * sizeof(ProcessInfo);
    if (header.card_size != sizeof(CardInfo) || header.process_size != sizeof(ProcessInfo) ||
        call.reply.payload < expected) {
      status = kStatusUnknown;
    }
  }
  if (status == kStatusOk) {
    const uint32_t c = header.cards < max_cards ? header.cards : max_cards;
    const uint32_t p = header.processes < max_processes ? header.processes : max_processes;
    if (c > 0) memcpy(cards, buffer + sizeof header, c * sizeof(CardInfo));
    if (p > 0) {
      memcpy(processes, buffer + sizeof header + header.cards * sizeof(CardInfo),
             p * sizeof(ProcessInfo));
    }
    if (card_count != nullptr) *card_count = header.cards;
    if (process_count != nullptr) *process_count = header.processes;
  }
  free(buffer);
  return status;
}

void drop_connection() {
  const Locked locked;
  close_connection();
}

}  // namespace simgpu
