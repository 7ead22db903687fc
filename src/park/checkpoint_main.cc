// SPDX-License-Identifier: Apache-2.0
// mete-checkpoint [--cuda LIBRARY] [--timeout-ms N] out PID... | in PID... | can
//
// Takes processes off their cards with the driver's own checkpoint and brings them back
// (park/checkpoint.h). A runner starts it: the driver's calls take seconds and may hang, and a
// runner must not. Prints one line of JSON on stdout (docs/formats/park.md); the exit code has the
// same meaning: 0 done, 75 not now, 69 never, 76 a process can never go on, 64 wrong arguments, 125
// anything else.
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "base/exit_code.h"
#include "base/fd.h"
#include "base/text.h"
#include "park/checkpoint.h"

namespace mete::park {

namespace {

constexpr int kExitLost = 76;
constexpr unsigned kProbeS = 30;  // limit for the question whether the driver can

struct Options {
  std::string cuda = "libcuda.so.1";
  std::uint64_t timeout_ms = 10'000;
  std::string verb;
  std::vector<int> pids;
};

int exit_code_of(CheckpointEnd::Kind kind) {
  switch (kind) {
    case CheckpointEnd::kDone:
      return 0;
    case CheckpointEnd::kBusy:
      return base::kExitNoRoom;
    case CheckpointEnd::kUnsupported:
      return base::kExitInfeasible;
    case CheckpointEnd::kLost:
      return kExitLost;
    case CheckpointEnd::kFailed:
      break;
  }
  return base::kExitFailed;
}

int say(const CheckpointEnd& end) {
  (void)std::printf("{\"end\":\"%s\",\"pid\":%d,\"step\":\"%s\",\"code\":%d,\"error\":\"%s\"}\n",
                    std::string(name_of(end.kind)).c_str(), end.pid, end.step,
                    static_cast<int>(end.code), end.error.c_str());
  (void)std::fflush(stdout);
  return exit_code_of(end.kind);
}

int say_error(const Error& error) {
  CheckpointEnd end;
  end.kind =
      error.code == ErrorCode::kUnsupported ? CheckpointEnd::kUnsupported : CheckpointEnd::kFailed;
  end.step = "open";
  for (const char c : error.message) end.error += c == '"' || c == '\\' || c < ' ' ? '\'' : c;
  return say(end);
}

Result<Options> parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--cuda" || word == "--timeout-ms") {
      if (++i == argc) return Error::invalid(word + " wants a value");
      if (word == "--cuda") {
        options.cuda = argv[i];
        continue;
      }
      const Result<std::uint64_t> ms = base::parse_uint(argv[i]);
      if (!ms || *ms == 0 || *ms > 86'400'000)
        return Error::invalid("--timeout-ms wants milliseconds, not " + base::quote(argv[i]));
      options.timeout_ms = *ms;
    } else if (options.verb.empty()) {
      options.verb = word;
    } else {
      const Result<std::uint64_t> pid = base::parse_uint(word);
      if (!pid || *pid == 0 || *pid > 0x3fffff)
        return Error::invalid("not a process: " + base::quote(word));
      options.pids.push_back(static_cast<int>(*pid));
    }
  }
  const bool wants_pids = options.verb == "out" || options.verb == "in";
  if ((!wants_pids && options.verb != "can") || wants_pids == options.pids.empty())
    return Error::invalid(
        "usage: mete-checkpoint [--cuda LIBRARY] [--timeout-ms N] out PID... | in PID... | can");
  return options;
}

// A driver that has the calls may still answer "not supported" on this kind of machine (aarch64).
// Asked about a child that has called nothing but cuInit: the driver does not promise an answer
// about the calling process, and any other answer shows that it supports the call.
int can(const Options& options) {
  (void)alarm(kProbeS);
  Result<base::Pipe> up = base::make_pipe();
  Result<base::Pipe> end = base::make_pipe();
  if (!up || !end) return say_error(Error::io("no pipe"));
  const pid_t child = fork();  // before the driver is loaded: it does not survive a fork
  if (child < 0) return say_error(Error::io("cannot fork"));
  if (child == 0) {
    end->write.reset();
    const bool good = static_cast<bool>(Checkpoints::open(options.cuda));
    (void)!write(up->write.get(), good ? "1" : "0", 1);
    char ignored = 0;
    (void)!read(end->read.get(), &ignored, 1);
    _exit(0);
  }
  up->write.reset();
  const Result<Checkpoints> driver = Checkpoints::open(options.cuda);
  if (!driver) return say_error(driver.error());
  char there = '0';
  if (read(up->read.get(), &there, 1) != 1 || there != '1')
    return say_error(Error::io("the driver does not start"));
  CUprocessState state = CU_PROCESS_STATE_FAILED;
  const CUresult code = driver->state_of(child, &state);
  CheckpointEnd said{CheckpointEnd::kDone, child, "look", code, driver->error_name(code)};
  if (code == CUDA_ERROR_NOT_SUPPORTED) said.kind = CheckpointEnd::kUnsupported;
  return say(said);
}

}  // namespace

int checkpoint_main(int argc, char** argv) {
  base::fill_standard_descriptors();
  if (argc == 2 && std::string_view(argv[1]) == "--version") {
    (void)std::printf("mete-checkpoint %s\n", METE_VERSION);
    return 0;
  }
  const Result<Options> options = parse(argc, argv);
  if (!options) {
    (void)std::fprintf(stderr, "mete-checkpoint: %s\n", options.error().message.c_str());
    return base::kExitUsage;
  }
  (void)signal(SIGPIPE, SIG_IGN);  // the caller may be gone; a step that has begun is finished
  if (options->verb == "can") _exit(can(*options));
  const Result<Checkpoints> driver = Checkpoints::open(options->cuda);
  if (!driver) _exit(say_error(driver.error()));
  // No destructors: threads of the driver still run.
  _exit(say(options->verb == "out"
                ? driver->out(options->pids, static_cast<unsigned>(options->timeout_ms))
                : driver->in(options->pids)));
}

}  // namespace mete::park
