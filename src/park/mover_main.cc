// SPDX-License-Identifier: Apache-2.0
// mete-mover --card GPU-… --socket PATH [--arena BYTES] [--cuda LIBRARY] [--mode OCTAL]
//            [--idle-s N] [--spill FOLDER --spill-bytes BYTES]
//
// Keeps the memory of parked jobs of one card (park/mover.h). The daemon starts it; it outlives the
// daemon. Reports errors on stderr. Exit codes: 0 ended as it should, 75 there is one already or
// the card has no room, 64 wrong arguments, 125 anything else.
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "base/exit_code.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/text.h"
#include "park/mover.h"

namespace mete::park {

namespace {

void say(const std::string& text) { (void)std::fprintf(stderr, "mete-mover: %s\n", text.c_str()); }

int fail(const Error& error) {
  say(error.message + (error.evidence.empty() ? "" : " (" + error.evidence + ")"));
  return base::exit_code_of_failure(error.code);
}

// "17179869184" or "16G".
Result<Bytes> parse_amount(const std::string& text) {
  if (const Result<std::uint64_t> count = base::parse_uint(text)) return Bytes::from_bytes(*count);
  return base::parse_bytes(text);
}

Result<mode_t> parse_mode(const std::string& text) {
  char* end = nullptr;
  const unsigned long mode = std::strtoul(text.c_str(), &end, 8);
  if (text.empty() || *end != '\0' || mode > 0777)
    return Error::invalid("--mode wants something like 0600, not " + base::quote(text));
  return static_cast<mode_t>(mode);
}

template <typename T, typename To>
Result<void> keep(Result<T> value, To* to) {
  if (!value) return std::move(value).error();
  *to = *value;
  return {};
}

Result<void> set(const std::string& name, const std::string& value, MoverOptions* options) {
  if (name == "--card") return keep(Result<std::string>(value), &options->card);
  if (name == "--socket") return keep(Result<std::string>(value), &options->socket);
  if (name == "--cuda") return keep(Result<std::string>(value), &options->cuda);
  if (name == "--arena") return keep(parse_amount(value), &options->arena);
  if (name == "--mode") return keep(parse_mode(value), &options->mode);
  if (name == "--spill") return keep(Result<std::string>(value), &options->spill);
  if (name == "--spill-bytes") return keep(parse_amount(value), &options->spill_bytes);
  if (name == "--idle-s") {
    const Result<std::uint64_t> seconds = base::parse_uint(value);
    if (seconds && *seconds > 1'000'000'000) return Error::invalid("--idle-s is too large");
    return keep(seconds, &options->idle_s);
  }
  return Error::invalid("there is no option " + base::quote(name));
}

Result<MoverOptions> parse(int argc, char** argv) {
  MoverOptions options;
  for (int i = 1; i < argc; i += 2) {
    if (i + 1 == argc) return Error::invalid(base::quote(argv[i]) + " wants a value");
    if (Result<void> done = set(argv[i], argv[i + 1], &options); !done)
      return std::move(done).error();
  }
  if (options.card.empty() || options.socket.empty())
    return Error::invalid(
        "usage: mete-mover --card GPU-… --socket PATH [--arena BYTES] "
        "[--cuda LIBRARY] [--mode OCTAL] [--idle-s N] [--spill FOLDER --spill-bytes BYTES]");
  if (options.spill.empty() != options.spill_bytes.is_zero())
    return Error::invalid("--spill and --spill-bytes belong together");
  return options;
}

// SIGTERM is read by the loop; every later thread inherits this mask.
void prepare_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  (void)sigprocmask(SIG_BLOCK, &set, nullptr);
  (void)signal(SIGPIPE, SIG_IGN);
  (void)signal(SIGHUP, SIG_IGN);
  (void)signal(SIGXFSZ, SIG_IGN);  // a file that may not grow makes a write fail
}

// The mover holds the only copy of other programs' memory: it must not be the first to be killed
// when memory runs out. Only root may set this.
void ask_to_be_spared() {
  FILE* file = std::fopen("/proc/self/oom_score_adj", "we");
  if (file == nullptr) return;
  (void)std::fputs("-500", file);
  (void)std::fclose(file);
}

}  // namespace

int mover_main(int argc, char** argv) {
  base::fill_standard_descriptors();
  if (argc == 2 && std::string_view(argv[1]) == "--version") {
    (void)std::printf("mete-mover %s\n", METE_VERSION);
    return 0;
  }
  const Result<MoverOptions> options = parse(argc, argv);
  if (!options) return fail(options.error());
  prepare_signals();
  ask_to_be_spared();
  Result<std::unique_ptr<Mover>> mover = Mover::start(*options, say);
  if (!mover) return fail(mover.error());
  const Result<void> ran = (*mover)->run();
  // No destructors: threads of the driver and of ours still run. The end of the process frees
  // everything.
  _exit(ran ? 0 : fail(ran.error()));
}

}  // namespace mete::park
