// SPDX-License-Identifier: Apache-2.0
#include "node/process_look.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "base/fd.h"
#include "node/proc.h"

namespace mete::node {
namespace {

std::vector<seam::CardReading> on_a_card(std::vector<pid_t> pids) {
  seam::CardReading card;
  card.processes.emplace();
  for (const pid_t pid : pids) card.processes->push_back({pid, Bytes::from_mib(1), false});
  return {card};
}

const ProcessFacts* find(const std::vector<ProcessFacts>& list, pid_t pid) {
  const auto found = std::find_if(list.begin(), list.end(),
                                  [&](const ProcessFacts& facts) { return facts.pid == pid; });
  return found == list.end() ? nullptr : &*found;
}

TEST(ProcessLook, FindsVariablesByTheirWholeName) {
  const std::string environment("XMETE_JOB_ID=1\0METE_JOB_ID=12\0A=METE_JOB_ID=3\0", 46);
  EXPECT_EQ(variable_in(environment, "METE_JOB_ID"), "12");
  EXPECT_EQ(variable_in(environment, "A"), "METE_JOB_ID=3");
  EXPECT_EQ(variable_in(environment, "JOB_ID"), "");
  EXPECT_EQ(variable_in(std::string("A=x"), "A"), "x") << "the last may lack its end";
  EXPECT_EQ(variable_in("", "A"), "");
}

TEST(ProcessLook, SeesAProcessAndItsAncestors) {
  base::Pipe pipe = std::move(*base::make_pipe());
  const pid_t child = fork();
  if (child == 0) {
    char byte = 0;
    pipe.write.reset();
    (void)!read(pipe.read.get(), &byte, 1);
    _exit(0);
  }
  const std::vector<ProcessFacts> list = ProcessLook().take(on_a_card({child}));
  pipe.write.reset();
  waitpid(child, nullptr, 0);
  const ProcessFacts* facts = find(list, child);
  ASSERT_NE(facts, nullptr);
  EXPECT_TRUE(facts->visible);
  EXPECT_EQ(facts->parent, getpid());
  EXPECT_EQ(facts->uid, getuid());
  EXPECT_FALSE(facts->user.empty());
  EXPECT_EQ(facts->namespace_init, 0) << "our own namespace";
  const ProcessFacts* parent = find(list, getpid());
  ASSERT_NE(parent, nullptr);
  EXPECT_EQ(parent->start_ticks, read_stat(getpid())->start_ticks);
  EXPECT_NE(find(list, parent->parent), nullptr);
}

TEST(ProcessLook, LeavesOutWhatIsGone) {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  waitpid(child, nullptr, 0);
  EXPECT_TRUE(ProcessLook().take(on_a_card({child, 0, -1})).empty());
}

}  // namespace
}  // namespace mete::node
