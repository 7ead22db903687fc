// SPDX-License-Identifier: Apache-2.0
// The loop: sockets, deaths, timers. One epoll set has the listener, every client and every
// exported descriptor; an event carries its kind and id. A turn handles deaths first, then
// requests, which answer.cc interprets, then timers such as delayed teardown and the end of an idle
// server.
#include "simgpu/server/server.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "abi/descriptor_message.h"
#include "simgpu/server/clock.h"
#include "simgpu/start_server.h"

namespace simgpu {
namespace {

// The content of an epoll event: the kind in the top bits, an id below.
constexpr uint64_t kListener = 0;
constexpr uint64_t kClientTag = 1ull << 62;
constexpr uint64_t kExportTag = 3ull << 62;
constexpr uint64_t kTagMask = 3ull << 62;

uint64_t number_from(const char* name, uint64_t otherwise) {
  const char* text = getenv(name);
  if (text == nullptr || *text < '0' || *text > '9') return otherwise;
  return strtoull(text, nullptr, 10);
}

}  // namespace

uint64_t now_ms() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000 + static_cast<uint64_t>(now.tv_nsec) / 1000000;
}

Server::Server(int listener, std::string folder) : listener_(listener), folder_(std::move(folder)) {
  epoll_ = epoll_create1(EPOLL_CLOEXEC);
  watch(listener_, kListener, EPOLLIN);
  teardown_ms_ = number_from("METE_SIM_TEARDOWN_MS", 0);
  idle_limit_ms_ = number_from("METE_SIM_IDLE_MS", 3000);
  shared_ = number_from("METE_SIM_SHARED", 0) == 1;
  if (shared_) (void)chmod((folder_ + "/gpu.sock").c_str(), 0666);
  const char* most = getenv("METE_SIM_HOST_MAX");
  uint64_t bytes = 0;
  if (most != nullptr && parse_size(most, &bytes)) store_.host.most = bytes;
  idle_since_ms_ = now_ms();
}

void Server::watch(int fd, uint64_t tag, uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = tag;
  epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event);
}

int Server::run() {
  std::vector<epoll_event> events(4096);
  while (!stop_) {
    const int count = epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), wait_ms());
    if (count < 0 && errno != EINTR) return 1;
    // Deaths first: requests of this turn may come from a process that has seen the dead one
    // reaped. The last request of a dead client, whose reply it did not wait for, is dropped with
    // it.
    for (int i = 0; i < count; ++i) {
      const uint64_t tag = events[static_cast<size_t>(i)].data.u64;
      const uint32_t what = events[static_cast<size_t>(i)].events;
      const uint64_t id = tag & ~kTagMask;
      if ((tag & kTagMask) == kClientTag && (what & (EPOLLHUP | EPOLLERR | EPOLLRDHUP)) != 0) {
        end_client(id);
      }
      if ((tag & kTagMask) == kExportTag && (what & (EPOLLHUP | EPOLLERR | EPOLLRDHUP)) != 0) {
        end_export(id);
      }
    }
    finish_teardowns();
    for (int i = 0; i < count; ++i) {
      const uint64_t tag = events[static_cast<size_t>(i)].data.u64;
      if (tag == kListener) accept_all();
      if ((tag & kTagMask) != kClientTag) continue;
      const auto found = clients_.find(tag & ~kTagMask);
      if (found == clients_.end()) continue;
      Client* client = &found->second;
      const uint32_t what = events[static_cast<size_t>(i)].events;
      bool alive = true;
      if ((what & EPOLLIN) != 0) alive = read_client(client) && handle_requests(client);
      if (alive) alive = flush(client);
      if (!alive) end_client(found->first);
    }
    if (clients_.empty() && may_end()) return 0;
  }
  return 0;
}

int Server::wait_ms() const {
  uint64_t until = UINT64_MAX;
  const uint64_t now = now_ms();
  for (const Teardown& teardown : teardowns_) until = std::min(until, teardown.due_ms);
  if (clients_.empty())
    until = std::min(until, std::max(idle_since_ms_ + idle_limit_ms_, now + 50));
  if (until == UINT64_MAX) return -1;
  return until <= now ? 0 : static_cast<int>(std::min<uint64_t>(until - now, 60000));
}

// Ends only under the start lock and with no client waiting, so that no start is lost: a client
// that connects between the last check and the end sees the connection closed and starts a new
// server.
bool Server::may_end() {
  uint64_t limit = idle_limit_ms_;
  for (const Card& card : store_.machine.cards) {
    if (card.info.state != 0) limit = std::max<uint64_t>(limit, 600000);  // keeps a lost card lost
  }
  if (!teardowns_.empty() || now_ms() < idle_since_ms_ + limit) return false;
  const int lock = take_start_lock(folder_.c_str(), false);
  if (lock < 0) {
    struct stat gone {};
    return stat(folder_.c_str(), &gone) != 0;  // the folder was removed
  }
  accept_all();
  if (!clients_.empty()) {
    close(lock);
    return false;
  }
  unlink((folder_ + "/gpu.sock").c_str());
  close(listener_);
  close(lock);
  return true;
}

void Server::accept_all() {
  for (;;) {
    const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) return;
    ucred peer{};
    socklen_t size = sizeof peer;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 ||
        (!shared_ && peer.uid != geteuid() && peer.uid != 0)) {
      close(fd);
      continue;
    }
    const ClientId id = next_client_++;
    Client& client = clients_[id];
    client.id = id;
    client.fd = fd;
    client.pid = peer.pid;
    watch(fd, kClientTag | id, EPOLLIN | EPOLLRDHUP);
  }
}

