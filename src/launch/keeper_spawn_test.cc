// SPDX-License-Identifier: Apache-2.0
#include "launch/keeper_spawn.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

namespace mete::launch {
namespace {

TEST(SpawnKeeper, HasItsPlanAPipeAndASessionOfItsOwn) {
  char path[] = "/tmp/mete-spawn-XXXXXX";
  const int file = mkstemp(path);
  ASSERT_GE(file, 0);
  const std::string script =
      "#!/bin/sh\n"
      "exec >&4\n"
      "echo $1 $A $(wc -c < /proc/$$/fd/3)\n"
      "read pid name state parent group session rest < /proc/$$/stat\n"
      "[ $session = $$ ] && echo own session\n"
      // Not by grep: a shell blocks signals while it starts a program.
      "while read key value; do [ $key = SigBlk: ] && echo $value; done < /proc/$$/status\n";
  ASSERT_EQ(write(file, script.data(), script.size()), static_cast<ssize_t>(script.size()));
  ASSERT_EQ(fchmod(file, 0700), 0);
  ASSERT_EQ(close(file), 0);
  sigset_t usr;
  sigset_t before;
  sigemptyset(&usr);
  sigaddset(&usr, SIGUSR1);
  ASSERT_EQ(sigprocmask(SIG_BLOCK, &usr, &before), 0);
  const Result<SpawnedKeeper> keeper =
      spawn_keeper({path, "12.1", {"A=b", "PATH=/usr/bin:/bin"}}, std::string(100'000, 'p'));
  ASSERT_TRUE(keeper.ok()) << keeper.error().message;
  int status = -1;
  ASSERT_EQ(waitpid(keeper->pid, &status, 0), keeper->pid);
  std::string said(4096, '\0');
  const ssize_t got = read(keeper->words.get(), said.data(), said.size());
  said.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  EXPECT_EQ(said, "12.1 b 100000\nown session\n0000000000000000\n");
  EXPECT_EQ(read(keeper->words.get(), said.data(), 1), 0) << "its end is seen";
  ASSERT_EQ(sigprocmask(SIG_SETMASK, &before, nullptr), 0);
  ASSERT_EQ(unlink(path), 0);
}

TEST(SpawnKeeper, AProgramThatIsNotThereIsAnError) {
  EXPECT_EQ(spawn_keeper({"/no/such/keeper", "12.1", {}}, "").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(spawn_keeper({"/etc/passwd", "12.1", {}}, "").error().code, ErrorCode::kDenied);
}

TEST(KeeperEnvironment, KeepsWhatFindsTheCardsAndNothingOfAJob) {
  const std::vector<std::string> own = {"PATH=/bin",
                                        "SECRET=1",
                                        "METE_SIM=4xH200",
                                        "METE_STATE_DIR=/s",
                                        "METE_JOB_ID=12",
                                        "METE_GRANT=/g",
                                        "METE_JOB_TOKEN=1.2",
                                        "METE_ARRAY_INDEX=3",
                                        "LD_PRELOAD=a",
                                        "METE_ATTEMPT=1",
                                        "CUDA_VISIBLE_DEVICES=1",
                                        "CUDA_MPS_PIPE_DIRECTORY=/m",
                                        "XDG_RUNTIME_DIR=/run/user/0",
                                        "XDG_SESSION_ID=4"};
  EXPECT_EQ(keeper_environment(own),
            (std::vector<std::string>{"PATH=/bin", "METE_SIM=4xH200", "METE_STATE_DIR=/s",
                                      "CUDA_MPS_PIPE_DIRECTORY=/m", "XDG_RUNTIME_DIR=/run/user/0"}))
      << "without the last a mover would not find the simulated cards";
}

}  // namespace
}  // namespace mete::launch
