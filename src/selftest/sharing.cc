// SPDX-License-Identifier: Apache-2.0
// Memory that passes between two processes of the job: opening it costs nothing, and when its owner
// is killed it stays charged for as long as the other process holds it.
#include <time.h>

#include "selftest/agent.h"
#include "selftest/driver.h"
#include "selftest/groups.h"
#include "selftest/ledger.h"
#include "selftest/rows.h"

namespace mete::selftest {

namespace {

constexpr std::uint64_t kBytes = 64 * kMiB;

const Ledger& books() { return Ledger::of_this_job(); }

// The names of one way to share.
struct Way {
  const char* give;   // the entry point that gives memory to others
  const char* open;   // the one that opens it
  const char* close;  // the one that closes it; nullptr: not tried
  std::string make;   // orders for the agents
  std::string take;
  std::string drop;
  bool answer_is_argument;
  std::uint64_t kept;  // what stays charged when the owner is dead
};

// The answer of an agent, for a row.
bool did(Check& check, const Answer& answer, const char* call) {
  if (answer.result < 0) return check.that(false, std::string(call) + ": the process is gone");
  return check.did(static_cast<CUresult>(answer.result), call);
}

// The survivor queries free memory, which makes it look for dead processes, until the charge is as
// expected: at most a second.
void settle(const Agent& survivor, std::uint64_t expected) {
  for (int tries = 0; tries < 100 && books().charged() != expected; ++tries) {
    (void)survivor.ask("look");
    const timespec pause{0, 10'000'000};
    nanosleep(&pause, nullptr);
  }
}

void share(const Task& task, const Way& way) {
  Agent owner(task.program);
  Agent other(task.program);
  Answer made;
  Answer opened;
  std::uint64_t alone = 0;
  {
    Check check(kShared, way.give);
    if (!did(check, other.ask("start"), "start") || !did(check, owner.ask("start"), "start"))
      return;
    alone = books().charged_to(other.pid());
    made = owner.ask(way.make);
    if (!did(check, made, way.give)) {
      Check skipped(kShared, way.open);
      skipped.skip("there is nothing to open");
      return;
    }
    const std::uint64_t before = books().charged();
    const std::string order = way.answer_is_argument ? way.take + " " + made.text : way.take;
    opened = other.ask(order, made.fd ? &made.fd : nullptr);
    if (did(check, opened, way.open))
      check.equal("opened in the same job, charged", books().charged() - before, 0);
  }
  made.fd.reset();
  owner.kill();
  {
    Check check(kShared, way.open);
    if (did(check, opened, way.open)) {
      settle(other, alone + way.kept);
      check.equal("its owner was killed, charged", books().charged() - alone, way.kept);
    }
  }
  if (way.close == nullptr) return;
  Check check(kBack, way.close);
  if (did(check, opened, way.open) && did(check, other.ask(way.drop), way.close)) {
    settle(other, alone);
    check.equal("charged after the last one let go", books().charged() - alone, 0);
  }
}

// Makes memory and its handle in one order.
void share_legacy(const Task& task, const char* version, const char* open) {
  Agent owner(task.program);
  Agent other(task.program);
  std::uint64_t alone = 0;
  Answer opened;
  {
    Check check(kShared, "cuIpcGetMemHandle");
    if (!did(check, other.ask("start"), "start") || !did(check, owner.ask("start"), "start"))
      return;
    alone = books().charged_to(other.pid());
    if (!did(check, owner.ask("alloc " + std::to_string(kBytes)), "cuMemAlloc_v2")) return;
    const Answer handle = owner.ask("ipc-get");
    if (!did(check, handle, "cuIpcGetMemHandle")) return;
    const std::uint64_t before = books().charged();
    opened = other.ask(std::string("ipc-open ") + version + " " + handle.text);
    if (did(check, opened, open))
      check.equal("opened in the same job, charged", books().charged() - before, 0);
  }
  owner.kill();
  {
    Check check(kShared, open);
    if (did(check, opened, open)) {
      settle(other, alone + kBytes);
      check.equal("its owner was killed, charged", books().charged() - alone, kBytes);
    }
  }
  Check check(kBack, "cuIpcCloseMemHandle");
  if (did(check, opened, open) && did(check, other.ask("ipc-close"), "cuIpcCloseMemHandle")) {
    settle(other, alone);
    check.equal("charged after the last one let go", books().charged() - alone, 0);
  }
}

}  // namespace

void check_sharing(const Task& task) {
  share_legacy(task, "1", "cuIpcOpenMemHandle");
  share_legacy(task, "2", "cuIpcOpenMemHandle_v2");
  const std::string bytes = std::to_string(kBytes);
  share(task, {"cuMemExportToShareableHandle", "cuMemImportFromShareableHandle", nullptr,
               "vmm-make " + bytes, "vmm-open " + bytes, "vmm-close", false, kBytes});
  share(task, {"cuMemPoolExportPointer", "cuMemPoolImportPointer", nullptr, "pool-make " + bytes,
               "pool-open", "", true, kBytes});
}

}  // namespace mete::selftest
