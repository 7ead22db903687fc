// SPDX-License-Identifier: Apache-2.0
// SIGKILL and a stop at every machine instruction of the accounting path.
//
// A child does one operation on a shared grant under ptrace; the parent lets it execute k
// instructions and then either kills it (what it held must come back, nothing else may change) or
// leaves it standing there (the parent must get through its own operations, and the child, let go,
// must finish its own exactly once). For every k until the child gets to its end.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include <cstring>
#include <functional>

#include "abi/account.h"
#include "abi/process.h"
#include "abi/reserve.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
// A sanitizer turns one instruction into fifty and does not change the protocol: test every 23rd.
constexpr int kStride = 23;
#else
constexpr int kStride = 1;
#endif

namespace mete::abi {
namespace {

constexpr uint32_t kParent = 0;
constexpr uint32_t kChild = 1;
constexpr uint32_t kThird = 2;
constexpr uint64_t kFakeOwner = 12345;

struct World {
  Grant grant;
  std::atomic<uint64_t> done;
};

class StepTest : public testing::Test {
 protected:
  StepTest() {
    memory_ =
        mmap(nullptr, sizeof(World), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  }
  ~StepTest() override { munmap(memory_, sizeof(World)); }

  World& world() { return *static_cast<World*>(memory_); }
  Grant& grant() { return world().grant; }

  // A fresh grant: the parent holds 10 units, the child 20, a third process (dead, not yet reaped)
  // 30, of which 25 are its reserve.
  void reset() {
    memset(memory_, 0, sizeof(World));
    GrantCard cards[1] = {};
    GrantSpec spec;
    spec.cards = cards;
    spec.card_count = 1;
    cards[0].ceiling_bytes = 1000 * kUnitBytes;
    ASSERT_TRUE(init_grant(&grant(), spec));
    grant().header.slot_high = 3;
    grant().slots[kParent].owner = kFakeOwner;
    grant().slots[kChild].owner = kFakeOwner + 1;
    grant().slots[kThird].owner = kFakeOwner + 2;
    ASSERT_TRUE(try_take({grant(), kParent}, {0, 0}, 10));
    ASSERT_TRUE(try_take({grant(), kChild}, {0, 0}, 20));
    ASSERT_TRUE(try_take({grant(), kThird}, {0, 0}, 30));
    open_reserve(grant().slots[kThird].cards[0], 25);
  }

  uint64_t sum() {
    settled_total(grant(), {0, 0});
    uint64_t units = 0;
    for (uint32_t s = 0; s < kSlots; ++s) units += charged_units(grant(), s, 0);
    return units;
  }

  // Starts the operation in a child, executes `steps` of its instructions and stops it there.
  // Returns false when the operation had ended before.
  bool stand(const std::function<void(Grant&)>& operation, int steps, pid_t* pid) {
    *pid = fork();
    if (*pid == 0) {
      ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
      raise(SIGSTOP);
      operation(grant());
      world().done = 1;
      raise(SIGSTOP);
      _exit(0);
    }
    int status = 0;
    waitpid(*pid, &status, 0);
    for (int i = 0; i < steps && world().done == 0; ++i) {
      if (ptrace(PTRACE_SINGLESTEP, *pid, nullptr, nullptr) != 0) return false;
      waitpid(*pid, &status, 0);
      if (!WIFSTOPPED(status)) return false;
    }
    return world().done == 0;
  }

  static void kill_now(pid_t pid) {
    kill(pid, SIGKILL);
    int status = 0;
    while (waitpid(pid, &status, 0) == pid && !WIFSIGNALED(status) && !WIFEXITED(status)) {
    }
  }

  void let_finish(pid_t pid) {
    int status = 0;
    while (world().done == 0) {
      ptrace(PTRACE_CONT, pid, nullptr, nullptr);
      if (waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status)) break;
    }
    kill_now(pid);
  }

