// SPDX-License-Identifier: Apache-2.0
// See courier.h.
#include "daemon/courier.h"

#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <utility>

#include "base/fd.h"
#include "launch/keeper_spawn.h"

namespace mete::daemon {

namespace {

// A delivery that has begun and not ended.
struct UnderWay {
  pid_t pid = -1;
  Fd handle;
  Fd words;
  engine::Notifier::Done done;
};

std::string first_line(int fd) {
  std::array<char, 256> buffer;
  const ssize_t got = read(fd, buffer.data(), buffer.size());
  const std::string text(buffer.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
  return text.substr(0, text.find('\n'));
}

Result<void> result_of(UnderWay& one) {
  int status = 0;
  if (waitpid(one.pid, &status, 0) == one.pid && WIFEXITED(status) && WEXITSTATUS(status) == 0)
    return {};
  const std::string why = first_line(one.words.get());
  return Error::io(why.empty() ? "mete-notify failed" : why);
}

}  // namespace

Courier::Courier(std::string program, std::string sendmail, seam::Loop loop)
    : program_(std::move(program)), sendmail_(std::move(sendmail)), loop_(std::move(loop)) {}

Courier::~Courier() { *alive_ = false; }

void Courier::deliver(const engine::Delivery& delivery, engine::Notifier::Done done) {
  const wire::NotifyPlan plan =
      wire::plan_for(delivery.what, delivery.target, delivery.uid, sendmail_);
  Result<launch::SpawnedKeeper> spawned =
      program_.empty() ? Result<launch::SpawnedKeeper>(Error::not_found("there is no mete-notify"))
                       : launch::spawn_keeper({program_, delivery.what.id, {"PATH=/usr/bin:/bin"}},
                                              wire::encode(plan));
  auto one = std::make_shared<UnderWay>();
  one->done = std::move(done);
  if (spawned) {
    one->pid = spawned->pid;
    one->words = std::move(spawned->words);
    // The raw system call: glibc 2.36 declares pidfd_open() as a C++ function.
    one->handle.reset(static_cast<int>(syscall(SYS_pidfd_open, one->pid, 0)));
  }
  if (!one->handle) {
    const Error why = spawned ? Error::from_errno("watch mete-notify", errno) : spawned.error();
    loop_.after(seam::Milliseconds(1), [one, why, alive = alive_] {
      if (*alive) one->done(why);
    });
    return;
  }
  loop_.watch_fd(one->handle.get(), [this, one, alive = alive_] {
    if (!*alive) return;
    loop_.unwatch_fd(one->handle.get());
    one->done(result_of(*one));
  });
}

}  // namespace mete::daemon
