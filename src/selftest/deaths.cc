// SPDX-License-Identifier: Apache-2.0
// Processes that start without a grant, that race for the last chunk, and that are killed.
#include <cstdlib>

#include "selftest/agent.h"
#include "selftest/driver.h"
#include "selftest/groups.h"
#include "selftest/ledger.h"
#include "selftest/rows.h"

namespace mete::selftest {

namespace {

constexpr std::uint64_t kChunk = 16 * kMiB;

bool did(Check& check, const Answer& answer, const char* call) {
  if (answer.result < 0) return check.that(false, std::string(call) + ": the process is gone");
  return check.did(static_cast<CUresult>(answer.result), call);
}

// Two processes fill the cap at once: together they get all of it, to within one chunk, and not a
// byte more.
void race(const Task& task) {
  const Ledger& books = Ledger::of_this_job();
  Check check(kOver, "two processes at once");
  const Agent one(task.program);
  const Agent two(task.program);
  if (!did(check, one.ask("start"), "start") || !did(check, two.ask("start"), "start")) return;
  const std::uint64_t left = books.free();
  const std::string order =
      "fill " + std::to_string(kChunk) + " " + std::to_string(left + 4 * kChunk);
  one.tell(order);
  two.tell(order);
  const Answer first = one.hear();
  const Answer second = two.hear();
  const std::uint64_t got = std::strtoull(first.text.c_str(), nullptr, 10) +
                            std::strtoull(second.text.c_str(), nullptr, 10);
  check.that(first.result == CUDA_ERROR_OUT_OF_MEMORY && second.result == CUDA_ERROR_OUT_OF_MEMORY,
             "both are refused in the end");
  check.between("of " + std::to_string(left) + " free bytes got", got,
                left > kChunk ? left - kChunk : 0, left);
}

// The bytes of a killed process are available at the first attempt of another one.
void killed(const Task& task) {
  const Ledger& books = Ledger::of_this_job();
  Check check(kDeath, "kill -9");
  Agent victim(task.program);
  const Agent survivor(task.program);
  if (!did(check, survivor.ask("start"), "start") || !did(check, victim.ask("start"), "start"))
    return;
  const std::uint64_t left = books.free() / kGranule * kGranule;
  if (!did(check, victim.ask("alloc " + std::to_string(left)), "cuMemAlloc_v2")) return;
  const Answer refused = survivor.ask("alloc " + std::to_string(left));
  check.that(refused.result == CUDA_ERROR_OUT_OF_MEMORY,
             std::to_string(left) + " bytes are refused while the other one lives");
  victim.kill();
  const Answer given = survivor.ask("alloc " + std::to_string(left));
  check.that(given.result == CUDA_SUCCESS,
             "the first attempt after its death answers " + std::to_string(given.result));
}

}  // namespace

void check_deaths(const Task& task) {
  race(task);
  killed(task);
}

// Run with a METE_GRANT that names no grant file: the driver must not even be initialised.
void check_start(const Task&) {
  Check check(kClosed, "cuInit");
  const char* grant = std::getenv("METE_GRANT");
  check.note(grant == nullptr ? "METE_GRANT not set" : "METE_GRANT names no grant file");
  check.equal("answers", static_cast<std::uint64_t>(CU(cuInit)(0)), CUDA_ERROR_OPERATING_SYSTEM);
}

}  // namespace mete::selftest
