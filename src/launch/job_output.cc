// SPDX-License-Identifier: Apache-2.0
// See job_output.h.
#include "launch/job_output.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace mete::launch {

namespace {

// The programs' end blocks, as they expect; ours does not.
Result<base::Pipe> make_output_pipe() {
  Result<base::Pipe> pipe = base::make_pipe();
  if (pipe && fcntl(pipe->read.get(), F_SETFL, O_NONBLOCK) != 0)
    return Error::from_errno("prepare a pipe", errno);
  return pipe;
}

}  // namespace

Result<JobOutput> JobOutput::open(const Places& places) {
  Result<JobLog> log = JobLog::open(places.log);
  if (!log) return std::move(log).error();
  std::optional<JobLog> error_log;
  if (places.error_log) {
    Result<JobLog> other = JobLog::open(*places.error_log);
    if (!other) return std::move(other).error();
    if (other->path() != log->path()) error_log.emplace(*std::move(other));
  }
  JobOutput output(*std::move(log), std::move(error_log));
  if (!places.terminal.empty()) {
    Result<TerminalDoor> door = TerminalDoor::open(places.terminal);
    if (!door) return std::move(door).error();
    output.terminal_.emplace(*std::move(door));
    return output;
  }
  Result<Fd> null = base::open_fd("/dev/null", O_RDONLY);
  if (!null) return std::move(null).error();
  output.null_ = *std::move(null);
  Result<base::Pipe> pipe = make_output_pipe();
  if (!pipe) return std::move(pipe).error();
  output.pipe_ = *std::move(pipe);
  if (!output.error_log_) return output;
  Result<base::Pipe> errors = make_output_pipe();
  if (!errors) return std::move(errors).error();
  output.error_pipe_ = *std::move(errors);
  return output;
}

void JobOutput::started() {
  null_.reset();
  pipe_.write.reset();
  error_pipe_.write.reset();
}

void JobOutput::listen(std::vector<pollfd>& list) {
  list.push_back({pipe_.read.get(), POLLIN, 0});
  list.push_back({error_pipe_.read.get(), POLLIN, 0});
  if (terminal_) terminal_->listen(list);
}

void JobOutput::heard(std::span<const pollfd> list) {
  if (list[0].revents != 0 && !pump(Stream::kOutput)) pipe_.read.reset();
  if (list[1].revents != 0 && !pump(Stream::kError)) error_pipe_.read.reset();
  if (terminal_) pass(Stream::kOutput, terminal_->heard(list.subspan(2)));
}

bool JobOutput::pump(Stream stream) {
  const ssize_t got = read(pipe_of(stream).read.get(), buffer_.get(), kBuffer);
  if (got < 0) return errno == EAGAIN || errno == EINTR;
  if (got == 0) return false;
  pass(stream, {buffer_.get(), static_cast<std::size_t>(got)});
  return true;
}

void JobOutput::pass(Stream stream, std::string_view bytes) {
  (stream == Stream::kOutput ? log_ : errors()).write(bytes);
  if (seen_ && !bytes.empty()) seen_(stream, bytes);
}

// A process outside the job may hold the other end of a pipe and write for ever: read one pipe's
// content only.
void JobOutput::finish() {
  started();
  for (const Stream stream : {Stream::kOutput, Stream::kError}) {
    base::Pipe& pipe = pipe_of(stream);
    if (!pipe.read) continue;
    const int most = fcntl(pipe.read.get(), F_GETPIPE_SZ);
    for (int taken = 0; taken <= most; taken += static_cast<int>(kBuffer)) {
      pollfd ready{pipe.read.get(), POLLIN, 0};
      if (poll(&ready, 1, 0) != 1 || !pump(stream)) break;
    }
    pipe.read.reset();
  }
  if (terminal_) pass(Stream::kOutput, terminal_->drain());
}

void JobOutput::say(std::string_view text) { errors().say(text); }

Bytes JobOutput::size() const {
  return error_log_ ? log_.size() + error_log_->size() : log_.size();
}

std::uint64_t JobOutput::lost() const {
  return log_.lost() + (error_log_ ? error_log_->lost() : 0);
}

}  // namespace mete::launch