bool Server::read_client(Client* client) {
  for (;;) {
    char buffer[256 << 10];
    iovec piece{buffer, sizeof buffer};
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * 4)] = {};
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const ssize_t got = recvmsg(client->fd, &message, MSG_CMSG_CLOEXEC);
    if (got < 0) return errno == EAGAIN || errno == EINTR;
    for (cmsghdr* h = CMSG_FIRSTHDR(&message); h != nullptr; h = CMSG_NXTHDR(&message, h)) {
      if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS) continue;
      const size_t count = (h->cmsg_len - CMSG_LEN(0)) / sizeof(int);
      for (size_t i = 0; i < count; ++i) {
        int passed = -1;
        memcpy(&passed, CMSG_DATA(h) + i * sizeof(int), sizeof(int));
        client->in_fds.push_back(passed);
      }
    }
    if (got == 0) return false;
    client->in.append(buffer, static_cast<size_t>(got));
    if (client->in.size() > 4 * kMaxPayload) return true;  // the rest waits in the socket
    if (static_cast<size_t>(got) < sizeof buffer) return true;
  }
}

bool Server::handle_requests(Client* client) {
  size_t at = 0;
  while (client->in.size() - at >= sizeof(Request)) {
    Request request;
    memcpy(&request, client->in.data() + at, sizeof request);
    if (request.payload > kMaxPayload) return false;
    if (client->in.size() - at < sizeof request + request.payload) break;
    if (!client->greeted && request.op != static_cast<uint32_t>(Op::kHello)) return false;
    answer(client, request, client->in.data() + at + sizeof request);
    at += sizeof request + request.payload;
  }
  client->in.erase(0, at);
  return true;
}

bool Server::flush(Client* client) {
  while (!client->out.empty()) {
    mete::abi::DescriptorMessage message(client->out.data(), client->out.size(), client->out_fd);
    const ssize_t sent = sendmsg(client->fd, message.header(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) {
      if (errno == EINTR) continue;
      if (errno != EAGAIN) return false;
      break;
    }
    if (client->out_fd >= 0) close(client->out_fd);
    client->out_fd = -1;
    client->out.erase(0, static_cast<size_t>(sent));
  }
  const bool want = !client->out.empty();
  if (want != client->want_write) {
    client->want_write = want;
    epoll_event event{};
    event.events = EPOLLRDHUP | EPOLLIN | (want ? static_cast<uint32_t>(EPOLLOUT) : 0u);
    event.data.u64 = kClientTag | client->id;
    epoll_ctl(epoll_, EPOLL_CTL_MOD, client->fd, &event);
  }
  return true;
}

void Server::end_client(ClientId id) {
  const auto found = clients_.find(id);
  if (found == clients_.end()) return;
  Client& client = found->second;
  close(client.fd);
  if (client.out_fd >= 0) close(client.out_fd);
  for (const int fd : client.in_fds) close(fd);
  drop_page(&client);
  Store::Held held = store_.forget_client(id);
  if (teardown_ms_ == 0) {
    store_.release(held);
  } else if (!held.empty()) {
    teardowns_.push_back({now_ms() + teardown_ms_, std::move(held)});
  }
  clients_.erase(found);
  if (clients_.empty()) idle_since_ms_ = now_ms();
}

void Server::end_export(uint64_t inode) {
  const auto found = exports_.find(inode);
  if (found == exports_.end()) return;
  close(found->second.fd);
  store_.drop_piece(found->second.piece, 1);
  exports_.erase(found);
}

void Server::finish_teardowns() {
  const uint64_t now = now_ms();
  for (size_t i = 0; i < teardowns_.size();) {
    if (teardowns_[i].due_ms > now) {
      ++i;
      continue;
    }
    store_.release(teardowns_[i].held);
    teardowns_.erase(teardowns_.begin() + static_cast<ptrdiff_t>(i));
    if (clients_.empty()) idle_since_ms_ = now;
  }
}

// A socket pair: the client gets one end, we keep the other. Its inode identifies the descriptor,
// and our end hangs up when the last copy, in any process or in flight, is closed.
int Server::fd_export(Client* client, PieceId id) {
  if (!store_.holds(client->id, id)) return 400;
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) != 0) return 304;
  struct stat facts {};
  if (client->out_fd >= 0 || fstat(pair[1], &facts) != 0) {
    close(pair[0]);
    close(pair[1]);
    return 999;
  }
  const uint64_t inode = facts.st_ino;
  exports_[inode] = {id, pair[0]};
  store_.hold_piece(id, 1);
  watch(pair[0], kExportTag | inode, EPOLLRDHUP);
  client->out_fd = pair[1];
  return 0;
}

int Server::fd_import(Client* client, Reply* reply) {
  if (client->in_fds.empty()) return 1;
  const int fd = client->in_fds.front();
  client->in_fds.pop_front();
  struct stat facts {};
  const bool known = fstat(fd, &facts) == 0 && S_ISSOCK(facts.st_mode);
  close(fd);
  const auto found = known ? exports_.find(facts.st_ino) : exports_.end();
  if (found == exports_.end()) return 1;
  const Piece* piece = store_.find(found->second.piece);
  if (piece == nullptr) return 1;
  reply->v[0] = found->second.piece;
  reply->v[1] = piece->card;
  reply->v[2] = piece->bytes;
  reply->v[3] = static_cast<uint64_t>(piece->use);
  return store_.hold(client->id, found->second.piece);
}

}  // namespace simgpu
