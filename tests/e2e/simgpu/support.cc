// SPDX-License-Identifier: Apache-2.0
// See support.h. A scenario's child reports a failed CHECK on stderr and exits; the test waits for
// it and fails on its status. Each test has a fresh directory in METE_SIM_DIR, and with it a fresh
// server, which ends 300 ms after its last client.
#include "tests/e2e/simgpu/support.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

namespace simgpu_test {

void fail_child(const char* file, int line, const std::string& what) {
  fprintf(stderr, "%s:%d: in child %d: %s\n", file, line, getpid(), what.c_str());
  fflush(nullptr);
  _exit(1);
}

Pipe::Pipe() {
  if (pipe2(ends_, O_CLOEXEC) != 0) abort();
}

Pipe::~Pipe() {
  close(ends_[0]);
  close(ends_[1]);
}

void Pipe::send(const void* data, size_t bytes) {
  CHECK(write(ends_[1], data, bytes) == static_cast<ssize_t>(bytes));
}

void Pipe::receive(void* data, size_t bytes) {
  char* at = static_cast<char*>(data);
  while (bytes > 0) {
    // We hold the other end ourselves: without a bound, the death of the sender would never be
    // seen.
    constexpr int kLimitMs = 120'000;
    pollfd ready{ends_[0], POLLIN, 0};
    CHECK(poll(&ready, 1, kLimitMs) == 1);
    const ssize_t got = read(ends_[0], at, bytes);
    CHECK(got > 0);
    at += got;
    bytes -= static_cast<size_t>(got);
  }
}

FdPipe::FdPipe() {
  if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, ends_) != 0) abort();
}

FdPipe::~FdPipe() {
  close(ends_[0]);
  close(ends_[1]);
}

void FdPipe::send(int fd) {
  char byte = 'f';
  iovec piece{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  memcpy(CMSG_DATA(header), &fd, sizeof fd);
  CHECK(sendmsg(ends_[1], &message, 0) == 1);
}

int FdPipe::receive() {
  char byte = 0;
  iovec piece{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  CHECK(recvmsg(ends_[0], &message, 0) == 1);
  int fd = -1;
  memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
  return fd;
}

void SimTest::SetUp() {
  char name[] = "/tmp/mete-simgpu-test-XXXXXX";
  ASSERT_NE(nullptr, mkdtemp(name));
  folder_ = name;
  setenv("METE_SIM_DIR", (folder_ + "/sim").c_str(), 1);
  setenv("METE_SIM_IDLE_MS", "300", 1);
  for (const char* name_of :
       {"METE_SIM", "METE_SIM_FAULT", "METE_SIM_DELAY_US", "METE_SIM_HOST_MAX",
        "METE_SIM_TEARDOWN_MS", "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"}) {
    unsetenv(name_of);
  }
}

void SimTest::TearDown() { (void)run_program("rm -rf '" + folder_ + "'"); }

pid_t SimTest::start(const std::function<void()>& body) {
  fflush(nullptr);
  const pid_t pid = fork();
  if (pid == 0) {
    setenv("METE_SIM", machine_.c_str(), 0);
    alarm(100);  // a hang is a failure
    body();
    fflush(nullptr);
    _exit(0);
  }
  return pid;
}

int SimTest::finish(pid_t pid) {
  int status = 0;
  if (waitpid(pid, &status, 0) != pid) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void SimTest::in_child(const std::function<void()>& body) { ASSERT_EQ(0, finish(start(body))); }

std::string SimTest::control(const std::string& command) {
  const char* build = getenv("METE_BUILD_DIR");
  const std::string line = "METE_SIM=" + machine_ + " " + (build != nullptr ? build : ".") +
                           "/simgpu/mete-simgpu --ctl " + command;
  FILE* out = popen(line.c_str(), "r");
  if (out == nullptr) return "";
  std::string text;
  char buffer[4096];
  while (const size_t got = fread(buffer, 1, sizeof buffer, out)) text.append(buffer, got);
  if (pclose(out) != 0) ADD_FAILURE() << line;
  return text;
}

uint64_t SimTest::card_number(int card, const std::string& key) {
  const std::string text = control("dump");
  const size_t entry = text.find("{\"index\":" + std::to_string(card) + ",");
  const size_t at = text.find("\"" + key + "\":", entry);
  if (entry == std::string::npos || at == std::string::npos) {
    ADD_FAILURE() << "no " << key << " in " << text;
    return 0;
  }
  return strtoull(text.c_str() + at + key.size() + 3, nullptr, 10);
}

bool SimTest::eventually(const std::function<bool()>& condition) {
  for (int i = 0; i < 2000; ++i) {
    if (condition()) return true;
    usleep(10000);
  }
  return false;
}

CUcontext begin(int device) {
  CUcontext context = nullptr;
  OK(cuInit(0));
  OK(cuDevicePrimaryCtxRetain(&context, device));
  OK(cuCtxSetCurrent(context));
  return context;
}

size_t used_here() {
  size_t free_bytes = 0, total = 0;
  OK(cuMemGetInfo_v2(&free_bytes, &total));
  return total - free_bytes;
}

int run_program(const std::string& command) {
  const int status = system(command.c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

}  // namespace simgpu_test