  // Runs `operation` killed and stopped at every instruction. `finished` is the child's charge
  // after the operation; `third` is what the dead third process may hold then.
  void at_every_instruction(const std::function<void(Grant&)>& operation, uint64_t finished,
                            uint64_t third) {
    int points = 0;
    for (int k = 0;; k += kStride) {
      reset();
      pid_t pid = 0;
      const bool standing = stand(operation, k, &pid);
      // While the child is stopped there, others take and give back.
      ASSERT_TRUE(try_take({grant(), kParent}, {0, 0}, 5)) << "instruction " << k;
      give_back({grant(), kParent}, {0, 0}, 3);
      ASSERT_EQ(charged_units(grant(), kParent, 0), 12u) << "instruction " << k;
      ASSERT_EQ(sum(), total_units(grant(), {0, 0})) << "instruction " << k;
      let_finish(pid);
      ASSERT_EQ(sum(), total_units(grant(), {0, 0})) << "instruction " << k;
      ASSERT_EQ(charged_units(grant(), kParent, 0), 12u) << "instruction " << k;
      ASSERT_EQ(charged_units(grant(), kChild, 0), finished) << "instruction " << k;
      ASSERT_EQ(charged_units(grant(), kThird, 0), third) << "instruction " << k;

      reset();
      stand(operation, k, &pid);
      kill_now(pid);
      reap_slot({grant(), kParent}, kChild, kFakeOwner + 1, {kFakeOwner});
      reap_slot({grant(), kParent}, kThird, kFakeOwner + 2, {kFakeOwner});
      ASSERT_EQ(charged_units(grant(), kParent, 0), 10u) << "instruction " << k;
      ASSERT_EQ(total_units(grant(), {0, 0}), 10u) << "instruction " << k;
      ASSERT_EQ(sum(), 10u) << "instruction " << k;
      ASSERT_TRUE(try_take({grant(), kParent}, {0, 0}, 990)) << "instruction " << k;
      if (!standing) break;
      ++points;
    }
    RecordProperty("points", points);
    ASSERT_GT(points, kStride == 1 ? 50 : 3) << "the child was not stepped at all";
  }
  void* memory_;
};

TEST_F(StepTest, Take) {
  at_every_instruction([](Grant& g) { (void)try_take({g, kChild}, {0, 0}, 7); }, 27, 30);
}

TEST_F(StepTest, GiveBack) {
  at_every_instruction([](Grant& g) { give_back({g, kChild}, {0, 0}, 7); }, 13, 30);
}

TEST_F(StepTest, LowerForTheDead) {
  at_every_instruction(
      [](Grant& g) {
        lower_for_dead({g, kChild}, kThird, kFakeOwner + 2, {0, 0}, 0);
      },
      20, 0);
}

TEST_F(StepTest, SetLimit) {
  at_every_instruction(
      [](Grant& g) {
        (void)set_limit({g, kChild}, {0, 0}, 1000 * kUnitBytes);
      },
      20, 30);
}

// Wherever a reservation is when the limit is lowered: the result of set_limit() is the most there
// will be, whether that reservation succeeds or not.
TEST_F(StepTest, ALoweredLimitHoldsForAReservationThatIsUnderWay) {
  int through = 0;
  int refused = 0;
  for (int k = 0;; k += kStride) {
    reset();
    pid_t pid = 0;
    const bool standing = stand([](Grant& g) { (void)try_take({g, kChild}, {0, 0}, 7); }, k, &pid);
    const uint64_t most = set_limit({grant(), kParent}, {0, 0}, 60 * kUnitBytes);
    let_finish(pid);
    const uint64_t total = total_units(grant(), {0, 0});
    ASSERT_EQ(sum(), total) << "instruction " << k;
    ASSERT_EQ(total * kUnitBytes, most) << "instruction " << k;
    ++(total == 67 ? through : refused);
    if (!standing) break;
  }
  EXPECT_GT(through, 0);
  EXPECT_GT(refused, 0);
}

// The child lends 12 units of the reserve of the third process, which lives in this test.
TEST_F(StepTest, LendAReserve) {
  at_every_instruction(
      [](Grant& g) {
        (void)lend_reserve({g, kChild}, kThird, kFakeOwner + 2, {0, 0}, 12);
      },
      20, 18);
}

// Wherever a lender is stopped or killed when the owner ends its reserve: the owner gives back what
// was left, and never less is charged than it holds.
TEST_F(StepTest, AReserveThatEndsWhileItIsLent) {
  int exact = 0;
  int more = 0;
  for (const bool dies : {false, true}) {
    for (int k = 0;; k += kStride) {
      reset();
      pid_t pid = 0;
      const bool standing = stand(
          [](Grant& g) {
            (void)lend_reserve({g, kChild}, kThird, kFakeOwner + 2, {0, 0}, 12);
          },
          k, &pid);
      if (dies) kill_now(pid);
      const uint64_t left = close_reserve(grant().slots[kThird].cards[0]);
      give_back({grant(), kThird}, {0, 0}, left);
      ASSERT_TRUE(try_take({grant(), kThird}, {0, 0}, 25));
      open_reserve(grant().slots[kThird].cards[0], 25);
      if (!dies) let_finish(pid);
      // Five units are not part of the reserve. Whether units of the old or of the new reserve are
      // lent, the charge is exact.
      const uint64_t rest =
          charged_units(grant(), kThird, 0) - close_reserve(grant().slots[kThird].cards[0]);
      ASSERT_TRUE(rest == 5 || (dies && rest == 5 + 12)) << rest << ", instruction " << k;
      ASSERT_EQ(sum(), total_units(grant(), {0, 0})) << "instruction " << k;
      ++(rest == 5 ? exact : more);
      if (!standing) break;
    }
  }
  EXPECT_GT(exact, 0);
  EXPECT_GT(more, 0);
}

TEST_F(StepTest, TakeThenGiveBackTwice) {
  at_every_instruction(
      [](Grant& g) {
        (void)try_take({g, kChild}, {0, 0}, 100);
        give_back({g, kChild}, {0, 0}, 40);
        give_back({g, kChild}, {0, 0}, 60);
      },
      20, 30);
}

}  // namespace
}  // namespace mete::abi
