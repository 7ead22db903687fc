// SPDX-License-Identifier: Apache-2.0
// Faults on demand, delays, lost cards, a dead server, threads. METE_SIM_FAULT makes a call fail,
// block, stop or kill; a lost card or server is an error of every later call, never a hang or a
// signal; errno and signal masks stay as they were.
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

#include "tests/e2e/simgpu/support.h"

namespace simgpu_test {
namespace {

using TroubleTest = SimTest;

TEST_F(TroubleTest, TheNthCallFails) {
  setenv("METE_SIM_FAULT", "cuMemAlloc_v2:2:fail=2,cuMemsetD*:*:fail=719,cuTexRefCreate:1:fail=7",
         1);
  in_child([] {
    begin();
    CUdeviceptr p = 0;
    OK(cuMemAlloc_v2(&p, 100));
    const size_t before = used_here();
    CHECK_EQ(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc_v2(&p, kGiB));
    CHECK_EQ(before, used_here());
    OK(cuMemAlloc_v2(&p, 100));
    CHECK_EQ(719, cuMemsetD8_v2(p, 0, 1));
    CHECK_EQ(719, cuMemsetD32_v2(p, 0, 1));
  });
}

TEST_F(TroubleTest, AFaultSticksToTheContext) {
  setenv("METE_SIM_FAULT", "cuMemcpyHtoD_v2:1:fault=700", 1);
  in_child([] {
    begin();
    CUdeviceptr p = 0;
    OK(cuMemAlloc_v2(&p, 100));
    CHECK_EQ(CUDA_ERROR_ILLEGAL_ADDRESS, cuMemcpyHtoD_v2(p, "x", 1));
    CHECK_EQ(CUDA_ERROR_ILLEGAL_ADDRESS, cuMemAlloc_v2(&p, 100));
    CHECK_EQ(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
    CHECK_EQ(CUDA_ERROR_ILLEGAL_ADDRESS, cuMemFree_v2(p));
    CUcontext other = nullptr;
    OK(cuCtxCreate_v2(&other, 0, 0));
    OK(cuMemAlloc_v2(&p, 100));
  });
}

TEST_F(TroubleTest, KillBeforeAndAfterTheWork) {
  const auto body = [] {
    begin();
    CUdeviceptr p = 0;
    OK(cuMemAlloc_v2(&p, kGiB));
  };
  setenv("METE_SIM_FAULT", "cuMemAlloc_v2:1:kill", 1);
  EXPECT_EQ(128 + SIGKILL, finish(start(body)));
  setenv("METE_SIM_FAULT", "cuMemAlloc_v2:1:after-kill", 1);
  EXPECT_EQ(128 + SIGKILL, finish(start(body)));
  unsetenv("METE_SIM_FAULT");
  EXPECT_EQ(0u, used());
}

TEST_F(TroubleTest, StopAfterTheWorkHoldsTheMemory) {
  setenv("METE_SIM_FAULT", "cuMemAlloc_v2:1:after-stop", 1);
  const pid_t stopped = start([] {
    begin();
    CUdeviceptr p = 0;
    OK(cuMemAlloc_v2(&p, kGiB));
    OK(cuMemFree_v2(p));
  });
  int status = 0;
  ASSERT_EQ(stopped, waitpid(stopped, &status, WUNTRACED));
  ASSERT_TRUE(WIFSTOPPED(status));
  EXPECT_EQ(kContext + kGiB, used());
  // A stopped process does not block others.
  unsetenv("METE_SIM_FAULT");
  in_child([] { begin(); });
  kill(stopped, SIGCONT);
  EXPECT_EQ(0, finish(stopped));
}

TEST_F(TroubleTest, ABlockedCallHoldsUpNobodyElse) {
  setenv("METE_SIM_FAULT", "cuMemAllocManaged:1:block", 1);
  in_child([] {
    const CUcontext context = begin();
    std::thread blocked([context] {
      CUdeviceptr p = 0;
      OK(cuCtxSetCurrent(context));
      (void)cuMemAllocManaged(&p, 100, CU_MEM_ATTACH_GLOBAL);
      fail_child(__FILE__, __LINE__, "a call that blocks for ever returned");
    });
    CUdeviceptr p = 0;
    for (int i = 0; i < 100; ++i) {
      OK(cuMemAlloc_v2(&p, 3 * kMiB));
      OK(cuMemFree_v2(p));
    }
    blocked.detach();
  });
}

TEST_F(TroubleTest, DelaysChangeNothingElse) {
  setenv("METE_SIM_DELAY_US", "200,42", 1);
  in_child([] {
    begin();
    CUdeviceptr p = 0;
    OK(cuMemAlloc_v2(&p, kGiB));
    CHECK_EQ(kContext + kGiB, used_here());
    OK(cuMemFree_v2(p));
    CHECK_EQ(kContext, used_here());
  });
}

TEST_F(TroubleTest, ALostCardStaysLostForItsContexts) {
  machine_ = "2xH200";
  in_child([this] {
    begin(0);
    CUdeviceptr p = 0;
    OK(cuMemAlloc_v2(&p, 4 * kMiB));
    (void)control("lose-card 0");
    CHECK_EQ(CUDA_ERROR_DEVICE_UNAVAILABLE, cuMemsetD8_v2(p, 1, 4));
    CHECK_EQ(CUDA_ERROR_DEVICE_UNAVAILABLE, cuMemAlloc_v2(&p, 100));
    CUcontext other = nullptr;
    OK(cuDevicePrimaryCtxRetain(&other, 1));
    OK(cuCtxSetCurrent(other));
    OK(cuMemAlloc_v2(&p, 100));
    (void)control("restore-card 0");
    CHECK_EQ(CUDA_SUCCESS, cuCtxCreate_v2(&other, 0, 0));
  });
}

TEST_F(TroubleTest, WithoutItsServerAProgramGetsErrorsAndNoSignal) {
  in_child([this] {
    begin();
    CUdeviceptr p = 0;
    OK(cuMemAlloc_v2(&p, 4 * kMiB));
    (void)control("stop");
    CHECK_EQ(CUDA_ERROR_DEVICE_UNAVAILABLE, cuMemcpyHtoD_v2(p, "x", 1));
    CHECK_EQ(CUDA_ERROR_DEVICE_UNAVAILABLE, cuMemGetInfo_v2(nullptr, nullptr));
    CHECK_EQ(CUDA_ERROR_DEVICE_UNAVAILABLE, cuCtxSynchronize());
  });
}

TEST_F(TroubleTest, ManyThreadsShareADriver) {
  in_child([] {
    const CUcontext context = begin();
    const size_t before = used_here();
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; ++t) {
      threads.emplace_back([context, t] {
        CUcontext none = nullptr;
        OK(cuCtxGetCurrent(&none));
        CHECK(none == nullptr);  // the current context belongs to a thread
        OK(cuCtxSetCurrent(context));
        for (int i = 0; i < 300; ++i) {
          const size_t bytes = static_cast<size_t>(1 + (i * 7919 + t * 104729) % (3 << 20));
          CUdeviceptr p = 0;
          OK(cuMemAlloc_v2(&p, bytes));
          OK(cuMemsetD8_v2(p, static_cast<unsigned char>(t), bytes));
          unsigned char last = 99;
          OK(cuMemcpyDtoH_v2(&last, p + bytes - 1, 1));
          CHECK_EQ(t, last);
          OK(cuMemFree_v2(p));
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK_EQ(before, used_here());
  });
}

TEST_F(TroubleTest, ErrnoAndSignalMaskAreLeftAlone) {
  in_child([] {
    sigset_t before, after;
    pthread_sigmask(SIG_SETMASK, nullptr, &before);
    errno = 4242;
    const CUresult init = cuInit(0);
    const int seen = errno;
    OK(init);
    CHECK_EQ(4242, seen);
    pthread_sigmask(SIG_SETMASK, nullptr, &after);
    CHECK(memcmp(&before, &after, 8) == 0);
  });
}

}  // namespace
}  // namespace simgpu_test
